import { describe, it } from 'vitest';

import { cases } from './contract';
import { FakeHost } from './fake';

describe('the in-memory host', () => {
  it.each(cases)('$name', (promise) => promise.run(new FakeHost(1)));
});
