/** The description of a model's memory needs. */

import type { HubModel } from '../bindings/HubModel';
import type { MemoryFit } from '../bindings/MemoryFit';
import { t } from '../locales';
import { contextSize } from './format';

/** `Fits`, `Tight at 32K`, `Too large`. */
export function fitLabel(fit: MemoryFit): string {
  switch (fit.word) {
    case 'comfortable':
      return t('fit.comfortable');
    case 'tight':
      return t('fit.tight', { context: contextSize(fit.context) });
    case 'will_not_fit':
      return t('fit.willNotFit');
  }
}

const RANK: Record<MemoryFit['word'], number> = { comfortable: 0, tight: 1, will_not_fit: 2 };

/** The models that fit, then those that are tight, then those too large; each in the order that they had. */
export function fittingFirst(models: readonly HubModel[]): HubModel[] {
  const rank = ({ fit }: HubModel): number => (fit ? RANK[fit.word] : RANK.tight);
  return models.toSorted((one, other) => rank(one) - rank(other));
}

/** The first of these that fits best and can be downloaded at once; `null` if none fits. */
export function bestFit(models: readonly HubModel[]): HubModel | null {
  const fits = ({ fit, gated, here, problem }: HubModel): boolean =>
    fit !== null && fit.word !== 'will_not_fit' && !gated && !here && problem === null;
  return fittingFirst(models).find(fits) ?? null;
}

/** A remedy for the verdict; `null` if none is needed. */
export function fitHint(fit: MemoryFit): string | null {
  if (fit.word === 'comfortable') return null;
  if (fit.word === 'tight') return t(fit.needed > fit.free ? 'fit.hint.free' : 'fit.hint.little');
  if (fit.comfortable_context !== null && fit.comfortable_context < fit.context)
    return t('fit.hint.context', { context: contextSize(fit.comfortable_context) });
  return t('fit.hint.smaller');
}

/** A segment of the bar of all memory. */
export interface Piece {
  kind: 'used' | 'weights' | 'kv' | 'working' | 'over';
  /** Of the bar, from 0 to 1. */
  share: number;
}

/** The bar: the memory of other programs, then the model's; the excess is cut off and marked. */
export function pieces(fit: MemoryFit): Piece[] {
  const used = Math.max(0, fit.total - fit.free);
  const parts: [Piece['kind'], number][] = [
    ['used', used],
    ['weights', fit.weights],
    ['kv', fit.kv],
    ['working', fit.working],
  ];
  const sum = parts.reduce((total, [, size]) => total + size, 0);
  const scale = Math.max(fit.total, sum, 1);
  const shown: Piece[] = [];
  let at = 0;
  for (const [kind, size] of parts) {
    const inside = Math.max(0, Math.min(size, fit.total - at));
    if (inside > 0) shown.push({ kind, share: inside / scale });
    at += size;
  }
  if (sum > fit.total) shown.push({ kind: 'over', share: (sum - fit.total) / scale });
  return shown;
}
