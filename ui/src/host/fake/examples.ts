/** The chats of a browser during development: every state that an answer can be in. */

import type { ChatSettings } from '../../bindings/ChatSettings';
import type { Content } from '../../bindings/Content';
import type { Part } from '../../bindings/Part';
import type { StoredMessage } from '../../bindings/StoredMessage';
import { fakeHost, textPart } from './index';
import { fillHub } from './hub';
import { fillServer } from './server';
import { scriptFor } from './text';
import { fillDocuments } from './documentExamples';
import { fillElicitations } from './elicitations';
import { fillToolCalls } from './toolExamples';
import { fillToolServers } from './toolServers';
import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import type { Platform } from '../types';

const DAY = 86_400_000;

/** The host of a browser during development, with a few chats in it. */
export function fakePlatform(): Platform {
  const asked = new URLSearchParams(location.search);
  const host = fakeHost(Number(asked.get('pace') ?? 35));
  fillHub(host, asked);
  void fillServer(host, asked.get('server'));
  fillToolServers(host);
  host.waitsFor = asked.getAll('waits');
  const slowed = asked.get('slowed');
  if (slowed === 'heat' || slowed === 'low_power') host.slowdown = slowed;
  host.readingTime = Number(asked.get('reading') ?? 300);
  void host.addEndpoint('lab', 'https://lab.example/v1', 'secret', false);
  void host.addEndpoint('desk', 'http://127.0.0.1:8080/v1', null, false);
  void host.addEndpoint('cellar', 'http://192.168.1.20:8000/v1', 'sk-old', true);
  host.servers.set('cellar', { key: 'sk-new' }).set('desk', 'silent');
  const now = Date.now();
  const one = (title: string, days: number, question: string, answer: Partial<StoredMessage>, settings: Partial<ChatSettings> = {}): void => {
    const whole: ChatSettings = { ...DEFAULT_CHAT_SETTINGS, ...settings };
    host.addTurn(host.addChat(title, now - days * DAY, whole), question, answer);
  };
  const thought = (text: string, seconds: number): Part => ({ kind: 'thinking', text, started_at: now - seconds * 1000, ended_at: now });
  const early: Partial<StoredMessage> = { usage: null, timing: null, finish_reason: null };
  const sum = thought('Add the digits from the right.\n7 + 9 = 16, wri', 12);

  const squares = scriptFor('squares', false).map((part): Part => ({ kind: 'text', text: part.text, started_at: now, ended_at: now }));
  one('Squares and a sum', 0, 'Make a table of the squares from 1 to 4, and show me how to compute them in Rust.', {
    parts: [thought('The squares are 1, 4, 9 and 16.\nA table first, then code.', 3), ...squares],
    ended_by: { rule: 'stop_token', token: 106, text: '<turn|>', sources: ['generation_config.eos_token_id'] },
  });
  one('Rust lifetimes, once more', 1, 'What is 347 * 58?', {
    parts: [textPart('347 x 58 = **20126**')],
    notices: [{ code: 'thought_while_off', message: 'The model thought although Thinking is off. Its thought was left out.' }],
  }, { thinking: 'off' });
  one('Names for a sailing boat', 3, 'What should I call my boat?', {
    ...early,
    state: 'interrupted',
    parts: [thought('Names that sailors like: birds, calm, colours.', 12), textPart('Some names that sailors have liked:\n\n1. **Windhover**, after the')],
    thinking_tokens: 240,
  });
  one('What changed in the tax form?', 4, 'What changed in the tax form?', {
    ...early,
    state: 'failed',
    error: { code: 'context_full', arguments: { prompt: 2310, context: 2048 }, message: 'The chat and the answer need 2,310 tokens, but Pebble holds 2,048. Nothing was dropped. Begin a new chat, or choose a model with a longer context.' },
  });
  one('A sum, stopped in the thought', 4, 'What is 347 + 589?', { state: 'stopped', parts: [sum], finish_reason: 'cancelled', ended_by: { rule: 'cancelled' }, thinking_tokens: 18 });
  one('A sum, broken off in the thought', 5, 'What is 347 + 589?', {
    ...early,
    state: 'failed',
    parts: [sum],
    error: { code: 'engine', message: 'The engine failed in the middle of the answer. What has come is kept; trying again usually helps.' },
    thinking_tokens: 18,
  });
  one('A sum, answered at once', 5, 'What is 347 + 589?', {
    parts: [sum, textPart('347 + 589 = **936**')],
    notices: [{ code: 'thinking_ended', message: 'You ended the thought here.' }],
  });
  one('A sum on a budget', 5, 'What is 347 + 589?', {
    parts: [sum, textPart('347 + 589 = **936**')],
    notices: [{ code: 'thinking_ended', arguments: { budget: 256 }, message: 'The thought was ended after 256 tokens, its budget.' }],
  }, { thinking_budget: 256 });
  one('A long story', 6, 'What should I call my boat?', {
    parts: [textPart('Some names that sailors have liked:\n\n1. **Windhover**, after the')],
    finish_reason: 'length',
    ended_by: { rule: 'token_limit' },
  });
  one('A full context', 6, 'What should I call my boat?', {
    parts: [textPart('Some names that sailors have liked:\n\n1. **Windhover**, after the')],
    finish_reason: 'length',
    ended_by: { rule: 'context' },
  });
  one('A story that went round', 6, 'Tell me about the sea.', {
    parts: [textPart('The sea is wide. The sea is wide. The sea is wide.')],
    finish_reason: 'length',
    ended_by: { rule: 'repetition' },
    notices: [{ code: 'repetition', message: 'The answer kept repeating itself, so it was ended here.' }],
  });
  const weather = host.addChat('Weather in Lisbon and Oslo', now - 6 * DAY);
  const call = (id: string, city: string): Part => ({ kind: 'tool_call', call: { id, name: 'get_weather', arguments: { city, unit: 'celsius' } }, started_at: now, ended_at: now });
  host.addTurn(weather, 'Where is it warmer, in Lisbon or in Oslo?', { ...early, finish_reason: 'tool_calls', parts: [thought('Both cities have to be looked up.', 2), call('a1b2c3d4e', 'Lisbon'), call('f5g6h7i8j', 'Oslo')] });
  host.addRow(weather, { role: 'tool', tool_call_id: 'a1b2c3d4e', parts: [textPart('{"temperature": 19, "sky": "clear"}')] });
  host.addRow(weather, { role: 'tool', tool_call_id: 'f5g6h7i8j', parts: [textPart('{"temperature": 4, "sky": "rain"}')] });
  host.addRow(weather, { role: 'assistant', model: 'pebble', finish_reason: 'stop', parts: [thought('19 is more than 4.', 1), textPart('It is warmer in **Lisbon**: 19 °C, against 4 °C in Oslo.')] });
  const images = host.addChat('What is in this image?', now - 6 * DAY);
  const image: Content = { kind: 'image', attachment: 'image-1', media_type: 'image/png', width: 1280, height: 720, alt: 'A boat in a harbour' };
  const file: Content = { kind: 'file', attachment: 'file-1', media_type: 'text/csv', name: 'tides.csv', bytes: 18_400 };
  const timed = (content: Content): Part => ({ ...content, started_at: now, ended_at: now });
  host.addRow(images, { role: 'user', parts: [timed(image), timed(file), textPart('What is in this image, and when does the tide turn?')] });
  host.addRow(images, { role: 'assistant', model: 'pebble', finish_reason: 'stop', parts: [textPart('A boat. The tide turns at noon.')] });
  images.draft = [{ ...image, attachment: 'image-2', alt: '' }, { kind: 'text', text: 'And in this one?' }];
  const gone = host.addChat('A model that is gone', now - 6 * DAY, { ...DEFAULT_CHAT_SETTINGS, model: 'mlx-community/Gone-4B' });
  host.addTurn(gone, 'Are you there?', { model: 'mlx-community/Gone-4B', parts: [textPart('Yes. See [https://bank.example](https://evil.example) and [the book](https://example.org/book).')] });
  const right = host.addChat('من اليمين إلى اليسار', now - 6 * DAY);
  host.addTurn(right, 'ما هي عاصمة مصر؟', { parts: [textPart('عاصمة مصر هي **القاهرة**.\n\n1. على النيل\n2. كبيرة\n\n```js\nlet a = 1;\n```\n\nThe same in English.')] });
  // `?turns=N` adds a long chat, `?chats=N` many.
  const long = host.addChat('A long chat', now - 6 * DAY);
  for (let turn = 1; turn <= Number(asked.get('turns') ?? 0); turn++) {
    host.addTurn(long, `Question ${turn}`, { parts: [textPart(`Answer **${turn}**.\n\n${'Some words of an answer, with `code` and more of it. '.repeat(1 + (turn % 7))}\n\n- one\n- two\n`)] });
  }
  for (let more = 1; more <= Number(asked.get('chats') ?? 0); more++) host.addChat(`Chat ${more}`, now - more * (DAY / 40));
  fillToolCalls(host, asked);
  fillElicitations(host, asked);
  void fillDocuments(host, asked);
  host.addChat('Thesis outline, chapter 3', now - 9 * DAY).summary.pinned = true;
  host.addChat('Letter to the landlord', now - 2 * DAY);
  host.addChat('Explain this regular expression', now - 12 * DAY);
  return host;
}
