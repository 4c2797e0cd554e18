/** The fake host's check of citations: numbers of a sentence that none of its passages has. The app knows quotations, too. */

import type { CheckedCitation } from '../../bindings/CheckedCitation';
import type { CheckedCitations } from '../../bindings/CheckedCitations';
import type { QuotedPassage } from '../../bindings/QuotedPassage';
import type { StoredMessage } from '../../bindings/StoredMessage';

const MARK = /\[(\d{1,4}(?:\s*[,;–-]\s*\d{1,4})*)\](?!\()/g;

/** The passages of messages, the results of tools among them. */
export function passagesOf(messages: readonly StoredMessage[]): QuotedPassage[] {
  return messages.flatMap(({ parts }) => parts.flatMap((part) => (part.kind === 'passages' ? part.passages : [])));
}

/** The numbers of a mark: `1, 3` and `2-4`. */
function numbersIn(list: string): number[] {
  return list.split(/[,;]/).flatMap((part) => {
    const [first = 0, last = first] = part.split(/[–-]/).map(Number);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
  });
}

export function checkCitations(text: string, given: readonly QuotedPassage[]): CheckedCitations {
  const citations: CheckedCitation[] = [];
  let unmarked = 0;
  for (const sentence of text.replace(/```[^]*?```|`[^`]*`/g, '').match(/[^.!?\n]+(?:[.!?]+(?:\s*\[[\d,;–\s-]+\])*|\n|$)/g) ?? []) {
    const numbers = [...sentence.matchAll(MARK)].flatMap(([, list = '']) => numbersIn(list));
    const named = given.filter(({ number }) => numbers.includes(number));
    const claims = sentence.replace(MARK, ' ').match(/\d+(?:[.,:]\d+)*/g) ?? [];
    const missing = claims.filter((claim) => !named.some((passage) => passage.text.includes(claim)));
    if (numbers.length === 0 && claims.length > 0) unmarked += 1;
    for (const number of numbers) {
      const known = named.some((passage) => passage.number === number);
      const verdict: CheckedCitation['verdict'] = !known
        ? { kind: 'dangling' }
        : claims.length === 0
          ? { kind: 'unchecked' }
          : missing.length === 0
            ? { kind: 'supported' }
            : { kind: 'unsupported', missing };
      citations.push({ number, sentence: sentence.trim(), verdict });
    }
  }
  return { citations, unmarked };
}
