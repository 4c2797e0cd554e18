/**
 * An in-memory host for developing in a browser and for tests. It keeps the rules of the real one: events are numbered
 * from 1, `attach` tells everything after a number, and an answer ends with exactly one `finished`.
 *
 * In a browser `?pace=MS` sets the time between two pieces.
 */

import type { AnswerBody } from '../bindings/AnswerBody';
import type { AnswerEvent } from '../bindings/AnswerEvent';
import type { AnswerState } from '../bindings/AnswerState';
import type { ChatList } from '../bindings/ChatList';
import type { ChatSettings } from '../bindings/ChatSettings';
import type { ChatSummary } from '../bindings/ChatSummary';
import type { ChatView } from '../bindings/ChatView';
import type { Content } from '../bindings/Content';
import type { ContextUse } from '../bindings/ContextUse';
import type { DeleteScope } from '../bindings/DeleteScope';
import type { MemoryCut } from '../bindings/MemoryCut';
import type { ScrollPlace } from '../bindings/ScrollPlace';
import type { ChatWindowState } from '../bindings/ChatWindowState';
import type { Error as HostError } from '../bindings/Error';
import type { Notice } from '../bindings/Notice';
import type { Part } from '../bindings/Part';
import type { Position } from '../bindings/Position';
import type { StoredMessage } from '../bindings/StoredMessage';
import type { Turn } from '../bindings/Turn';
import type { TurnWithTwoAnswers } from '../bindings/TurnWithTwoAnswers';
import { appendContent, attachmentsOf, textOf } from '../shared/messageParts';
import type { WindowName } from '../bindings/WindowName';
import { checkSettings, FakeData } from './fakeData';
import { below, busy, EARLIER, Editions, endedEarly, leafBelow, newest, relink, SUMMARY, usedBy, viewOf, type Chat } from './fakeTree';
import { pieces, restOf, scriptFor } from './fakeText';
import { DEFAULT_CHAT_SETTINGS, type Platform } from './types';

interface RunningAnswer {
  events: AnswerEvent[];
  listeners: ((event: AnswerEvent) => void)[];
  stop: boolean;
  answerNow: boolean;
}

/** A host with these chats; `pace` is the time between two pieces, in milliseconds. */
export class FakeHost extends FakeData implements Platform {
  readonly #running = new Map<string, RunningAnswer>();
  readonly #editions = new Editions();
  /** Chats whose summary is to be given up. */
  readonly #stopped = new Set<string>();
  #windowState: ChatWindowState = { open_chat: null, new_draft: [] };
  #next = 1;
  /** Calls of this name are rejected. */
  refuse: { call: 'summariseOldest' | 'createChat' | 'send' | 'regenerate' | 'renameChat' | 'continueAnswer'; error: HostError } | null = null;
  /** While there are any, no answer begins, because there is no memory for it beside answers of these models. */
  waitsFor: readonly string[] = [];
  /** Streams break off after this many events, once. */
  detachAfter: number | null = null;
  /** Every link that was opened. */
  readonly opened: string[] = [];

  constructor(private readonly pace: number) {
    super();
  }

