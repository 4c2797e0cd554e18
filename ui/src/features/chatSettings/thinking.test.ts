import { expect, it } from 'vitest';

import type { ThinkingControl } from '../../bindings/ThinkingControl';
import { budgetOf, budgetsFor, canTakeBudget, thinkingOffer } from './thinking';

it('follows the template until the chat says otherwise', () => {
  expect(thinkingOffer({ kind: 'switch', default_on: true }, null)).toEqual({ kind: 'switch', on: true });
  expect(thinkingOffer({ kind: 'switch', default_on: false }, null)).toEqual({ kind: 'switch', on: false });
  expect(thinkingOffer({ kind: 'switch', default_on: true }, 'off')).toEqual({ kind: 'switch', on: false });
});

it('counts a level as on if there is only a switch', () => {
  expect(thinkingOffer({ kind: 'switch', default_on: false }, 'high')).toEqual({ kind: 'switch', on: true });
});

it('leaves the level to the model if the chat names none', () => {
  const control: ThinkingControl = { kind: 'levels', levels: ['low', 'high'], default: 'high', off: false };
  expect(thinkingOffer(control, 'low')).toEqual({ kind: 'levels', level: 'low', levels: ['low', 'high'] });
  expect(thinkingOffer(control, 'off')).toEqual({ kind: 'levels', level: null, levels: ['low', 'high'] });
  expect(thinkingOffer({ ...control, off: true }, 'off')).toEqual({
    kind: 'levels',
    level: 'off',
    levels: ['off', 'low', 'high'],
  });
});

it('says so if only words in the chat decide', () => {
  expect(thinkingOffer({ kind: 'by_request', default_on: true }, 'off')).toEqual({ kind: 'by_request', on: true });
});

it('takes whole numbers for a budget, however they are written', () => {
  for (const [typed, tokens] of [
    ['20', 20],
    [' 1,500 ', 1500],
    ['1 500', 1500],
    ['1000000', 1_000_000],
  ] as const)
    expect(budgetOf(typed)).toBe(tokens);
  for (const typed of ['', '0', '-5', '1e3', 'many', '1000001', '99999999', '２0']) expect(budgetOf(typed)).toBeNull();
});

it('offers sizes that the context holds, and only if the model thinks', () => {
  expect(budgetsFor(2048)).toEqual([256, 1024]);
  expect(budgetsFor(null)).toEqual([256, 1024, 4096]);
  expect(canTakeBudget({ kind: 'switch', on: false })).toBe(false);
  expect(canTakeBudget({ kind: 'levels', level: 'off', levels: ['off', 'low'] })).toBe(false);
  expect(canTakeBudget({ kind: 'levels', level: null, levels: ['off', 'low'] })).toBe(true);
  expect(canTakeBudget({ kind: 'never' })).toBe(false);
});
