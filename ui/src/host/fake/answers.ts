/** The fake host's answers. Events are numbered from 1, and an answer ends with exactly one `finished`. */

import type { AnswerBody } from '../../bindings/AnswerBody';
import type { AnswerEvent } from '../../bindings/AnswerEvent';
import type { AnswerState } from '../../bindings/AnswerState';
import type { ChatSettings } from '../../bindings/ChatSettings';
import type { Content } from '../../bindings/Content';
import type { Notice } from '../../bindings/Notice';
import type { Part } from '../../bindings/Part';
import type { Position } from '../../bindings/Position';
import type { ReadingCost } from '../../bindings/ReadingCost';
import type { StoredMessage } from '../../bindings/StoredMessage';
import type { Turn } from '../../bindings/Turn';
import { appendContent, attachmentsOf, textOf } from '../../shared/messageParts';
import type { Platform } from '../types';
import type { documentControls } from './documents';
import type { libraryControls } from './library';
import { checkSettings } from './settings';
import { pause, refusal } from './shared';
import { addMessage, changed, chatOf, contextOf, isRunning, messageOf, questionOf, refuse, replace, shown, type RunningAnswer, type Store } from './store';
import { pieces, restOf, scriptFor } from './text';
import { busy, endedEarly, notFound, settingsOf, viewOf, type Chat } from './tree';

/** The state that answers need beside that of every part. */
type Asked = Pick<ReturnType<typeof documentControls>, 'keptCollections' | 'readingSeconds'> &
  Pick<ReturnType<typeof libraryControls>, 'keptProjects'>;

