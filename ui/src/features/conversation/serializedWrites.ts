/**
 * The order in which settings of chats are written: the host runs calls side by side, and each call writes all settings
 * of its chat.
 */

import type { ChatSettings } from '../../bindings/ChatSettings';
import { asHostError, type HostError, type Platform } from '../../host/types';

export class SerializedWrites {
  #last: Promise<void> = Promise.resolve();
  #under = 0;
  #chat: string | null = null;
  /** The last settings that the host accepted of a series; they hold if the newest ones are refused. */
  #accepted: ChatSettings | null = null;

  /** True while settings of this chat are on their way, so that a view of the chat may hold older ones. */
  pending(chat: string | null): boolean {
    return this.#under > 0 && this.#chat === chat;
  }

  constructor(private readonly platform: Pick<Platform, 'checkChatSettings' | 'setChatSettings'>) {}

  /** Changes some settings of a chat, a new one if it has no id; why that was refused, then nothing is changed. */
  async change(
    chat: { readonly id: string | null; settings: ChatSettings },
    change: Partial<ChatSettings>,
  ): Promise<HostError | null> {
    const { id, settings: before } = chat;
    const after = (chat.settings = { ...before, ...change });
    try {
      await this.#write(id, before, after, () =>
        id === null ? this.platform.checkChatSettings(after) : this.platform.setChatSettings(id, after),
      );
      return null;
    } catch (reason) {
      if (chat.settings === after) chat.settings = this.#accepted ?? before;
      return asHostError(reason);
    }
  }

  /** Makes the call that changes settings when those before it have ended; it ends as the call does. */
  async #write(
    chat: string | null,
    before: ChatSettings,
    after: ChatSettings,
    call: () => Promise<void>,
  ): Promise<void> {
    if (!this.pending(chat)) this.#accepted = before;
    this.#under += 1;
    this.#chat = chat;
    const write = this.#last.catch(() => undefined).then(call);
    this.#last = write;
    try {
      await write;
      if (this.#chat === chat) this.#accepted = after;
    } finally {
      this.#under -= 1;
    }
  }

  /**
   * Waits for writes in progress, so that the next question is asked with them. Throws the reason if the newest was
   * refused meanwhile.
   */
  async landed(): Promise<void> {
    if (this.#under > 0) await this.#last;
  }
}
