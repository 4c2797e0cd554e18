/** The order in which settings of chats are written: the host runs calls side by side, and each call writes all settings of its chat. */

export class SettingsWrites {
  #last: Promise<void> = Promise.resolve();
  #under = 0;
  #chat: string | null = null;

  /** Whether settings of this chat are on their way, so that a view of the chat may hold older ones. */
  pending(chat: string | null): boolean {
    return this.#under > 0 && this.#chat === chat;
  }

  /** Makes the call when those before it have ended; it ends as the call does. */
  async write(chat: string | null, call: () => Promise<void>): Promise<void> {
    this.#under += 1;
    this.#chat = chat;
    const write = this.#last.catch(() => undefined).then(call);
    this.#last = write;
    try {
      await write;
    } finally {
      this.#under -= 1;
    }
  }

  /** Waits for what is on its way, so that what is asked next is answered under it. Throws why the newest was refused, if it was meanwhile. */
  async landed(): Promise<void> {
    if (this.#under > 0) await this.#last;
  }
}