export function answers(host: Store & Asked) {
  const startRunning = (answer: StoredMessage, first: AnswerBody[]): RunningAnswer => {
    const run: RunningAnswer = { events: first.map((body, index) => ({ message: answer.id, seq: index + 1, body })), listeners: [], stop: false, answerNow: false };
    host.running.set(answer.id, run);
    return run;
  };
  const begin = (chat: Chat, question: StoredMessage, text: string, settings = settingsOf(chat)): StoredMessage => {
    const model = settings.model ?? host.app.default_model;
    const answer = addMessage(host, chat, { role: 'assistant', parent: question.id, state: 'streaming', model, settings: { ...settings, model, system_prompt: '' } });
    const run = startRunning(answer, []);
    chat.summary = { ...chat.summary, updated_at: Date.now() };
    changed(host, chat);
    void write(host, chat, answer, run, text, settings);
    return answer;
  };
  const send = (id: string, content: Content[], position: Position, settings?: ChatSettings): Turn => {
    refuse(host, 'send');
    const chat = chatOf(host, id);
    const text = textOf(content);
    if (text.trim() === '' && attachmentsOf(content).length === 0) throw refusal('bad_request', 'An empty question is not sent.', {}, 'empty_message');
    if (content.some(({ kind }) => kind === 'passages')) throw refusal('bad_request', 'Passages are no part of a question that a person writes.');
    if (isRunning(host, chat)) throw busy();
    const parent = position === 'end' ? chat.leaf : position === 'beginning' ? null : position.after;
    if (parent !== null && !chat.messages.some((message) => message.id === parent)) throw notFound('message');
    const { tokens, context } = contextOf(host, chat, viewOf({ ...chat, leaf: parent }).messages, content);
    if (context !== null && tokens >= context) throw refusal('context_full', 'The chat and this question do not fit.', { prompt: tokens, context });
    const parts = content.map((part): Part => ({ ...part, started_at: Date.now(), ended_at: Date.now() }));
    const question = addMessage(host, chat, { role: 'user', parent, state: 'complete', parts });
    chat.draft = [];
    if (!chat.summary.title) chat.summary = { ...chat.summary, title: text.slice(0, 60) };
    const { revision: revision_before } = chat.summary;
    const answer = begin(chat, question, text, settings);
    return { question, answer, revision_before, revision: chat.summary.revision };
  };

  /** The chats whose documents are being read; true for one that is to stop. */
  const reading = new Map<string, boolean>();
  const costOf = (collections: readonly string[]): ReadingCost => {
    const asked = host.keptCollections.filter(({ view }) => collections.includes(view.id));
    if (collections.length === 0) throw notFound('documents');
    const passages = asked.reduce((sum, { view }) => sum + view.passages, 0);
    const parts = Math.ceil(passages / 16);
    return { passages, parts, tokens: passages * 218, note_tokens: parts * 400, seconds: host.readingSeconds };
  };

  return {
    async send(id, content, position) {
      return send(id, content, position);
    },
    async readingCost(id, project, settings) {
      const asked = id === null ? settings.collections : settingsOf(chatOf(host, id)).collections;
      const inProject = id === null ? project : chatOf(host, id).summary.project;
      const ofProject = host.keptProjects.find((other) => other.id === inProject)?.collections ?? [];
      return costOf([...ofProject, ...asked]);
    },
    async sendAfterReading(id, content, position, onProgress) {
      const chat = chatOf(host, id);
      if (textOf(content).trim() === '') throw refusal('bad_request', 'An empty question is not sent.', {}, 'empty_message');
      if (isRunning(host, chat) || reading.has(id)) throw busy();
      const ofProject = host.keptProjects.find((other) => other.id === chat.summary.project)?.collections ?? [];
      const { parts, passages } = costOf([...ofProject, ...settingsOf(chat).collections]);
      reading.set(id, false);
      try {
        for (let done = 0; done < parts; done++) {
          onProgress({ done, total: parts, message: `part ${done + 1} of ${parts}`, asks: false });
          await pause(10 * host.pace);
          if (reading.get(id)) throw refusal('stopped', 'Reading the documents was stopped.');
        }
      } finally {
        reading.delete(id);
      }
      const files = host.keptCollections.reduce((sum, { view }) => sum + view.read, 0);
      const coverage = { passages, of_passages: passages, files, of_files: files, unread: 0 };
      const notes: Content = { kind: 'file', attachment: 'notes', media_type: 'text/plain', name: 'Notes on all documents.txt', bytes: 900 };
      const turn = send(id, [notes, ...content], position);
      turn.question.parts.unshift({ kind: 'passages', passages: [], coverage, started_at: Date.now(), ended_at: Date.now() });
      return turn;
    },
    async stopReading(id) {
      if (reading.has(id)) reading.set(id, true);
    },
    async sendToTwo(id, content, position, settings) {
      settings.forEach(checkSettings);
      const chat = chatOf(host, id);
      const { question, answer } = send(id, content, position, settings[0]);
      const second = begin(chat, question, textOf(content), settings[1]);
      chat.leaf = answer.id;
      return { question, answers: [messageOf(host, answer.id).message, second] };
    },
    async regenerate(id, settings) {
      refuse(host, 'regenerate');
      const { chat, message } = messageOf(host, id);
      const question = questionOf(chat, message);
      begin(chat, question, textOf(question.parts), settings ?? settingsOf(chat));
      return shown(chat);
    },
    async stop(id) {
      const run = host.running.get(id);
      if (run) run.stop = true;
    },
    async answerNow(id) {
      const run = host.running.get(id);
      if (run) run.answerNow = true;
    },
    async continueAnswer(id) {
      refuse(host, 'continueAnswer');
      const { chat, message } = messageOf(host, id);
      const question = questionOf(chat, message);
      const continued: StoredMessage = { ...message, state: 'streaming', finish_reason: null, ended_by: null, error: null, finished_at: null, continuable: false };
      replace(chat, continued);
      const run = startRunning(continued, [{ type: 'continued', parts: continued.parts, notices: continued.notices }]);
      void write(host, chat, continued, run, textOf(question.parts));
      return shown(chat);
    },
    async attach(id, from, onEvent) {
      const run = host.running.get(id);
      if (!run) {
        const { message } = messageOf(host, id);
        queueMicrotask(() => onEvent({ message: id, seq: from + 1, body: { type: 'finished', message } }));
        return;
      }
      let left = host.detachAfter ?? Infinity;
      host.detachAfter = null;
      const listener = (event: AnswerEvent): void => {
        if (left-- > 0) return onEvent(event);
        run.listeners = run.listeners.filter((other) => other !== listener);
        onEvent({ message: '', seq: 0, body: { type: 'detached' } });
      };
      run.listeners.push(listener);
      for (const event of run.events) if (event.seq > from && run.listeners.includes(listener)) listener(event);
    },
  } satisfies Partial<Platform>;
}

