import { expect, it } from 'vitest';

import type { Error as HostError } from '../bindings/Error';
import { remedyOf } from './remedies';

const of = (error: Omit<HostError, 'message'>) => remedyOf({ ...error, message: '' });

it('follows the reason, else the code', () => {
  expect(of({ code: 'memory_short', reason: 'card_memory' })).toEqual({ labelKey: 'remedy.device', page: 'models' });
  expect(of({ code: 'memory_short', reason: 'memory_beside_loaded' })).toEqual({ labelKey: 'remedy.eject', page: 'models' });
  expect(of({ code: 'memory_short', reason: 'model_memory' })).toEqual({ labelKey: 'remedy.otherModel', page: 'discover' });
  expect(of({ code: 'model_broken' })).toEqual({ labelKey: 'remedy.repair', page: 'local' });
  expect(of({ code: 'busy', reason: 'chat_busy' })).toBeNull();
});

it('leads nowhere that an error names, as one of an imported chat could', () => {
  const gated = { code: 'gated', arguments: { id: 'x', host: 'evil.example' } } as const;
  expect(of(gated)).toEqual({ labelKey: 'remedy.access', page: 'discover' });
  expect(of({ code: 'gated', reason: 'access_declined' })).toEqual({ labelKey: 'remedy.token', page: 'models' });
});
