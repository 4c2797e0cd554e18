/** The earlier messages of a long chat. They load while its end is already on screen. */

import type { ChatView } from '../../bindings/ChatView';
import type { StoredMessage } from '../../bindings/StoredMessage';
import type { Platform } from '../../host';
import type { RequestFrame } from './liveAnswer.svelte';
import type { Conversation } from './conversation.svelte';
import type { Reporter } from '../../design/toasts.svelte';

export class HistoryPager {
  /** Settles once the shown branch is loaded in full, or could not be read. */
  #whole: Promise<void> = Promise.resolve();
  /** A counter that invalidates results for a branch that is not shown any more. */
  #reading = 0;

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Reporter,
    private readonly requestFrame: RequestFrame,
    private readonly conversation: Conversation,
  ) {}

  /** True if a message is on the branch shown; certain only after the full branch was read. */
  async holds(message: string): Promise<boolean> {
    if (this.#known(message) < 0) await this.#whole;
    return this.#known(message) >= 0;
  }

  /**
   * A view of the open chat that can replace the shown one: if its beginning is unknown here, all of it is read first,
   * so that nothing jumps.
   */
  async connected(view: ChatView): Promise<ChatView> {
    const { id, messages } = this.conversation;
    const [first] = view.messages;
    if (
      view.summary.id !== id ||
      !first ||
      first.parent === null ||
      messages.length === 0 ||
      this.#known(first.parent) >= 0
    )
      return view;
    const reading = ++this.#reading;
    const before = await this.#before(first, reading);
    return { ...view, messages: [...before, ...view.messages] };
  }

  /** The messages to show for this end of a branch: its known beginning stays until it is read again. */
  show(end: readonly StoredMessage[]): readonly StoredMessage[] {
    this.leave();
    const [first] = end;
    if (!first || first.parent === null) return end;
    this.#whole = this.#fill(first, this.#reading);
    return [...this.conversation.messages.slice(0, this.#known(first.parent) + 1), ...end];
  }

  /** Reads nothing more for the branch that was shown. */
  leave(): void {
    this.#reading += 1;
    this.#whole = Promise.resolve();
  }

  async #fill(first: StoredMessage, reading: number): Promise<void> {
    try {
      const before = await this.#before(first, reading);
      if (reading !== this.#reading) return;
      const place = this.conversation.messages.findIndex(({ id }) => id === first.id);
      if (place >= 0) this.conversation.messages = [...before, ...this.conversation.messages.slice(place)];
    } catch (reason) {
      if (reading === this.#reading) this.toasts.report(reason);
    }
  }

  /** All messages before this one, a part in each frame, so that no task is a long one. */
  async #before(first: StoredMessage, reading: number): Promise<StoredMessage[]> {
    const parts: StoredMessage[][] = [];
    let next: StoredMessage | undefined = first;
    while (next && next.parent !== null && reading === this.#reading) {
      await new Promise<void>((resolve) => this.requestFrame(resolve));
      const part: StoredMessage[] = await this.platform.earlierMessages(next.id);
      parts.unshift(part);
      next = part[0];
    }
    return parts.flat();
  }

  #known(message: string): number {
    return this.conversation.messages.findIndex(({ id }) => id === message);
  }
}
