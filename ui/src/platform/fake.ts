/**
 * An in-memory host for developing in a browser and for tests. It keeps the rules of the real one: events are numbered
 * from 1, `attach` tells everything after a number, and an answer ends with exactly one `finished`.
 *
 * In a browser `?pace=MS` sets the time between two pieces.
 */

import type { AnswerBody } from '../bindings/AnswerBody';
import type { AnswerEvent } from '../bindings/AnswerEvent';
import type { AnswerState } from '../bindings/AnswerState';
import type { ChatSettings } from '../bindings/ChatSettings';
import type { ChatSummary } from '../bindings/ChatSummary';
import type { ChatView } from '../bindings/ChatView';
import type { Content } from '../bindings/Content';
import type { ChatWindowState } from '../bindings/ChatWindowState';
import type { Error as HostError } from '../bindings/Error';
import type { Notice } from '../bindings/Notice';
import type { Part } from '../bindings/Part';
import type { Position } from '../bindings/Position';
import type { StoredMessage } from '../bindings/StoredMessage';
import { appendContent, attachmentsOf, textOf } from '../lib/parts';
import type { WindowName } from '../bindings/WindowName';
import { FakePictures } from './fakePictures';
import { pieces, restOf, scriptFor } from './fakeText';
import { DEFAULT_CHAT_SETTINGS, type Platform } from './types';

interface Chat {
  summary: ChatSummary;
  settings: ChatSettings;
  draft: Content[];
  messages: StoredMessage[];
  /** The last message of the branch that is shown. */
  leaf: string | null;
  trashed: boolean;
}

interface RunningAnswer {
  events: AnswerEvent[];
  listeners: ((event: AnswerEvent) => void)[];
  stop: boolean;
  answerNow: boolean;
}

/** A host with these chats; `pace` is the time between two pieces, in milliseconds. */
export class FakeHost extends FakePictures implements Platform {
  readonly #chats = new Map<string, Chat>();
  readonly #running = new Map<string, RunningAnswer>();
  readonly #chatListeners = new Set<() => void>();
  #windowState: ChatWindowState = { open_chat: null, new_draft: [] };
  #next = 1;
  /** Calls of this name are rejected. */
  refuse: { call: 'createChat' | 'send' | 'regenerate' | 'renameChat' | 'continueAnswer'; error: HostError } | null = null;
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
    return [...this.#chats.values()].filter((chat) => !chat.trashed).map((chat) => ({ ...chat.summary, running: this.#isRunning(chat) }));
  }
  async chat(id: string): Promise<ChatView> {
    return this.#view(this.#chat(id));
  }
  async createChat(settings: ChatSettings): Promise<ChatView> {
    if (this.refuse?.call === 'createChat') throw this.refuse.error;
    return this.#view(this.addChat('', Date.now(), settings));
  }
  async renameChat(id: string, title: string): Promise<void> {
    if (this.refuse?.call === 'renameChat') throw this.refuse.error;
    this.#change(id, { title });
  }
  async pinChat(id: string, pinned: boolean): Promise<void> {
    this.#change(id, { pinned });
  }
  async deleteChat(id: string): Promise<void> {
    this.#chat(id).trashed = true;
    this.#tell(this.#chatListeners);
  }
  async restoreChat(id: string): Promise<ChatSummary> {
    const chat = this.#chat(id);
    chat.trashed = false;
    this.#tell(this.#chatListeners);
    return chat.summary;
  }
  async setChatSettings(id: string, settings: ChatSettings): Promise<void> {
    this.#chat(id).settings = settings;
  }
  async setDraft(id: string, draft: Content[]): Promise<void> {
    this.#chat(id).draft = draft;
  }

