/** One question that is answered twice, side by side: by two models, or by one that is set in two ways. */

import type { ChatSettings } from '../../bindings/ChatSettings';
import type { ChatView } from '../../bindings/ChatView';
import type { StoredMessage } from '../../bindings/StoredMessage';
import type { Conversation } from './conversation.svelte';

/** The variant for the second answer, and its name. */
export interface Variant {
  name: string;
  change: Partial<ChatSettings>;
}

export class SideBySide {
  /** The variant of the next question's second answer; `null` for one answer. */
  second = $state.raw<Variant | null>(null);
  /** The answer of the branch that has another next to it. */
  first = $state<string | null>(null);
  /** The other answer, as far as it is stored. */
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

  /** Shows answers as columns if the host reports another one next to the branch's last. */
  look({ messages, beside }: ChatView): void {
    const [last, other] = [messages.at(-1), beside[0]];
    if (last && other) [this.first, this.beside] = [last.id, other];
    else if (!messages.some(({ id }) => id === this.first)) this.leave();
  }

  /** Stores the end of the other answer. */
  ended(message: StoredMessage): void {
    if (message.id === this.beside?.id) this.beside = message;
  }

  /** Continues with one of the two and its model; the other stays as a branch. */
  async keep(message: string): Promise<void> {
    const { beside, conversation } = this;
    const other = message === beside?.id;
    const model = other ? beside.model : conversation.lastAnswer?.model;
    this.leave();
    if (other) await conversation.showBranch(message);
    if (model && model !== conversation.settings.model) await conversation.changeSettings({ model });
  }

  /** Shows one answer alone. */
  leave(): void {
    [this.first, this.beside] = [null, null];
  }
}
