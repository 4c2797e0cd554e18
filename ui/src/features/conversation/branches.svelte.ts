/** Edits of the open chat's tree: rewriting, deleting and forking of questions and answers. */

import type { DeleteScope } from '../../bindings/DeleteScope';
import type { StoredMessage } from '../../bindings/StoredMessage';
import { t } from '../../locales';
import type { Platform } from '../../host';
import type { Conversation } from './conversation.svelte';
import { attempt, type Reporter } from '../../design/toasts.svelte';
import type { Undo } from '../../stores/undo.svelte';

export class Branches {
  /** The message that is being written over. */
  editing = $state<string | null>(null);

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Reporter,
    private readonly undo: Undo,
    private readonly conversation: Conversation,
  ) {}

  /** Stores an edited version of a message next to the original. */
  async write(message: StoredMessage, text: string): Promise<void> {
    const done =
      message.role === 'user'
        ? await this.conversation.sendInstead(message, text)
        : await this.conversation.changeBranch(() => this.platform.editAnswer(message.id, text));
    // The text stays in its field if it could not be stored.
    if (done && this.editing === message.id) this.editing = null;
  }

  /** Deletes a message and offers to take that back. */
  async remove(message: StoredMessage, scope: DeleteScope): Promise<void> {
    await attempt(this.toasts, async () => {
      const trash = await this.platform.deleteMessage(message.id, scope);
      this.undo.offer(t('message.deleted'), () => this.#restore(trash), `deleted ${trash}`);
      await this.conversation.reload();
    });
  }

  async #restore(trash: string): Promise<void> {
    await attempt(this.toasts, async () => {
      const { id } = await this.platform.restoreChat(trash);
      if (id === this.conversation.id) await this.conversation.reload();
      else await this.conversation.open(id);
    });
  }

  /** Takes the chat up to this message along into a new chat, and opens that. */
  async fork(message: StoredMessage, title: string): Promise<void> {
    await attempt(this.toasts, async () => {
      const { id } = await this.platform.forkChat(message.id, t('message.forkTitle', { title }));
      await this.conversation.open(id);
    });
  }
}