/** Writes an answer piece by piece. */
async function write(host: Store, chat: Chat, answer: StoredMessage, run: RunningAnswer, question: string, settings = chat.settings): Promise<void> {
  const emit = (body: AnswerBody): void => {
    const event = { message: answer.id, seq: run.events.length + 1, body };
    run.events.push(event);
    for (const listener of [...run.listeners]) listener(event);
  };
  let message = answer;
  let state: AnswerState = 'complete';
  if (host.waitsFor.length > 0) emit({ type: 'waiting', models: [...host.waitsFor] });
  while (host.waitsFor.length > 0 && !run.stop) await pause(host.pace);
  for (const half of host.loads === null ? [] : [0, 1, 2]) {
    emit({ type: 'progress', stage: 'load', done: (half * (host.loads ?? 0)) / 2, total: host.loads ?? 0 });
    await pause(10 * host.pace);
  }
  for (let done = 0; done <= 800 && !run.stop; done += 200) {
    emit({ type: 'progress', stage: 'prefill', done, total: 800 });
    await pause(host.pace);
  }
  const fails = /fail/i.test(question);
  const script = restOf(scriptFor(question, settings.thinking !== 'off'), message.parts);
  const budget = settings.thinking_budget ?? Infinity;
  let thought = message.thinking_tokens ?? 0;
  // An answer that is continued has a penalty, and what was noticed of its tokens is noticed anew.
  const repeats = /again and again/i.test(question) && message.parts.length === 0;
  message = { ...message, notices: message.notices.filter(({ code }) => code !== 'repeats') };
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
      if (repeats && channel === 'text' && message.notices.length === 0) {
        const notice: Notice = { code: 'repeats', message: 'The answer repeats itself.' };
        message = { ...message, notices: [notice] };
        emit({ type: 'notice', notice });
      }
      if (channel === 'thinking') thought += 1;
      const at = Date.now();
      const parts = appendContent(message.parts, { kind: channel, text: piece }, at);
      message = { ...message, parts, thinking_tokens: thought };
      replace(chat, message);
      emit({ type: 'delta', content: { kind: channel, text: piece }, at });
      await pause(host.pace);
    }
  }
  const count = run.events.length;
  const calling = state === 'complete' ? host.callNext : null;
  if (calling) host.callNext = null;
  message = {
    ...messageOf(host, answer.id).message,
    parts: [...message.parts, ...(calling ? [calling.part] : [])],
    calls: calling ? [calling.status] : [],
    notices: message.notices,
    thinking_tokens: thought,
    state,
    finished_at: Date.now(),
    finish_reason: calling ? 'tool_calls' : state === 'stopped' ? 'cancelled' : 'stop',
    ended_by: state === 'stopped' ? { rule: 'cancelled' } : { rule: 'stop_token', token: 106, text: '<turn|>', sources: ['generation_config.eos_token_id'] },
    error: state === 'failed' ? { code: 'engine', message: 'The engine failed in the middle of the answer. What has come is kept; trying again usually helps.' } : null,
    usage: { prompt_tokens: 800, cached_tokens: 640, prefilled_tokens: 160, completion_tokens: count, thinking_tokens: thought },
    timing: { load_ms: 0, first_token_ms: 240, prefill_tokens_per_second: 900, decode_tokens_per_second: 1000 / Math.max(1, host.pace) },
  };
  message.continuable = endedEarly(message);
  replace(chat, message);
  host.running.delete(answer.id);
  emit({ type: 'finished', message });
  chat.summary = { ...chat.summary, unread: true };
  changed(host, chat);
}