  async send(id: string, content: Content[], position: Position): Promise<{ question: StoredMessage; answer: StoredMessage }> {
    if (this.refuse?.call === 'send') throw this.refuse.error;
    const chat = this.#chat(id);
    const text = textOf(content);
    if (text.trim() === '' && attachmentsOf(content).length === 0) throw { code: 'bad_request', message: 'An empty question is not sent.' };
    if (this.#isRunning(chat)) throw { code: 'busy', message: 'This chat is still being answered.' };
    const parent = position === 'end' ? chat.leaf : position === 'beginning' ? null : position.after;
    const parts = content.map((part): Part => ({ ...part, started_at: Date.now(), ended_at: Date.now() }));
    const question = this.#add(chat, { role: 'user', parent, state: 'complete', parts });
    chat.draft = [];
    if (!chat.summary.title) chat.summary = { ...chat.summary, title: text.slice(0, 60) };
    const answer = this.#begin(chat, question, text);
    return { question, answer };
  }
  async regenerate(id: string): Promise<ChatView> {
    if (this.refuse?.call === 'regenerate') throw this.refuse.error;
    const { chat, message } = this.#message(id);
    const question = this.#questionOf(chat, message);
    this.#begin(chat, question, textOf(question.parts));
    return this.#view(chat);
  }
  async showBranch(id: string): Promise<ChatView> {
    const { chat, message } = this.#message(id);
    chat.leaf = message.id;
    for (let child; (child = chat.messages.findLast((other) => other.parent === chat.leaf)); ) chat.leaf = child.id;
    return this.#view(chat);
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
    return this.#view(chat);
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
  async engineStatus(): ReturnType<Platform['engineStatus']> {
    return {
      loaded: [{ reference: 'pebble', revision: 'a0', family: 'gemma4_text', quantization: '8 bit, groups of 64', dequantised: true, wrong_products: [], parameters: 12_000_000, resident_bytes: 48_000_000, context: 2048, thinking: { kind: 'switch', default_on: true }, template_hash: 'e3b0', device: 'cpu', load_ms: 180, sees: false }],
      memory: { active: 52_000_000, peak: 61_000_000, cache: 4_000_000 },
    };
  }

  async capabilities(reference: string | null): ReturnType<Platform['capabilities']> {
    const remote = reference?.startsWith('endpoint:') ?? false;
    if (reference !== null && !remote && !(await this.models()).some((model) => model.reference === reference)) throw { code: 'model_not_found', message: 'There is no such model here.' };
    return {
      continue_answer: !remote,
      end_thinking: !remote,
      prefetch: !remote,
      memory: !remote,
      logprobs: false,
      images: remote || (this.local.find((model) => model.reference === (reference ?? this.app.default_model))?.sees ?? false),
      tools: true,
      kv_bits: !remote,
      leaves_computer: remote,
      thinking: remote ? { kind: 'levels', levels: ['low', 'medium', 'high'], default: null, off: true } : null,
    };
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
    this.#chatListeners.add(listener);
    return () => this.#chatListeners.delete(listener);
  }

  /** Puts a chat into the store. */
  addChat(title: string, updated: number, settings: ChatSettings = DEFAULT_CHAT_SETTINGS): Chat {
    const id = `chat-${this.#next++}`;
    const summary = { id, title, created_at: updated, updated_at: updated, pinned: false, running: false };
    const chat: Chat = { summary, settings, draft: [], messages: [], leaf: null, trashed: false };
    this.#chats.set(id, chat);
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

  #begin(chat: Chat, question: StoredMessage, text: string): StoredMessage {
    const answer = this.#add(chat, { role: 'assistant', parent: question.id, state: 'streaming', model: chat.settings.model ?? this.app.default_model });
    const run = this.#startRunning(answer, []);
    chat.summary = { ...chat.summary, updated_at: Date.now() };
    this.#tell(this.#chatListeners);
    void this.#write(chat, answer, run, text);
    return answer;
  }

  #startRunning(answer: StoredMessage, first: AnswerBody[]): RunningAnswer {
    const run: RunningAnswer = { events: first.map((body, index) => ({ message: answer.id, seq: index + 1, body })), listeners: [], stop: false, answerNow: false };
    this.#running.set(answer.id, run);
    return run;
  }

  async #write(chat: Chat, answer: StoredMessage, run: RunningAnswer, question: string): Promise<void> {
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
    const script = restOf(scriptFor(question, chat.settings.thinking !== 'off'), message.parts);
    const budget = chat.settings.thinking_budget ?? Infinity;
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
    this.#tell(this.#chatListeners);
  }

  #add(chat: Chat, message: Pick<StoredMessage, 'role' | 'parent' | 'state'> & Partial<StoredMessage>): StoredMessage {
    const id = `message-${this.#next++}`;
    const siblings = [...chat.messages.filter((other) => other.parent === message.parent).map((other) => other.id), id];
    const complete: StoredMessage = {
      id, chat: chat.summary.id, parts: [], tool_call_id: null, siblings, created_at: Date.now(), finished_at: null, model: null, model_revision: null,
      template_hash: null, settings: null, thinking_ended: false, thinking_tokens: null, finish_reason: null, ended_by: null, error: null, notices: [], usage: null, timing: null,
      continuable: endedEarly(message), ...message,
    };
    chat.messages = [...chat.messages.map((other) => (siblings.includes(other.id) ? { ...other, siblings } : other)), complete];
    chat.leaf = id;
    return complete;
  }

  #replace(chat: Chat, message: StoredMessage): void {
    chat.messages = chat.messages.map((other) => (other.id === message.id ? { ...message, siblings: other.siblings } : other));
  }

  #view(chat: Chat): ChatView {
    const branch: StoredMessage[] = [];
    for (let id = chat.leaf; id !== null; ) {
      const message = chat.messages.find((other) => other.id === id);
      if (!message) break;
      branch.unshift(message);
      id = message.parent;
    }
    return { summary: chat.summary, settings: chat.settings, draft: chat.draft, messages: branch };
  }

  #change(id: string, change: Partial<ChatSummary>): void {
    const chat = this.#chat(id);
    chat.summary = { ...chat.summary, ...change };
    this.#tell(this.#chatListeners);
  }

  #isRunning(chat: Chat): boolean {
    return chat.messages.some((message) => this.#running.has(message.id));
  }

  #chat(id: string): Chat {
    const chat = this.#chats.get(id);
    if (!chat) throw notFound('chat');
    return chat;
  }

  #message(id: string): { chat: Chat; message: StoredMessage } {
    for (const chat of this.#chats.values()) {
      const message = chat.messages.find((other) => other.id === id);
      if (message) return { chat, message };
    }
    throw notFound('message');
  }

  #tell(listeners: Set<() => void>): void {
    for (const listener of listeners) queueMicrotask(listener);
  }
}

export function textPart(text: string): Part {
  return { kind: 'text', text, started_at: Date.now(), ended_at: Date.now() };
}

function notFound(what: string): HostError {
  return { code: 'not_found', message: `There is no such ${what} any more. Nothing was changed.` };
}

/** Whether an answer broke off after it had said something; the history's rule knows more cases. */
function endedEarly({ parts, state, finish_reason }: Partial<StoredMessage>): boolean {
  return (parts?.length ?? 0) > 0 && (state === 'stopped' || state === 'interrupted' || state === 'failed' || finish_reason === 'length');
}
