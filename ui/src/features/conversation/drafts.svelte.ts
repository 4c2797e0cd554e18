/**
 * Whose each draft is. A draft may be left while its images are read or its question is sent, and is the same one
 * when its chat is opened again.
 */

import type { Content } from '../../bindings/Content';
import type { Platform } from '../../host';
import { Draft } from './draft.svelte';

export class Drafts {
  /** Those that were left while images were being read or a question was being sent, by their chat. */
  readonly #unfinished = new Map<string | null, Draft>();
  /** The chat of each draft; it may be created while its first question is being sent. */
  readonly #chatOf = new WeakMap<Draft, string>();

  constructor(
    private readonly platform: Platform,
    /** Stores the content of a chat's draft; `null` is the new one's. */
    private readonly store: (chat: string | null, content: Content[]) => void,
  ) {}

  /** A draft of this chat, `null`: of the new one, that holds these parts. */
  begin(chat: string | null, parts: readonly Content[]): Draft {
    const draft: Draft = new Draft(
      this.platform,
      parts,
      () => this.chatOf(draft) ?? '',
      (content) => this.store(this.chatOf(draft), content),
    );
    if (chat !== null) this.give(draft, chat);
    return draft;
  }

  /** The draft of a chat that is opened: the one that was left unfinished, or one with these parts. */
  open(chat: string | null, parts: readonly Content[]): Draft {
    return this.#unfinished.get(chat) ?? this.begin(chat, parts);
  }

  /** The chat that a draft belongs to; `null`: the new one. */
  chatOf(draft: Draft): string | null {
    return this.#chatOf.get(draft) ?? null;
  }

  /** Makes a draft that of this chat. */
  give(draft: Draft, chat: string): void {
    this.#chatOf.set(draft, chat);
  }

  /** Moves a draft to the new chat, after that one's own content. */
  moveToNew(draft: Draft, held: readonly Content[]): void {
    this.#chatOf.delete(draft);
    const { text, items } = this.begin(null, held);
    draft.putBack(text, items);
  }

  /** Remembers a draft of which something is still under way. */
  keep(chat: string | null, draft: Draft): void {
    this.#unfinished.set(chat, draft);
  }

  /** Nothing of it is under way any more. */
  release(chat: string | null, draft: Draft): void {
    if (this.#unfinished.get(chat) === draft) this.#unfinished.delete(chat);
  }

  /** Stores a draft before its chat or the window is left. Images that are still being read come to it later. */
  leave(draft: Draft, isShown: () => boolean): void {
    draft.flush();
    if (!draft.reading) return;
    const chat = this.chatOf(draft);
    this.keep(chat, draft);
    void draft.settled().then(() => {
      if (!isShown()) draft.flush();
      this.release(chat, draft);
    });
  }
}
