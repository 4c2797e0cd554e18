import { describe, it } from 'vitest';

import { cases } from './contract';
import { fakeHost } from './fake';

describe('the in-memory host', () => {
  it.each(cases)('$name', (promise) => promise.run(fakeHost(1)));
});
