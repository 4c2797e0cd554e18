/** The cost of reading all documents, in words. */

import type { ReadingCost } from '../bindings/ReadingCost';
import { t } from '../locales';
import { roughTime } from './quantities';

/** `Reads 212 passages in 14 parts, about 46,000 tokens`, and the estimated time if the model was measured. */
export function readingCostText({ passages, parts, tokens, seconds }: ReadingCost): string[] {
  const cost = t('reading.cost', {
    passages: t('documents.passages', { count: passages }),
    parts: t('reading.parts', { count: parts }),
    tokens: t('amount.tokens', { count: rounded(tokens) }),
  });
  return [cost, ...(seconds === null ? [] : [t('reading.time', { duration: roughTime(seconds) })])];
}

/** Two digits of a number: the rest of an estimate says nothing. */
function rounded(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value))) - 1);
  return Math.round(value / unit) * unit;
}
