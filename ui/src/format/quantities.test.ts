import { describe, expect, it } from 'vitest';

import { contextSize, memorySummary, progress } from './format';
import { ago, contextSteps, short, speed, timeLeft } from './quantities';

describe('amounts', () => {
  it('are short', () => {
    expect([0, 950, 1000, 1940, 12_300, 800_000, 999_600, 1_900_000, 23_000_000].map(short)).toEqual([
      '0',
      '950',
      '1K',
      '1.9K',
      '12K',
      '800K',
      '1M',
      '1.9M',
      '23M',
    ]);
  });

  it('name a unit once', () => {
    expect(progress(1_300_000_000, 2_300_000_000)).toBe('1.3 of 2.3 GB');
    expect(progress(900_000_000, 2_300_000_000)).toBe('900 MB of 2.3 GB');
    expect(progress(0, 15_000_000)).toBe('0 bytes of 15 MB');
    expect(memorySummary({ total: 24_000_000_000, free: 11_800_000_000 })).toBe('24 GB memory · 11.8 free');
    expect(memorySummary({ total: 8_000_000_000, free: 900_000_000 })).toBe('8 GB memory · 900 MB free');
    expect(speed(18_200_000)).toBe('18 MB/s');
  });

  it('name a context', () => {
    expect([512, 1024, 32_768, 131_072].map(contextSize)).toEqual(['512', '1K', '32K', '128K']);
  });
});

describe('times', () => {
  it('left', () => {
    expect([0, 4, 12, 54, 58, 120, 3600, 12_000, 400_000].map(timeLeft)).toEqual([
      'a few seconds left',
      'a few seconds left',
      '15 s left',
      '55 s left',
      '1 min left',
      '2 min left',
      '1 h left',
      '3 h 20 min left',
      '5 days left',
    ]);
  });

  it('past, by the days of the clock on the wall', () => {
    const noon = new Date(2026, 10, 21, 12).getTime();
    const hours = (count: number): string => ago(noon - count * 3_600_000, noon);
    expect(ago(noon + 5000, noon)).toBe('just now');
    expect(ago(noon - 20 * 60_000, noon)).toBe('20 minutes ago');
    expect([3, 13, 24, 40, 24 * 6, 24 * 90, 24 * 800].map(hours)).toEqual([
      'today',
      'yesterday',
      'yesterday',
      '2 days ago',
      '6 days ago',
      '3 months ago',
      '2 years ago',
    ]);
  });
});

describe('a context slider', () => {
  it('ends at the model’s own context', () => {
    expect(contextSteps(2048)).toEqual([1024, 2048]);
    expect(contextSteps(40_960)).toEqual([1024, 2048, 4096, 8192, 16_384, 32_768, 40_960]);
    expect(contextSteps(512)).toEqual([512]);
  });
});
