import { expect, it } from 'vitest';

import type { ThinkingControl } from '../bindings/ThinkingControl';
import { thinkingOffer } from './thinking';

it('follows the template until the chat says otherwise', () => {
  expect(thinkingOffer({ kind: 'switch', default_on: true }, null)).toEqual({ kind: 'switch', on: true });
  expect(thinkingOffer({ kind: 'switch', default_on: false }, null)).toEqual({ kind: 'switch', on: false });
  expect(thinkingOffer({ kind: 'switch', default_on: true }, 'off')).toEqual({ kind: 'switch', on: false });
});

it('counts a level as on where there is only a switch', () => {
  expect(thinkingOffer({ kind: 'switch', default_on: false }, 'high')).toEqual({ kind: 'switch', on: true });
});

it('leaves the level to the model where the chat names none', () => {
  const control: ThinkingControl = { kind: 'levels', levels: ['low', 'high'], default: 'high', off: false };
  expect(thinkingOffer(control, 'low')).toEqual({ kind: 'levels', level: 'low', levels: ['low', 'high'] });
  expect(thinkingOffer(control, 'off')).toEqual({ kind: 'levels', level: null, levels: ['low', 'high'] });
  expect(thinkingOffer({ ...control, off: true }, 'off')).toEqual({ kind: 'levels', level: 'off', levels: ['off', 'low', 'high'] });
});

it('says so where only words in the chat decide', () => {
  expect(thinkingOffer({ kind: 'by_request', default_on: true }, 'off')).toEqual({ kind: 'by_request', on: true });
});
