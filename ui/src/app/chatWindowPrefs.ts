/** The chat window's preferences, stored by the host; earlier versions stored them in the web view. */

import type { ChatWindowState } from '../bindings/ChatWindowState';
import type { Content } from '../bindings/Content';
import { words } from '../shared/messageParts';
import type { Platform } from '../host';
import type { LocalPrefs } from '../shared/localPrefs';

const OLD_CHAT = 'ponder.open-chat';
const OLD_DRAFT = 'ponder.new-draft';

/** Reads the window's remembered state. State of an earlier version in `storage` moves to the host, once. */
export async function openChatWindowPrefs(
  platform: Platform,
  storage: Pick<Storage, 'getItem' | 'removeItem'>,
): Promise<LocalPrefs> {
  let state = await platform.chatWindowState();
  const [chat, draft] = [storage.getItem(OLD_CHAT), storage.getItem(OLD_DRAFT)];
  if (chat !== null || draft !== null) {
    state = {
      open_chat: state.open_chat ?? (chat || null),
      new_draft: state.new_draft.length > 0 ? state.new_draft : words(draft ?? ''),
      folded_projects: state.folded_projects,
    };
    await platform.setChatWindowState(state);
    storage.removeItem(OLD_CHAT);
    storage.removeItem(OLD_DRAFT);
  }
  return new ChatWindowPrefs(platform, state);
}

class ChatWindowPrefs implements LocalPrefs {
  #state: ChatWindowState;
  /** Writes one after another, so that the last value is the stored one. */
  #writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly platform: Platform,
    state: ChatWindowState,
  ) {
    this.#state = state;
  }

  get openChat(): string {
    return this.#state.open_chat ?? '';
  }

  set openChat(chat: string) {
    if (chat !== this.openChat) this.#keep({ ...this.#state, open_chat: chat || null });
  }

  get newDraft(): readonly Content[] {
    return this.#state.new_draft;
  }

  set newDraft(draft: readonly Content[]) {
    if (draft.length > 0 || this.newDraft.length > 0) this.#keep({ ...this.#state, new_draft: [...draft] });
  }

  get foldedProjects(): readonly string[] {
    return this.#state.folded_projects;
  }

  set foldedProjects(projects: readonly string[]) {
    this.#keep({ ...this.#state, folded_projects: [...projects] });
  }

  #keep(state: ChatWindowState): void {
    this.#state = state;
    // A history that cannot be written says so wherever a chat is.
    this.#writing = this.#writing
      .then(() => this.platform.setChatWindowState(state))
      .catch((reason: unknown) => console.error(reason));
  }
}
