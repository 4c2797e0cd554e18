/** The tree of a chat of the fake host, as pure functions. */

import type { ChatList } from '../../bindings/ChatList';
import type { ChatSettings } from '../../bindings/ChatSettings';
import type { ChatSummary } from '../../bindings/ChatSummary';
import type { ChatView } from '../../bindings/ChatView';
import type { Content } from '../../bindings/Content';
import type { DeletedMessages } from '../../bindings/DeletedMessages';
import type { Error as HostError } from '../../bindings/Error';
import type { Part } from '../../bindings/Part';
import type { ScrollPlace } from '../../bindings/ScrollPlace';
import type { StoredMessage } from '../../bindings/StoredMessage';
import { textOf } from '../../shared/messageParts';

/** A chat of the fake host. */
export interface Chat {
  summary: ChatSummary;
  settings: ChatSettings;
  draft: Content[];
  messages: StoredMessage[];
  /** The last message of the branch that is shown. */
  leaf: string | null;
  /** The time at which it was put into the trash. */
  trashed: number | null;
  place: ScrollPlace | null;
  /** Puts messages back that were deleted out of a chat; returns that chat. */
  putBack: (() => Chat) | null;
  /** Those messages. */
  cut: DeletedMessages | null;
}

/** The last two states of the list of chats that a window was given. */
export class ListSnapshots {
  #made = 0;
  #last: { snapshot: number; chats: Map<string, string> }[] = [];

  /** These chats, or the changes of them since a snapshot that is known. */
  list(chats: ChatSummary[], since: number | null): ChatList {
    const before = this.#last.find(({ snapshot }) => snapshot === since)?.chats;
    const now = new Map(chats.map((chat) => [chat.id, JSON.stringify(chat)]));
    this.#last = [...this.#last.slice(-1), { snapshot: (this.#made += 1), chats: now }];
    const gone = [...(before?.keys() ?? [])].filter((id) => !now.has(id));
    return { snapshot: this.#made, whole: !before, chats: chats.filter(({ id }) => before?.get(id) !== now.get(id)), gone };
  }
}

/** The settings for a chat's next turn: it keeps the model of its first answer. */
export function settingsOf({ settings, messages }: Chat): ChatSettings {
  const first = messages.find((message) => message.settings !== null);
  return { ...settings, model: settings.model ?? first?.model ?? null };
}

/** A chat with the branch that is shown. */
export function viewOf(chat: Chat): ChatView {
  const branch: StoredMessage[] = [];
  for (let id = chat.leaf; id !== null; ) {
    const message = chat.messages.find((other) => other.id === id);
    if (!message) break;
    branch.unshift(message);
    id = message.parent;
  }
  const last = branch.at(-1);
  const beside = chat.messages.filter((other) => last !== undefined && other.parent === last.parent && other.id !== last.id && other.state === 'streaming');
  return { summary: chat.summary, settings: settingsOf(chat), draft: chat.draft, scroll_place: chat.place, messages: branch, beside };
}

/** The number of messages of a long chat that are given first. */
const NEWEST = 100;
/** The number of earlier ones that are given at once. */
export const EARLIER = 500;

/** The end of a branch that a window is given first; it reaches beyond the place that the chat was scrolled to. */
export function newest(branch: readonly StoredMessage[], place: ScrollPlace | null): StoredMessage[] {
  const at = branch.findIndex(({ id }) => id === place?.message);
  return branch.slice(-NEWEST - (at < 0 ? 0 : branch.length - 1 - at));
}

/** The summary that the fake model writes. */
export const SUMMARY = 'They spoke of squares from 1 to 4 and how to compute them in Rust.';

/** The ids of a message and of everything after it; whatever follows `end` is left out. */
export function below(chat: Chat, root: string, end: string | null): Set<string> {
  const found = new Set([root]);
  for (const { id, parent } of chat.messages) if (parent !== null && parent !== end && found.has(parent)) found.add(id);
  return found;
}

/** The newest end of the branches through a message. */
export function leafBelow(chat: Chat, id: string): string {
  const all = below(chat, id, null);
  return chat.messages.findLast((message) => all.has(message.id) && !chat.messages.some(({ parent }) => parent === message.id))?.id ?? id;
}

/** Gives every message the list of its siblings. */
export function relink(chat: Chat): void {
  chat.messages = chat.messages.map((message) => ({ ...message, siblings: chat.messages.filter(({ parent }) => parent === message.parent).map(({ id }) => id) }));
}

/** The tokens of the context of these messages with a question after them: one for each four letters. */
export function usedBy(messages: readonly StoredMessage[], question: readonly Content[]): number {
  const rest = messages.slice(messages.findLastIndex((message) => message.compaction_mark !== null) + 1);
  return Math.ceil([...rest.map((message) => textOf(message.parts)), textOf(question)].join('').length / 4);
}

/** True if an answer broke off after it had said something; the history's rule knows more cases. */
export function endedEarly({ parts, state, finish_reason }: Partial<StoredMessage>): boolean {
  return (parts?.length ?? 0) > 0 && (state === 'stopped' || state === 'interrupted' || state === 'failed' || finish_reason === 'length');
}

/** The error of a chat that an answer is being written in. */
export function busy(): HostError {
  return { code: 'busy', message: 'This chat is still being answered.' };
}

export function notFound(what: string): HostError {
  return { code: 'not_found', message: `There is no such ${what} any more. Nothing was changed.` };
}

export function textPart(text: string): Part {
  return { kind: 'text', text, started_at: Date.now(), ended_at: Date.now() };
}
