/** The list of chats. */

import { createContext } from 'svelte';

import type { ChatList } from '../bindings/ChatList';
import type { ChatSummary } from '../bindings/ChatSummary';
import { chatTitle } from '../format/format';
import { t } from '../locales';
import type { Platform, Unsubscribe } from '../host';
import type { Toasts } from '../design/toasts.svelte';
import { Undo } from './undo.svelte';

export class Chats {
  list = $state.raw<readonly ChatSummary[]>([]);
  /** True after the list was read once. */
  listed = $state(false);
  /** The text of the search field. */
  query = $state('');
  #refreshing: Promise<void> | null = null;
  /** The snapshot of the list that the host gave last. */
  #snapshot: number | null = null;
  /** True if something may have changed since the list was requested. */
  #stale = false;

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
    private readonly undo = new Undo(toasts),
  ) {}

  /** Lists the chats and keeps the list current. */
  async open(): Promise<Unsubscribe> {
    const unsubscribe = await this.platform.onChatsChanged(() => void this.refresh());
    await this.refresh();
    return unsubscribe;
  }

  find(id: string | null): ChatSummary | null {
    return this.list.find((chat) => chat.id === id) ?? null;
  }

  /** The title of a chat as it is shown. */
  titleOf(id: string | null): string {
    return chatTitle(this.find(id)?.title ?? '');
  }

  /** Lists the chats again. Changes during the call are listed once more afterwards, no matter how many there are. */
  refresh(): Promise<void> {
    this.#stale = true;
    this.#refreshing ??= this.#refresh();
    return this.#refreshing;
  }

  async #refresh(): Promise<void> {
    while (this.#stale) {
      this.#stale = false;
      await this.toasts.attempt(async () => {
        this.#show(await this.platform.chatsSince(this.#snapshot));
        this.listed = true;
      }, 'chats');
    }
    this.#refreshing = null;
  }

  /** Chats that have not changed stay the same objects, so that derived values, such as their rows, are reused. */
  #show({ snapshot, whole, chats, gone }: ChatList): void {
    this.#snapshot = snapshot;
    for (const { id } of chats) this.undo.settle(`deleted ${id}`);
    for (const id of gone) this.toasts.settle(`chat ${id}`);
    if (whole) return void (this.list = chats);
    if (chats.length === 0 && gone.length === 0 && !this.list.some(({ unread }) => unread)) return;
    const left = new Set([...gone, ...chats.map(({ id }) => id)]);
    // An unread chat becomes a new object each time: the window that has it open reads it as soon as it is visible.
    const kept = this.list.flatMap((chat) => (left.has(chat.id) ? [] : [chat.unread ? { ...chat } : chat]));
    this.list = [...kept, ...chats].sort(inOrder);
  }

  async rename(id: string, title: string): Promise<void> {
    const name = title.trim();
    const chat = this.find(id);
    if (!chat || !name || name === chat.title) return;
    if (await this.#change({ ...chat, title: name }, () => this.platform.renameChat(id, name))) {
      this.undo.push(
        async () =>
          void (await this.#change({ ...chat, title: chat.title }, () => this.platform.renameChat(id, chat.title))),
      );
    }
  }

  async pin(id: string, pinned: boolean): Promise<void> {
    const chat = this.find(id);
    if (chat && (await this.#change({ ...chat, pinned }, () => this.platform.pinChat(id, pinned)))) {
      this.undo.push(async () => void (await this.#change(chat, () => this.platform.pinChat(id, !pinned))));
    }
  }

  /** Moves a chat to the trash and offers to take it back; `restored` is called once that was done. */
  async remove(id: string, restored: () => void): Promise<void> {
    const chat = this.find(id);
    if (!(await this.toasts.attempt(() => this.platform.deleteChat(id), `chat ${id}`))) return;
    this.list = this.list.filter((other) => other.id !== id);
    const text = t('chat.deleted', { title: chatTitle(chat?.title ?? '') });
    this.undo.offer(text, () => this.#restore(id, restored), `deleted ${id}`);
  }

  async #restore(id: string, restored: () => void): Promise<void> {
    await this.toasts.attempt(async () => {
      const chat = await this.platform.restoreChat(id);
      this.list = [...this.list.filter((other) => other.id !== id), chat];
      restored();
    }, `chat ${id}`);
  }

  /** Shows a change at once and takes it back if the host refuses it; says whether it did not. */
  async #change(changed: ChatSummary, call: () => Promise<void>): Promise<boolean> {
    const replace = (chat: ChatSummary) => {
      this.list = this.list.map((other) => (other.id === chat.id ? chat : other));
    };
    const before = this.find(changed.id);
    replace(changed);
    const accepted = await this.toasts.attempt(call, `chat ${changed.id}`);
    if (!accepted && before) replace(before);
    return accepted;
  }
}

/** The order of the list: pinned first, then by when something was last said, newest first. */
function inOrder(a: ChatSummary, b: ChatSummary): number {
  return Number(b.pinned) - Number(a.pinned) || b.updated_at - a.updated_at || (a.id < b.id ? 1 : -1);
}

/** The list of chats. */
export const [useChats, provideChats] = createContext<Chats>();
