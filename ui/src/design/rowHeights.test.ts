import { describe, expect, it, vi } from 'vitest';

import { OVERSCAN, RowHeights } from './rowHeights';

const keys = (count: number): string[] => Array.from({ length: count }, (_, index) => `row-${index}`);

function rows(count: number, height = 100): RowHeights {
  const made = new RowHeights();
  made.set(keys(count), () => height);
  return made;
}

describe('rows', () => {
  it('are drawn in sight and near it, however many there are', () => {
    for (const count of [1000, 100_000])
      expect(rows(count).span(50_000, 600)).toEqual({
        first: (50_000 - OVERSCAN) / 100,
        end: (50_600 + OVERSCAN) / 100 + 1,
      });
    expect(rows(1000).span(0, 600).first).toBe(0);
    expect(rows(1000).span(Infinity, 600)).toEqual({ first: (100_000 - 600 - OVERSCAN) / 100, end: 1000 });
    expect(rows(3).span(0, 600)).toEqual({ first: 0, end: 3 });
    expect(rows(0).span(0, 600)).toEqual({ first: 0, end: 0 });
  });

  it('keep the place: what is measured above the view moves it, what is below does not', () => {
    const list = rows(100);
    expect(
      list.measure(
        [
          ['row-3', 160],
          ['row-4', 40],
          ['row-50', 900],
        ],
        1000,
      ),
    ).toBe(0);
    expect(
      list.measure(
        [
          ['row-3', 200],
          ['row-60', 10],
        ],
        1000,
      ),
    ).toBe(40);
    expect([list.top(4), list.total]).toEqual([500, 100 * 96 + 200 + 40 + 900 + 10]);
    // A row that reaches into the view grows downwards.
    expect(list.measure([['row-10', 500]], list.top(10) + 50)).toBe(0);
  });

  it('keep the place when rows come or go above it', () => {
    const list = rows(100);
    list.measure([['row-0', 250]], 0);
    const more = ['new-1', 'new-2', ...keys(100)];
    expect(list.set(more, () => 100, 5000)).toBe(200);
    expect(
      list.set(
        more.filter((key) => key !== 'row-0'),
        () => 100,
        5200,
      ),
    ).toBe(-250);
    expect(list.set([...more, 'last'], () => 100, 0)).toBe(0);
    // The rows in view are gone, or the view was never read.
    expect([
      list.set(['other'], () => 100, 5000),
      list.set(keys(3), () => 100),
      rows(0).set(keys(3), () => 100, 10),
    ]).toEqual([0, 0, 0]);
  });

  it('keep what was measured when rows come and go', () => {
    const list = rows(10);
    list.measure([['row-5', 300]], 0);
    list.set(['new', ...keys(10)], () => 100);
    expect([list.indexOf('row-5'), list.top(7) - list.top(6), list.indexOf('gone')]).toEqual([6, 300, -1]);
  });

  it('are added up again from the one that grew, so that an answer at the end of a long chat costs its own row', () => {
    const guess = vi.fn(() => 100);
    const list = new RowHeights();
    list.set(keys(3000), guess);
    expect([list.total, guess.mock.calls.length]).toEqual([300_000, 3000]);
    for (let height = 101; height <= 200; height++) {
      list.measure([['row-2999', height]], 299_000);
      expect(list.total).toBe(299_900 + height);
    }
    expect(guess).toHaveBeenCalledTimes(3000);
    list.measure([['row-2000', 50]], 0);
    expect([list.top(2000), list.top(2001), list.total]).toEqual([200_000, 200_050, 300_050]);
    expect(guess).toHaveBeenCalledTimes(3000 + 998);
  });
});
