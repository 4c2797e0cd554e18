/** The chats of the fake host: looked up, added, changed. */

import type { AnswerEvent } from '../../bindings/AnswerEvent';
import type { CallStatus } from '../../bindings/CallStatus';
import type { ChatSettings } from '../../bindings/ChatSettings';
import type { ChatView } from '../../bindings/ChatView';
import type { Content } from '../../bindings/Content';
import type { ContextUse } from '../../bindings/ContextUse';
import type { Error as HostError } from '../../bindings/Error';
import type { Part } from '../../bindings/Part';
import type { StoredMessage } from '../../bindings/StoredMessage';
import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import type { Platform } from '../types';
import { chatsChanged, type Shared } from './shared';
import { endedEarly, newest, notFound, settingsOf, textPart, usedBy, viewOf, type Chat } from './tree';

/** An answer that is being written. */
export interface RunningAnswer {
  events: AnswerEvent[];
  listeners: ((event: AnswerEvent) => void)[];
  stop: boolean;
  answerNow: boolean;
}

/** A message of which only some fields differ from the usual. */
export type Row = Pick<StoredMessage, 'role' | 'parent' | 'state'> & Partial<StoredMessage>;

export const chatControls = () => ({
  /** The number of the next chat or message. */
  next: 1,
  running: new Map<string, RunningAnswer>(),
  /** Calls of this name are rejected. */
  refuse: null as { call: keyof Platform; error: HostError } | null,
  /** Models whose answers leave no memory for another one; while there are any, no answer begins. */
  waitsFor: [] as readonly string[],
  /** The bytes of a model that is loaded before its answer begins; `null` if it is loaded already. */
  loads: null as number | null,
  /** The id of the temporary chat. */
  temporary: null as string | null,
  /** The call that the next answer ends with. */
  callNext: null as { part: Part; status: CallStatus } | null,
  /** Streams break off after this many events, once. */
  detachAfter: null as number | null,
});

export type Store = Shared & ReturnType<typeof chatControls>;

/** Rejects a call that the test wants to be rejected. */
export function refuse({ refuse: refused }: Store, call: keyof Platform): void {
  if (refused?.call === call) throw refused.error;
}

export function chatOf({ kept }: Store, id: string, trashed = false): Chat {
  const chat = kept.get(id);
  if (!chat || (chat.trashed !== null && !trashed)) throw notFound('chat');
  return chat;
}

export function messageOf({ kept }: Store, id: string): { chat: Chat; message: StoredMessage } {
  for (const chat of kept.values()) {
    const message = chat.messages.find((other) => other.id === id);
    if (message) return { chat, message };
  }
  throw notFound('message');
}

/** The question of a turn, whichever of its messages is given. */
export function questionOf(chat: Chat, message: StoredMessage): StoredMessage {
  let found: StoredMessage | undefined = message;
  while (found && found.role !== 'user') {
    const { parent }: StoredMessage = found;
    found = chat.messages.find((other) => other.id === parent);
  }
  if (!found) throw notFound('question');
  return found;
}

export function isRunning({ running }: Store, chat: Chat): boolean {
  return chat.messages.some((message) => running.has(message.id));
}

/** Counts a change of a chat and announces it. */
export function changed(host: Store, chat: Chat): void {
  chat.summary = { ...chat.summary, revision: chat.summary.revision + 1 };
  chatsChanged(host);
}

/** The chat with the newest messages of the branch that is shown. */
export function shown(chat: Chat): ChatView {
  const view = viewOf(chat);
  return { ...view, messages: newest(view.messages, chat.place) };
}

export function replace(chat: Chat, message: StoredMessage): void {
  chat.messages = chat.messages.map((other) => (other.id === message.id ? { ...message, siblings: other.siblings } : other));
}

export function addMessage(host: Store, chat: Chat, row: Row): StoredMessage {
  const id = `message-${host.next++}`;
  const siblings = [...chat.messages.filter((other) => other.parent === row.parent).map((other) => other.id), id];
  const message: StoredMessage = {
    id, chat: chat.summary.id, parts: [], tool_call_id: null, calls: [], siblings, created_at: Date.now(), finished_at: null, model: null, model_revision: null,
    template_hash: null, settings: null, thinking_ended: false, thinking_tokens: null, finish_reason: null, ended_by: null, error: null, notices: [], usage: null, timing: null, compaction_mark: null, edited: false,
    continuable: endedEarly(row), ...row,
  };
  chat.messages = [...chat.messages.map((other) => (siblings.includes(other.id) ? { ...other, siblings } : other)), message];
  chat.leaf = message.id;
  return message;
}

export function contextOf({ local, app }: Store, chat: Chat, messages: readonly StoredMessage[], question: readonly Content[]): ContextUse {
  const model = local.find(({ reference }) => reference === (settingsOf(chat).model ?? app.default_model));
  return { tokens: usedBy(messages, question), context: model?.context ?? null, estimated: false };
}

/** The ways in which tests and examples fill the store. */
export function fillers(host: Store) {
  const addRow = (chat: Chat, row: Partial<StoredMessage> & Pick<StoredMessage, 'role'>): StoredMessage =>
    addMessage(host, chat, { parent: chat.leaf, state: 'complete', ...row });
  const addTurn = (chat: Chat, text: string, answer: Partial<StoredMessage>): StoredMessage => {
    addRow(chat, { role: 'user', parts: [textPart(text)] });
    const usage = { prompt_tokens: 1162, cached_tokens: 1020, prefilled_tokens: 142, completion_tokens: 187, thinking_tokens: 61 };
    const timing = { load_ms: 0, first_token_ms: 312, prefill_tokens_per_second: 455, decode_tokens_per_second: 41.6 };
    return addRow(chat, { role: 'assistant', model: 'pebble', finish_reason: 'stop', usage, timing, ...answer });
  };
  return {
    /** All messages of a chat, whichever branch they are on. */
    rows: (id: string): readonly StoredMessage[] => chatOf(host, id).messages,
    addChat: (title: string, updated: number, settings?: ChatSettings): Chat => addChat(host, title, updated, settings),
    /** Adds a message below the last one of a chat's branch. */
    addRow,
    /** Adds a question and its finished answer. */
    addTurn,
    /** Adds a question of another window or program, answered at once. */
    addForeignTurn(id: string, text: string, answer: string): void {
      const chat = chatOf(host, id);
      addTurn(chat, text, { parts: [textPart(answer)] });
      changed(host, chat);
    },
  };
}

export function addChat(host: Store, title: string, updated: number, settings: ChatSettings = DEFAULT_CHAT_SETTINGS): Chat {
  const id = `chat-${host.next++}`;
  const summary = { id, title, created_at: updated, updated_at: updated, pinned: false, running: false, unread: false, has_draft: false, revision: 0, archived: false, project: null };
  const chat: Chat = { summary, settings, draft: [], messages: [], leaf: null, trashed: null, place: null, putBack: null, cut: null };
  host.kept.set(id, chat);
  return chat;
}
