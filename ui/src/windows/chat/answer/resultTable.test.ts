import { expect, it } from 'vitest';

import { tableOf } from './resultTable';

it('has the columns of all rows, in the order in which they come', () => {
  expect(tableOf('[{"a": 1, "b": null}, {"c": true, "a": "x"}]')).toEqual({
    columns: ['a', 'b', 'c'],
    rows: [
      ['1', '', ''],
      ['x', '', 'true'],
    ],
    rest: 0,
  });
});

it('counts the rows that it leaves out', () => {
  const table = tableOf(JSON.stringify(Array.from({ length: 130 }, (_, row) => ({ row }))));
  expect([table?.rows.length, table?.rest]).toEqual([100, 30]);
});

it.each([
  '',
  'no JSON',
  '[',
  '[]',
  '[1, 2]',
  '[{}]',
  '{"a": 1}',
  '[{"a": {"b": 1}}]',
  '[{"a": [1]}]',
  '[null]',
  '[{"id": 12345678901234567890}]',
  JSON.stringify([Object.fromEntries(Array.from({ length: 13 }, (_, column) => [`c${column}`, 1]))]),
  `[{"a": "${'x'.repeat(200_000)}"}]`,
])('is not made of %.40s', (text) => {
  expect(tableOf(text)).toBeNull();
});
