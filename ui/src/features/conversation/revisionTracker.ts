/** The shown revision of a chat: the window reads the chat again only if another one has changed it. */

import type { ChatSummary } from '../../bindings/ChatSummary';
import type { StoredMessage } from '../../bindings/StoredMessage';
import type { Turn } from '../../bindings/Turn';

export class RevisionTracker {
  #summary: ChatSummary | null = null;

  /** All of this state is shown, or about to be read. */
  show(summary: ChatSummary): void {
    this.#summary = summary;
  }

  /** True if the list reports a newer revision. A list older than the changes made here reports nothing. */
  lacks({ id, revision, running }: ChatSummary): boolean {
    const shown = this.#summary;
    return id !== shown?.id || revision > shown.revision || (revision === shown.revision && running !== shown.running);
  }

  /**
   * Records a turn that was added to these messages: nothing else is new, unless the chat was changed elsewhere
   * meanwhile.
   */
  added({ question, revision_before, revision }: Turn, messages: readonly StoredMessage[]): void {
    const known = question.parent === null || messages.some(({ id }) => id === question.parent);
    if (known && this.#summary?.id === question.chat && this.#summary.revision === revision_before)
      this.#summary = { ...this.#summary, revision, running: true };
  }

  /**
   * The end of an answer is shown, which is one change of its chat. Of one that failed it is not sure that it was
   * stored.
   */
  ended({ chat, state }: StoredMessage): void {
    const stored = state === 'complete' || state === 'stopped';
    if (stored && this.#summary?.id === chat)
      this.#summary = { ...this.#summary, revision: this.#summary.revision + 1, running: false };
  }
}
