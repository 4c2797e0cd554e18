/** The passages that the open chat was given, and the citations of its answers, held against them by the host. */

import { createContext } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';

import type { CheckedCitation } from '../../../bindings/CheckedCitation';
import type { CheckedCitations } from '../../../bindings/CheckedCitations';
import type { Coverage } from '../../../bindings/Coverage';
import type { QuotedPassage } from '../../../bindings/QuotedPassage';
import type { StoredMessage } from '../../../bindings/StoredMessage';
import type { Conversation } from '../../../features/conversation/conversation.svelte';
import { placeOf, sourcesText } from '../../../format/passages';
import type { Platform } from '../../../host';
import { t } from '../../../locales';
import { citedNumbers, type Citations as Marks, type MarkLook } from '../../../markdown/citationMarks';
import { plainName } from '../../../shared/displayNames';
import { textOf } from '../../../shared/messageParts';
import { passageParts } from '../../../shared/passages';
import { turnText } from '../../../shared/turns';

type Passages = ReadonlyMap<number, QuotedPassage>;

const NONE: Passages = new Map();

/** The passages of a turn, and how much of the documents they and earlier ones are. */
export interface Sources {
  readonly passages: readonly QuotedPassage[];
  readonly coverage: Coverage;
}

/** The words at a mark that is pointed at. */
export interface Card {
  readonly mark: HTMLElement;
  readonly passages: readonly QuotedPassage[];
  /** All that is to say about the mark: the place, and what is wrong. */
  readonly label: string;
}

export class Citations {
  /** The card at a mark. */
  card = $state.raw<Card | null>(null);
  /** The passages that are listed. */
  listed = $state.raw<readonly QuotedPassage[] | null>(null);
  /** The passage that is shown in its file. */
  viewed = $state.raw<QuotedPassage | null>(null);

  readonly #checked = new SvelteMap<string, CheckedCitations>();
  readonly #asked = new Set<string>();
  readonly #marks = new Map<string, { passages: Passages; checked: CheckedCitations | null; marks: Marks }>();
  #parts: readonly (readonly QuotedPassage[])[] = [];
  #known: Passages = NONE;
  /** The passages of the branch that is shown, by their numbers; the same map as long as they are the same. */
  readonly #passages = $derived.by((): Passages => {
    const { messages } = this.conversation;
    const parts = messages.flatMap((message) => passageParts(message.parts).map(({ passages }) => passages));
    const same = parts.length === this.#parts.length && parts.every((one, at) => one === this.#parts[at]);
    if (same) return this.#known;
    this.#parts = parts;
    this.#known = new Map(parts.flat().map((passage) => [passage.number, passage]));
    return this.#known;
  });

  constructor(
    private readonly platform: Pick<Platform, 'citations'>,
    private readonly conversation: Conversation,
  ) {}

  /** The passages of a turn with those of its question; `null` if it has none. */
  sourcesOf(rows: readonly StoredMessage[]): Sources | null {
    const question = this.conversation.messages.find(({ id }) => id === rows[0]?.parent);
    const parts = [...(question?.role === 'user' ? [question] : []), ...rows].flatMap((row) => passageParts(row.parts));
    const last = parts.at(-1);
    return last ? { passages: parts.flatMap(({ passages }) => passages), coverage: last.coverage } : null;
  }

  /** The marks of an answer; `null` as long as the chat has no passages. */
  marksOf({ id }: StoredMessage): Marks | null {
    const passages = this.#passages;
    if (passages.size === 0) return null;
    const checked = this.#checked.get(id) ?? null;
    const known = this.#marks.get(id);
    if (known?.passages === passages && known.checked === checked) return known.marks;
    const marks = this.#marksFor(passages, checked);
    this.#marks.set(id, { passages, checked, marks });
    return marks;
  }

  /** Has the host hold an answer against its passages, once it is complete. */
  check({ id, role, state, parts }: StoredMessage): void {
    if (role !== 'assistant' || state === 'streaming' || this.#passages.size === 0 || this.#asked.has(id)) return;
    if (citedNumbers(textOf(parts)).length === 0) return;
    this.#asked.add(id);
    this.platform.citations(id).then(
      (checked) => this.#checked.set(id, checked),
      // Marks without a verdict still open their passages.
      () => {},
    );
  }

  /** The list of sources that follows a turn when it is copied; empty if it cites none. */
  sourcesOfText(rows: readonly StoredMessage[]): string {
    const cited = citedNumbers(turnText(rows)).flatMap((number) => this.#passages.get(number) ?? []);
    return sourcesText(cited);
  }

  #marksFor(passages: Passages, checked: CheckedCitations | null): Marks {
    const found = (numbers: readonly number[]): QuotedPassage[] =>
      numbers.flatMap((number) => passages.get(number) ?? []);
    return {
      looks: (text, marks) => {
        const own = checked?.citations.filter(({ sentence }) => text.includes(sentence)) ?? [];
        const verdicts = new Verdicts(own, marks);
        return marks.map((numbers): MarkLook => {
          const told = numbers.map((number) => verdicts.next(number));
          const wrongs = [...new Set(numbers.flatMap((number, at) => wrongText(number, told[at] ?? null)))];
          const places = numbers.map((number, at) =>
            placeText(number, passages.get(number) ?? null, told[at] ?? null),
          );
          return { label: [...places, ...wrongs].filter(Boolean).join('\n'), wrong: wrongs.length > 0 };
        });
      },
      point: (mark, numbers, label) => (this.card = { mark, passages: found(numbers), label }),
      leave: () => (this.card = null),
      open: (numbers) => {
        const wanted = found(numbers);
        const [first] = wanted;
        if (wanted.length === 1 && first) this.viewed = first;
        else if (wanted.length > 1) this.listed = wanted;
      },
    };
  }
}

/**
 * The verdicts of the marks of a text, in their order. Host and page may differ about a mark, as in a table that is
 * folded: then a number has the verdict that all its marks have, or none.
 */
class Verdicts {
  readonly #left = new Map<number, (CheckedCitation['verdict'] | null)[]>();

  constructor(citations: readonly CheckedCitation[], marks: readonly (readonly number[])[]) {
    for (const number of new Set(marks.flat())) {
      const drawn = marks.flat().filter((other) => other === number).length;
      const own = citations.filter((citation) => citation.number === number).map(({ verdict }) => verdict);
      const alike = new Set(own.map((verdict) => JSON.stringify(verdict))).size === 1;
      const shared = alike ? (own[0] ?? null) : null;
      this.#left.set(number, own.length === drawn ? own : Array.from({ length: drawn }, () => shared));
    }
  }

  next(number: number): CheckedCitation['verdict'] | null {
    return this.#left.get(number)?.shift() ?? null;
  }
}

function placeText(number: number, passage: QuotedPassage | null, verdict: CheckedCitation['verdict'] | null): string {
  if (passage) return t('citation.source', { number, place: placeOf(passage) });
  return verdict?.kind === 'dangling' ? '' : t('citation.earlier', { number });
}

/** The words about what is wrong with a mark. */
function wrongText(number: number, verdict: CheckedCitation['verdict'] | null): string[] {
  switch (verdict?.kind) {
    case 'dangling':
      return [t('citation.dangling', { number })];
    case 'unsupported':
      return [t('citation.unsupported', { missing: verdict.missing.map(plainName).join(', ') })];
    case 'supported':
    case 'unchecked':
    case undefined:
      return [];
  }
}

/** The passages and citations of the open chat. */
export const [useCitations, provideCitations] = createContext<Citations>();
