/** One question that is answered twice, side by side: by two models, or by one that is set in two ways. */

import type { ChatSettings } from '../../bindings/ChatSettings';
import type { ChatView } from '../../bindings/ChatView';
import type { StoredMessage } from '../../bindings/StoredMessage';
import type { Conversation } from './conversation.svelte';

/** How the second answer is asked for, and what a person calls that. */
export interface Variant {
  name: string;
  change: Partial<ChatSettings>;
}

export class SideBySide {
  /** How the second answer to the next question is asked for; `null`: there will be one answer. */
  second = $state.raw<Variant | null>(null);
  /** The answer of the branch that has another beside it. */
  first = $state<string | null>(null);
  /** The one beside it, as far as it was stored. */
  beside = $state.raw<StoredMessage | null>(null);

  constructor(private readonly conversation: Conversation) {}

  /** The settings of the next question's two answers, given once; `null` for one answer. */
  take(settings: ChatSettings): [ChatSettings, ChatSettings] | null {
    const { second } = this;
    this.leave();
    this.second = null;
    return second && [settings, { ...settings, ...second.change }];
  }

  /** Shows two answers that were begun. */
  show(first: StoredMessage, beside: StoredMessage): void {
    [this.first, this.beside] = [first.id, beside];
    this.conversation.follow(beside);
  }

  /** Shows as columns what the host says is being written beside the branch's last answer. */
  look({ messages, beside }: ChatView): void {
    const [last, other] = [messages.at(-1), beside[0]];
    if (last && other) [this.first, this.beside] = [last.id, other];
    else if (!messages.some(({ id }) => id === this.first)) this.leave();
  }

  /** Keeps the last words of the one beside the branch. */
  ended(message: StoredMessage): void {
    if (message.id === this.beside?.id) this.beside = message;
  }

  /** Goes on with one of the two; the other stays as a branch beside it. */
  async keep(message: string): Promise<void> {
    const other = message !== this.first;
    this.leave();
    if (other) await this.conversation.showBranch(message);
  }

  /** Shows one answer alone. */
  leave(): void {
    [this.first, this.beside] = [null, null];
  }
}
