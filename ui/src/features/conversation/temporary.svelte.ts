/** The temporary chat: nothing of it is written, and it ends when it is left. */

import type { Platform } from '../../host';
import { attempt, type Reporter } from '../../design/toasts.svelte';
import type { Conversation } from './conversation.svelte';

export class Temporary {
  /** True if the open chat is one. */
  open = $state(false);
  /** All of this window, those that were left among them. */
  readonly #ids = new Set<string>();
  #closing: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Reporter,
    private readonly conversation: Conversation,
  ) {}

  /** True if nothing of this chat may be written. */
  has(chat: string): boolean {
    return this.#ids.has(chat);
  }

  /** Begins one, with the settings of the new chat that it takes the place of. */
  async begin(): Promise<void> {
    const { conversation } = this;
    const settings = conversation.id === null ? conversation.settings : null;
    conversation.openNew();
    await attempt(this.toasts, async () => {
      await this.#closing;
      const view = await this.platform.beginTemporaryChat(settings ?? (await this.platform.newChatSettings()));
      this.#ids.add(view.summary.id);
      if (conversation.id === null) conversation.enter(view);
      else await this.platform.closeTemporaryChat();
    });
  }

  /** Opens the one that is there, because the page was loaded anew; says whether there was one. */
  async reopen(): Promise<boolean> {
    const view = await this.platform.temporaryChat().catch(() => null);
    if (!view) return false;
    this.#ids.add(view.summary.id);
    this.conversation.enter(view);
    return true;
  }

  /** Makes it a normal chat. Returns true if that succeeded. */
  async keep(): Promise<boolean> {
    const { id } = this.conversation;
    const kept = await attempt(this.toasts, () => this.platform.keepTemporaryChat());
    if (!kept || id === null) return kept;
    this.#ids.delete(id);
    if (this.conversation.id !== id) return true;
    this.open = false;
    this.conversation.becomeKept(id);
    return true;
  }

  /** Ends it, if it is open. */
  leave(): void {
    if (this.open) this.#closing = this.platform.closeTemporaryChat().catch(() => {});
    this.open = false;
  }
}
