/** The temporary chat: nothing of it is written, and it ends when it is left. */

import { tick } from 'svelte';

import type { Platform } from '../../host';
import { goesOn } from '../../shared/turns';
import { attempt, type Reporter } from '../../design/toasts.svelte';
import type { Conversation } from './conversation.svelte';

export class Temporary {
  /** True if the open chat is one. */
  open = $state(false);
  /** True while it is being kept, when it can be neither closed nor kept once more. */
  keeping = $state(false);
  /** Set once changes are listened to. */
  #following: Promise<unknown> | null = null;
  /** All of this window, those that were left among them. */
  readonly #ids = new Set<string>();
  #closing: Promise<unknown> = Promise.resolve();
  /** Settles once it is certain whether the last one was kept. */
  #kept: Promise<boolean> = Promise.resolve(true);

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
    // One that cannot be kept is not replaced unseen.
    if (this.keeping && !(await this.#kept)) return;
    const settings = conversation.id === null ? conversation.settings : null;
    conversation.openNew();
    await attempt(this.toasts, async () => {
      await this.#closing;
      const view = await this.platform.beginTemporaryChat(settings ?? (await this.platform.newChatSettings()));
      this.#ids.add(view.summary.id);
      this.#follow();
      if (conversation.id === null) conversation.enter(view);
      else await this.platform.closeTemporaryChat();
    });
  }

  /** Opens the one that is there, because the page was loaded anew; says whether there was one. */
  async reopen(): Promise<boolean> {
    const view = await this.platform.temporaryChat().catch(() => null);
    if (!view) return false;
    this.#ids.add(view.summary.id);
    this.#follow();
    this.conversation.enter(view);
    return true;
  }

  /** Reads it again while its calls of tools wait and run: no list has it, which tells of changes otherwise. */
  #follow(): void {
    const { conversation } = this;
    this.#following ??= this.platform.onChatsChanged(() => {
      const { lastAnswer, running, sending } = conversation;
      if (this.open && !running && !sending && lastAnswer && goesOn(lastAnswer)) void conversation.reload();
    });
  }

  /** Waits until it is certain whether it is kept: a message that is sent meanwhile goes to the chat as it is then. */
  async settled(): Promise<void> {
    await this.#kept;
  }

  /** Makes it a normal chat. Returns true if this call did. */
  async keep(): Promise<boolean> {
    const { id } = this.conversation;
    if (id === null || this.keeping) return false;
    this.keeping = true;
    const call = this.platform.keepTemporaryChat();
    this.#kept = call.then(
      () => true,
      () => false,
    );
    const kept = await this.#kept;
    this.keeping = false;
    const left = this.conversation.id !== id;
    if (kept) this.#ids.delete(id);
    if (kept && !left) {
      this.open = false;
      this.conversation.becomeKept(id);
    }
    if (!kept && left) {
      // It was left as one that is kept, so it is still there. The errors of a chat go when it is left.
      this.conversation.flushDraft();
      await this.reopen();
      await tick();
    }
    return attempt(this.toasts, () => call);
  }

  /** Ends it, if it is open and not to be kept. */
  leave(): void {
    if (this.open && !this.keeping) this.#closing = this.platform.closeTemporaryChat().catch(() => {});
    this.open = false;
  }
}
