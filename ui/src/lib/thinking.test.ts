import { expect, it } from 'vitest';

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
  expect(thinkingOffer({ kind: 'levels' }, 'low')).toEqual({ kind: 'levels', level: 'low' });
  expect(thinkingOffer({ kind: 'levels' }, 'off')).toEqual({ kind: 'levels', level: null });
});
