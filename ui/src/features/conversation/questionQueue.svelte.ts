/** Questions that wait for the answer before them, one for each chat. */

import { SvelteMap } from 'svelte/reactivity';

import type { Content } from '../../bindings/Content';
import type { StoredMessage } from '../../bindings/StoredMessage';
import { words } from '../../shared/messageParts';
import { goesOn, isCutOff } from '../../shared/turns';
import type { DraftItem } from './draft.svelte';

/** A question that is sent as soon as the answer before it has ended. */
export interface QueuedQuestion {
  readonly text: string;
  readonly items: readonly DraftItem[];
}

export class QuestionQueue {
  readonly #waiting = new SvelteMap<string, QueuedQuestion>();

  /** The queued question of a chat. */
  of(chat: string | null): QueuedQuestion | null {
    return (chat !== null && this.#waiting.get(chat)) || null;
  }

  /** Queues a question. */
  add(chat: string, { text, items }: QueuedQuestion): void {
    const before = this.of(chat);
    const texts = [before?.text ?? '', text.trim()].filter(Boolean);
    this.#waiting.set(chat, { text: texts.join('\n\n'), items: [...(before?.items ?? []), ...items] });
  }

  /** Takes it out. */
  take(chat: string): QueuedQuestion | null {
    const queued = this.of(chat);
    this.#waiting.delete(chat);
    return queued;
  }

  /** The answer that a queued question waited for, `null` if that was cut off; nothing while another one follows. */
  due(chat: string, messages: readonly StoredMessage[]): { after: StoredMessage | null } | null {
    const last = messages.findLast(({ role }) => role === 'assistant');
    if (!this.of(chat) || !last || goesOn(last)) return null;
    return { after: last.calls.some(isCutOff) ? null : last };
  }

  /** Its stored form: before the draft of its chat, so that it is part of the draft if the window closes first. */
  kept(chat: string): Content[] {
    const queued = this.of(chat);
    return queued
      ? [...contentOf(queued).filter((part) => part.kind !== 'text'), ...words(queued.text && `${queued.text}\n\n`)]
      : [];
  }

  /** A stored draft without its chat's queued question. */
  withoutQueued(chat: string, draft: readonly Content[]): readonly Content[] {
    const kept = this.kept(chat);
    const same = kept.every((part, index) => JSON.stringify(part) === JSON.stringify(draft[index]));
    return same ? draft.slice(kept.length) : draft;
  }
}

/** The parts of a question. */
export function contentOf({ text, items }: QueuedQuestion): Content[] {
  return [...items.flatMap(({ content }) => content ?? []), ...words(text.trim())];
}
