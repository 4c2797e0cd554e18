import { describe, it } from 'vitest';

import { cases } from './cases';
import { fakeHost } from '../../host/fake';

describe('the in-memory host', () => {
  it.each(cases)('$name', (promise) => promise.run(fakeHost(1)));
});
