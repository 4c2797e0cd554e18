import { describe, expect, it } from 'vitest';

import type { MemoryFit } from '../bindings/MemoryFit';
import type { HubModel } from '../bindings/HubModel';
import { hubModels } from '../host/fake/catalog';
import { bestFit, fitHint, fitLabel, fittingFirst, pieces } from './fit';

const GB = 1_000_000_000;
const FIT: MemoryFit = {
  word: 'tight',
  context: 32_768,
  most_context: 131_072,
  comfortable_context: null,
  weights: 12 * GB,
  kv: 2 * GB,
  working: GB,
  needed: 15 * GB,
  free: 16 * GB,
  total: 24 * GB,
  measured: null,
};

describe('the order of models', () => {
  const [blank] = hubModels();
  const model = (id: string, word: MemoryFit['word'], more: Partial<HubModel> = {}): HubModel => {
    if (!blank) throw new Error('the fake hub has models');
    return { ...blank, id, gated: false, here: false, problem: null, fit: { ...FIT, word }, ...more };
  };
  const models = [
    model('huge', 'will_not_fit'),
    model('large', 'tight'),
    model('gated', 'comfortable', { gated: true }),
    model('here', 'comfortable', { here: true }),
    model('middle', 'comfortable'),
    model('small', 'comfortable'),
  ];

  it('puts those that fit first', () => {
    const ids = fittingFirst(models).map(({ id }) => id);
    expect(ids).toEqual(['gated', 'here', 'middle', 'small', 'large', 'huge']);
  });

  it('names the one to download: the first that fits, is open to everybody and is not here', () => {
    expect(bestFit(models)?.id).toBe('middle');
    expect(bestFit(models.slice(0, 2))?.id).toBe('large');
    expect(bestFit(models.slice(0, 1))).toBeNull();
  });
});

describe('the word', () => {
  it('says at which context, and what can be done', () => {
    expect(fitLabel({ ...FIT, word: 'comfortable' })).toBe('Fits');
    expect(fitLabel(FIT)).toBe('Tight at 32K');
    expect(fitLabel({ ...FIT, word: 'will_not_fit' })).toBe('Too large');
    expect(fitHint({ ...FIT, word: 'comfortable' })).toBeNull();
    expect(fitHint(FIT)).toBe('Leaves little memory for other apps.');
    expect(fitHint({ ...FIT, free: 4 * GB })).toContain('Close other apps');
    expect(fitHint({ ...FIT, word: 'will_not_fit' })).toContain('smaller model');
    expect(fitHint({ ...FIT, word: 'will_not_fit', comfortable_context: 4096 })).toBe('Fits with a context of 4K.');
  });
});

describe('the bar', () => {
  it('is the whole memory', () => {
    expect(pieces(FIT)).toEqual([
      { kind: 'used', share: 8 / 24 },
      { kind: 'weights', share: 12 / 24 },
      { kind: 'kv', share: 2 / 24 },
      { kind: 'working', share: 1 / 24 },
    ]);
  });

  it('marks what is too much', () => {
    const shown = pieces({ ...FIT, weights: 20 * GB });
    expect(shown.map((piece) => piece.kind)).toEqual(['used', 'weights', 'over']);
    expect(shown.reduce((sum, piece) => sum + piece.share, 0)).toBeCloseTo(1);
  });
});
