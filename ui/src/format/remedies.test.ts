import { expect, it } from 'vitest';

import type { Error as HostError } from '../bindings/Error';
import { remedyOf } from './remedies';

const of = (error: Omit<HostError, 'message'>) => remedyOf({ ...error, message: '' });

it('follows the reason, else the code', () => {
  expect(of({ code: 'memory_short', reason: 'card_memory' })).toEqual({ labelKey: 'remedy.eject', page: 'models' });
  expect(of({ code: 'memory_short', reason: 'model_memory' })).toEqual({ labelKey: 'remedy.otherModel', page: 'discover' });
  expect(of({ code: 'model_broken' })).toEqual({ labelKey: 'remedy.repair', page: 'local' });
  expect(of({ code: 'busy', reason: 'chat_busy' })).toBeNull();
});

it('leads to the page on which a model is given', () => {
  const gated = { code: 'gated', arguments: { id: 'meta/llama', host: 'huggingface.co' } } as const;
  expect(of(gated)).toEqual({ labelKey: 'remedy.access', link: 'https://huggingface.co/meta/llama' });
  expect(of({ code: 'gated' })).toBeNull();
  expect(of({ code: 'gated', reason: 'access_declined', arguments: { host: 'huggingface.co' } })).toEqual({
    labelKey: 'remedy.token',
    page: 'models',
  });
});
