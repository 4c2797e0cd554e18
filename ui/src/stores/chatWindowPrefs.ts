/** What the chat window remembers, kept by the host; earlier versions kept it in the web view. */

import type { ChatWindowState } from '../bindings/ChatWindowState';
import type { Platform } from '../platform';
import type { LocalPrefs } from './conversation.svelte';

const FIELDS = { 'open-chat': 'open_chat', 'new-draft': 'new_draft' } as const;
const oldKey = (name: keyof typeof FIELDS): string => `ponder.${name}`;

/** Reads what the window remembers. What an earlier version left in `storage` moves to the host, once. */
export async function openChatWindowPrefs(platform: Platform, storage: Pick<Storage, 'getItem' | 'removeItem'>): Promise<LocalPrefs> {
  let state = await platform.chatWindowState();
  const [chat, draft] = [storage.getItem(oldKey('open-chat')), storage.getItem(oldKey('new-draft'))];
  if (chat !== null || draft !== null) {
    state = { open_chat: state.open_chat ?? (chat || null), new_draft: state.new_draft || (draft ?? '') };
    await platform.setChatWindowState(state);
    storage.removeItem(oldKey('open-chat'));
    storage.removeItem(oldKey('new-draft'));
  }
  return new ChatWindowPrefs(platform, state);
}

class ChatWindowPrefs implements LocalPrefs {
  #state: ChatWindowState;
  /** One after the other, so that the last word is the one that is kept. */
  #writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly platform: Platform,
    state: ChatWindowState,
  ) {
    this.#state = state;
  }

  get(name: keyof typeof FIELDS): string {
    return this.#state[FIELDS[name]] ?? '';
  }

  set(name: keyof typeof FIELDS, value: string): void {
    if (value === this.get(name)) return;
    const state = name === 'open-chat' ? { ...this.#state, open_chat: value || null } : { ...this.#state, new_draft: value };
    this.#state = state;
    // A history that cannot be written says so wherever a chat is.
    this.#writing = this.#writing.then(() => this.platform.setChatWindowState(state)).catch((reason: unknown) => console.error(reason));
  }
}