  async chats(): Promise<ChatSummary[]> {
    return [...this.kept.values()].filter((chat) => chat.trashed === null).map((chat) => ({ ...this.summaryOf(chat), running: this.#isRunning(chat) }));
  }
  async chatsSince(edition: number | null): Promise<ChatList> {
    return this.#editions.list(await this.chats(), edition);
  }
  async chat(id: string): Promise<ChatView> {
    return this.#shown(this.#chat(id));
  }
  async earlierMessages(id: string): Promise<StoredMessage[]> {
    const { chat, message } = this.#message(id);
    return message.parent === null ? [] : viewOf({ ...chat, leaf: message.parent }).messages.slice(-EARLIER);
  }
  async createChat(settings: ChatSettings): Promise<ChatView> {
    if (this.refuse?.call === 'createChat') throw this.refuse.error;
    checkSettings(settings);
    return viewOf(this.addChat('', Date.now(), settings));
  }
  async renameChat(id: string, title: string): Promise<void> {
    if (this.refuse?.call === 'renameChat') throw this.refuse.error;
    this.changeSummary(id, { title });
  }
  async pinChat(id: string, pinned: boolean): Promise<void> {
    this.changeSummary(id, { pinned });
  }
  async deleteChat(id: string): Promise<void> {
    this.#chat(id, true).trashed = Date.now();
    this.tell();
  }
  async restoreChat(id: string): Promise<ChatSummary> {
    let chat = this.#chat(id, true);
    if (chat.putBack) {
      this.kept.delete(id);
      chat = chat.putBack();
    }
    chat.trashed = null;
    this.#changed(chat);
    return chat.summary;
  }
  async setChatSettings(id: string, settings: ChatSettings): Promise<void> {
    checkSettings(settings);
    this.#chat(id).settings = settings;
  }
  async setDraft(id: string, draft: Content[]): Promise<void> {
    this.#chat(id).draft = draft;
  }

  async send(id: string, content: Content[], position: Position): Promise<Turn> {
    if (this.refuse?.call === 'send') throw this.refuse.error;
    const chat = this.#chat(id);
    const text = textOf(content);
    if (text.trim() === '' && attachmentsOf(content).length === 0) throw { code: 'bad_request', message: 'An empty question is not sent.' };
    if (this.#isRunning(chat)) throw busy();
    const parent = position === 'end' ? chat.leaf : position === 'beginning' ? null : position.after;
    if (parent !== null && !chat.messages.some((message) => message.id === parent)) throw notFound('message');
    this.#checkFits(chat, parent, content);
    const parts = content.map((part): Part => ({ ...part, started_at: Date.now(), ended_at: Date.now() }));
    const question = this.#add(chat, { role: 'user', parent, state: 'complete', parts });
    chat.draft = [];
    if (!chat.summary.title) chat.summary = { ...chat.summary, title: text.slice(0, 60) };
    const { revision: revision_before } = chat.summary;
    const answer = this.#begin(chat, question, text);
    return { question, answer, revision_before, revision: chat.summary.revision };
  }
  async sendToTwo(id: string, content: Content[], position: Position, settings: [ChatSettings, ChatSettings]): Promise<TurnWithTwoAnswers> {
    settings.forEach(checkSettings);
    const chat = this.#chat(id);
    const own = chat.settings;
    chat.settings = settings[0];
    const { question, answer } = await this.send(id, content, position);
    chat.settings = own;
    const second = this.#begin(chat, question, textOf(content), settings[1]);
    chat.leaf = answer.id;
    return { question, answers: [this.#message(answer.id).message, second] };
  }
  async regenerate(id: string, settings: ChatSettings | null): Promise<ChatView> {
    if (this.refuse?.call === 'regenerate') throw this.refuse.error;
    const { chat, message } = this.#message(id);
    const question = this.#questionOf(chat, message);
    this.#begin(chat, question, textOf(question.parts), settings ?? chat.settings);
    return this.#shown(chat);
  }
  async showBranch(id: string): Promise<ChatView> {
    const { chat, message } = this.#message(id);
    chat.leaf = leafBelow(chat, message.id);
    this.#changed(chat);
    return this.#shown(chat);
  }
  async editAnswer(id: string, text: string): Promise<ChatView> {
    const { chat, message } = this.#message(id);
    if (this.#isRunning(chat)) throw busy();
    if (text.trim() === '' || message.role !== 'assistant' || message.parts.some((part) => part.kind === 'tool_call')) throw { code: 'bad_request', message: 'This cannot be written over.' };
    const { model, parts, parent } = message;
    this.#add(chat, { role: 'assistant', parent, state: 'complete', model, finish_reason: 'stop', edited: true, parts: [...parts.filter(({ kind }) => kind !== 'text'), textPart(text.trim())] });
    this.#changed(chat);
    return this.#shown(chat);
  }
  async deleteMessage(id: string, scope: DeleteScope): Promise<string> {
    const { chat, message } = this.#message(id);
    if (this.#isRunning(chat)) throw busy();
    const branch = viewOf(chat).messages;
    const root = scope === 'branch' ? message : this.#questionOf(chat, message);
    const next = scope === 'branch' ? undefined : branch.slice(branch.indexOf(root) + 1).find(({ role }) => role === 'user');
    const before = { leaf: chat.leaf, messages: chat.messages };
    const gone = below(chat, root.id, next?.parent ?? null);
    const place = root.siblings.indexOf(root.id);
    const beside = root.siblings[place - 1] ?? root.siblings[place + 1];
    const cut = chat.messages.find(({ id: end }) => end === next?.parent)?.memory_cut ?? null;
    chat.messages = chat.messages
      .filter((other) => !gone.has(other.id))
      .map((other) => (next && other.parent === next.parent ? { ...other, parent: root.parent } : other))
      .map((other) => (other.id === root.parent ? { ...other, memory_cut: other.memory_cut ?? cut } : other));
    if (chat.leaf !== null && gone.has(chat.leaf)) chat.leaf = beside === undefined ? root.parent : leafBelow(chat, beside);
    relink(chat);
    const trash = this.addChat(chat.summary.title, Date.now());
    trash.trashed = Date.now();
    trash.putBack = () => Object.assign(chat, before);
    this.#changed(chat);
    return trash.summary.id;
  }
  async forkChat(id: string, title: string): Promise<ChatSummary> {
    const { chat, message } = this.#message(id);
    const copy = this.addChat(title, Date.now(), chat.settings);
    copy.summary = { ...copy.summary, folder: chat.summary.folder };
    for (const row of viewOf({ ...chat, leaf: message.id }).messages) this.addRow(copy, { ...row, id: `message-${this.#next++}`, chat: copy.summary.id, parent: copy.leaf });
    relink(copy);
    this.#changed(copy);
    return copy.summary;
  }
  async markRead(id: string): Promise<void> {
    const chat = this.#chat(id);
    if (chat.summary.unread) this.changeSummary(id, { unread: false });
  }
  async setScrollPlace(id: string, place: ScrollPlace | null): Promise<void> {
    this.#chat(id).place = place;
  }
  async contextUse(id: string, question: Content[]): Promise<ContextUse> {
    const chat = this.#chat(id);
    return this.#use(chat, viewOf(chat).messages, question);
  }
  async setMemoryCut(id: string, cut: MemoryCut | null): Promise<ChatView> {
    const { chat, message } = this.#message(id);
    this.#replace(chat, { ...message, memory_cut: cut });
    this.#changed(chat);
    return this.#shown(chat);
  }
  async forgetOldest(id: string, question: Content[]): Promise<ChatView> {
    return this.setMemoryCut(this.#cutOf(this.#chat(id), question), { summary: null });
  }
  async summariseOldest(id: string, question: Content[]): Promise<ChatView> {
    const message = this.#cutOf(this.#chat(id), question);
    await this.#summarise(id);
    return this.setMemoryCut(message, { summary: SUMMARY });
  }
  async stopSummary(id: string): Promise<void> {
    this.#stopped.add(id);
  }
  async carryOver(id: string, title: string): Promise<ChatView> {
    await this.#summarise(id);
    const { settings, summary } = this.#chat(id);
    const made = this.addChat(title, Date.now(), { ...settings, carried_summary: SUMMARY });
    made.summary = { ...made.summary, folder: summary.folder };
    this.#changed(made);
    return viewOf(made);
  }
  async stop(id: string): Promise<void> {
    const run = this.#running.get(id);
    if (run) run.stop = true;
  }
  async answerNow(id: string): Promise<void> {
    const run = this.#running.get(id);
    if (run) run.answerNow = true;
  }
  async continueAnswer(id: string): Promise<ChatView> {
    if (this.refuse?.call === 'continueAnswer') throw this.refuse.error;
    const { chat, message } = this.#message(id);
    const question = this.#questionOf(chat, message);
    const continued: StoredMessage = { ...message, state: 'streaming', finish_reason: null, ended_by: null, error: null, finished_at: null, continuable: false };
    this.#replace(chat, continued);
    const run = this.#startRunning(continued, [{ type: 'continued', parts: continued.parts, notices: continued.notices }]);
    void this.#write(chat, continued, run, textOf(question.parts));
    return this.#shown(chat);
  }
  async attach(id: string, from: number, onEvent: (event: AnswerEvent) => void): Promise<void> {
    const run = this.#running.get(id);
    if (!run) {
      const { message } = this.#message(id);
      queueMicrotask(() => onEvent({ message: id, seq: from + 1, body: { type: 'finished', message } }));
      return;
    }
    let left = this.detachAfter ?? Infinity;
    this.detachAfter = null;
    const listener = (event: AnswerEvent): void => {
      if (left-- > 0) return onEvent(event);
      run.listeners = run.listeners.filter((other) => other !== listener);
      onEvent({ message: '', seq: 0, body: { type: 'detached' } });
    };
    run.listeners.push(listener);
    for (const event of run.events) if (event.seq > from && run.listeners.includes(listener)) listener(event);
  }

  async openWindow(name: WindowName): Promise<void> {
    window.open(`?window=${name}`, '_blank', 'width=900,height=640');
  }
  async chatWindowState(): Promise<ChatWindowState> {
    return this.#windowState;
  }
  async setChatWindowState(state: ChatWindowState): Promise<void> {
    this.#windowState = state;
  }

  async openLink(url: string): Promise<void> {
    if (!/^(?:https?|mailto):/i.test(url)) throw { code: 'bad_request', message: 'Only web and mail addresses are opened from a chat.' };
    this.opened.push(url);
  }
  async firstPaint(): Promise<void> {}
  async onChatsChanged(listener: () => void): Promise<() => void> {
    this.chatListeners.add(listener);
    return () => this.chatListeners.delete(listener);
  }

  /** All rows of a chat, whatever branch they are on. */
  rows(id: string): readonly StoredMessage[] {
    return this.#chat(id).messages;
  }

  /** Puts a chat into the store. */
  addChat(title: string, updated: number, settings: ChatSettings = DEFAULT_CHAT_SETTINGS): Chat {
    const id = `chat-${this.#next++}`;
    const summary = { id, title, created_at: updated, updated_at: updated, pinned: false, running: false, unread: false, revision: 0, archived: false, folder: null };
    const chat: Chat = { summary, settings, draft: [], messages: [], leaf: null, trashed: null, place: null, putBack: null };
    this.kept.set(id, chat);
    return chat;
  }

  /** Puts a question and its ended answer into a chat. */
  addTurn(chat: Chat, text: string, answer: Partial<StoredMessage>): StoredMessage {
    this.addRow(chat, { role: 'user', parts: [textPart(text)] });
    const usage = { prompt_tokens: 1162, cached_tokens: 1020, prefilled_tokens: 142, completion_tokens: 187, thinking_tokens: 61 };
    const timing = { load_ms: 0, first_token_ms: 312, prefill_tokens_per_second: 455, decode_tokens_per_second: 41.6 };
    return this.addRow(chat, { role: 'assistant', model: 'pebble', finish_reason: 'stop', usage, timing, ...answer });
  }

  /** Puts a row below the last one of a chat's branch. */
  addRow(chat: Chat, row: Partial<StoredMessage> & Pick<StoredMessage, 'role'>): StoredMessage {
    return this.#add(chat, { parent: chat.leaf, state: 'complete', ...row });
  }

  /** The question of a turn, whichever of its rows is given. */
  #questionOf(chat: Chat, row: StoredMessage): StoredMessage {
    let found: StoredMessage | undefined = row;
    while (found && found.role !== 'user') {
      const { parent }: StoredMessage = found;
      found = chat.messages.find((other) => other.id === parent);
    }
    if (!found) throw notFound('question');
    return found;
  }

  /** A question of another window or program, answered at once. */
  addForeignTurn(id: string, text: string, answer: string): void {
    const chat = this.#chat(id);
    this.addTurn(chat, text, { parts: [textPart(answer)] });
    this.#changed(chat);
  }

  #use(chat: Chat, messages: readonly StoredMessage[], question: readonly Content[]): ContextUse {
    const model = this.local.find(({ reference }) => reference === (chat.settings.model ?? this.app.default_model));
    return { tokens: usedBy(messages, question), context: model?.context ?? null, estimated: false };
  }

  #checkFits(chat: Chat, parent: string | null, question: Content[]): void {
    const { tokens, context } = this.#use(chat, viewOf({ ...chat, leaf: parent }).messages, question);
    if (context !== null && tokens >= context) throw { code: 'context_full', arguments: { prompt: tokens, context }, message: 'The chat and this question do not fit.' };
  }

  /** The message up to which the model forgets, so that the question has half of the context. */
  #cutOf(chat: Chat, question: Content[]): string {
    const { messages } = viewOf(chat);
    const start = messages.findLastIndex((message) => message.memory_cut !== null) + 1;
    const ends = messages.filter((_, at) => at >= start && (messages[at + 1]?.role ?? 'user') === 'user');
    const fits = ends.find((end) => {
      const { tokens, context } = this.#use(chat, messages.slice(messages.indexOf(end) + 1), question);
      return tokens <= (context ?? 4096) / 2;
    });
    const cut = fits ?? ends.at(-1);
    if (!cut) throw { code: 'bad_request', message: 'There is nothing to forget.' };
    return cut.id;
  }

  async #summarise(id: string): Promise<void> {
    if (this.refuse?.call === 'summariseOldest') throw this.refuse.error;
    for (let step = 0; step < 20; step++) {
      await new Promise((resolve) => setTimeout(resolve, this.pace));
      if (this.#stopped.delete(id)) throw { code: 'stopped', message: 'The summary was stopped.' };
    }
  }

  #changed(chat: Chat): void {
    chat.summary = { ...chat.summary, revision: chat.summary.revision + 1 };
    this.tell();
  }

  #begin(chat: Chat, question: StoredMessage, text: string, settings = chat.settings): StoredMessage {
    const answer = this.#add(chat, { role: 'assistant', parent: question.id, state: 'streaming', model: settings.model ?? this.app.default_model, settings: { ...settings, model: settings.model ?? this.app.default_model, system_prompt: '' } });
    const run = this.#startRunning(answer, []);
    chat.summary = { ...chat.summary, updated_at: Date.now() };
    this.#changed(chat);
    void this.#write(chat, answer, run, text, settings);
    return answer;
  }

  #startRunning(answer: StoredMessage, first: AnswerBody[]): RunningAnswer {
    const run: RunningAnswer = { events: first.map((body, index) => ({ message: answer.id, seq: index + 1, body })), listeners: [], stop: false, answerNow: false };
    this.#running.set(answer.id, run);
    return run;
  }

  async #write(chat: Chat, answer: StoredMessage, run: RunningAnswer, question: string, settings = chat.settings): Promise<void> {
    const emit = (body: AnswerBody): void => {
      const event = { message: answer.id, seq: run.events.length + 1, body };
      run.events.push(event);
      for (const listener of [...run.listeners]) listener(event);
    };
    const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, this.pace));
    let message = answer;
    let state: AnswerState = 'complete';
    if (this.waitsFor.length > 0) emit({ type: 'waiting', models: [...this.waitsFor] });
    while (this.waitsFor.length > 0 && !run.stop) await pause();
    for (let done = 0; done <= 800 && !run.stop; done += 200) {
      emit({ type: 'progress', stage: 'prefill', done, total: 800 });
      await pause();
    }
    const fails = /fail/i.test(question);
    const script = restOf(scriptFor(question, settings.thinking !== 'off'), message.parts);
    const budget = settings.thinking_budget ?? Infinity;
    let thought = message.thinking_tokens ?? 0;
    if (message.parts.length > 0) emit({ type: 'continued', parts: message.parts, notices: message.notices });
    writing: for (const { channel, text } of script) {
      for (const piece of pieces(text)) {
        if (run.stop) state = 'stopped';
        if (fails && message.parts.length > 0 && message.parts.some((part) => part.kind === 'text')) state = 'failed';
        if (state !== 'complete') break writing;
        if (channel === 'thinking' && (run.answerNow || thought >= budget)) {
          const why = run.answerNow ? 'You ended the thought here.' : `The thought was ended after ${budget} tokens, its budget.`;
          const notice: Notice = { code: 'thinking_ended', ...(run.answerNow ? {} : { arguments: { budget } }), message: why };
          message = { ...message, notices: [...message.notices, notice] };
          emit({ type: 'notice', notice });
          continue writing;
        }
        if (channel === 'thinking') thought += 1;
        const at = Date.now();
        const parts = appendContent(message.parts, { kind: channel, text: piece }, at);
        message = { ...message, parts, thinking_tokens: thought };
        this.#replace(chat, message);
        emit({ type: 'delta', content: { kind: channel, text: piece }, at });
        await pause();
      }
    }
    const count = run.events.length;
    message = {
      ...this.#message(answer.id).message,
      parts: message.parts,
      notices: message.notices,
      thinking_tokens: thought,
      state,
      finished_at: Date.now(),
      finish_reason: state === 'stopped' ? 'cancelled' : 'stop',
      ended_by: state === 'stopped' ? { rule: 'cancelled' } : { rule: 'stop_token', token: 106, text: '<turn|>', sources: ['generation_config.eos_token_id'] },
      error: state === 'failed' ? { code: 'engine', message: 'The engine failed in the middle of the answer. What has come is kept; trying again usually helps.' } : null,
      usage: { prompt_tokens: 800, cached_tokens: 640, prefilled_tokens: 160, completion_tokens: count, thinking_tokens: thought },
      timing: { load_ms: 0, first_token_ms: 240, prefill_tokens_per_second: 900, decode_tokens_per_second: 1000 / Math.max(1, this.pace) },
    };
    message.continuable = endedEarly(message);
    this.#replace(chat, message);
    this.#running.delete(answer.id);
    emit({ type: 'finished', message });
    chat.summary = { ...chat.summary, unread: true };
    this.#changed(chat);
  }

  #add(chat: Chat, message: Pick<StoredMessage, 'role' | 'parent' | 'state'> & Partial<StoredMessage>): StoredMessage {
    const id = `message-${this.#next++}`;
    const siblings = [...chat.messages.filter((other) => other.parent === message.parent).map((other) => other.id), id];
    const complete: StoredMessage = {
      id, chat: chat.summary.id, parts: [], tool_call_id: null, siblings, created_at: Date.now(), finished_at: null, model: null, model_revision: null,
      template_hash: null, settings: null, thinking_ended: false, thinking_tokens: null, finish_reason: null, ended_by: null, error: null, notices: [], usage: null, timing: null, memory_cut: null, edited: false,
      continuable: endedEarly(message), ...message,
    };
    chat.messages = [...chat.messages.map((other) => (siblings.includes(other.id) ? { ...other, siblings } : other)), complete];
    chat.leaf = complete.id;
    return complete;
  }

  #replace(chat: Chat, message: StoredMessage): void {
    chat.messages = chat.messages.map((other) => (other.id === message.id ? { ...message, siblings: other.siblings } : other));
  }

  #shown(chat: Chat): ChatView {
    const view = viewOf(chat);
    return { ...view, messages: newest(view.messages, chat.place) };
  }

  #isRunning(chat: Chat): boolean {
    return chat.messages.some((message) => this.#running.has(message.id));
  }

  #chat(id: string, trashed = false): Chat {
    const chat = this.kept.get(id);
    if (!chat || (chat.trashed !== null && !trashed)) throw notFound('chat');
    return chat;
  }

  #message(id: string): { chat: Chat; message: StoredMessage } {
    for (const chat of this.kept.values()) {
      const message = chat.messages.find((other) => other.id === id);
      if (message) return { chat, message };
    }
    throw notFound('message');
  }

}

export function textPart(text: string): Part {
  return { kind: 'text', text, started_at: Date.now(), ended_at: Date.now() };
}

function notFound(what: string): HostError {
  return { code: 'not_found', message: `There is no such ${what} any more. Nothing was changed.` };
}
