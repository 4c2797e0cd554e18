/** Calls of tools that Ponder runs: the card of each state, its actions, and the question that waits for the end. */

import { describe, expect, it, vi } from 'vitest';

import type { CallState } from '../../../bindings/CallState';
import type { CallStatus } from '../../../bindings/CallStatus';
import type { Part } from '../../../bindings/Part';
import type { StoredMessage } from '../../../bindings/StoredMessage';
import { DEFAULT_CHAT_SETTINGS } from '../../../bindings/constants';
import { textPart } from '../../../host/fake';
import { all, ask, click, composer, host, open, pass, the, type, useWindow } from '../../../testing/window';

useWindow();

const TOOL = { server: 'files', tool: 'search_files' };
const CALL = 'a1b2c3d4e';
const settings = { ...DEFAULT_CHAT_SETTINGS, model: 'pebble', tools: [TOOL] };

const call = (id: string, words = 'tea'): Part => ({
  kind: 'tool_call',
  call: { id, name: 'files__search_files', arguments: { words } },
  started_at: 0,
  ended_at: 0,
});

const status = (state: CallState, more: Partial<CallStatus> = {}): CallStatus => ({
  call: CALL,
  tool: TOOL,
  server_name: 'Files',
  state,
  arguments: null,
  attempt: 1,
  owner: 'process-1',
  asked_at: Date.now() - 20_000,
  started_at: state === 'asked' || state === 'not_run' || state === 'refused' ? null : Date.now() - 12_000,
  ended_at: state === 'asked' || state === 'started' ? null : Date.now(),
  ...more,
});

/** Opens a chat whose last answer made this call, and perhaps others. */
async function openCall(
  calls: CallStatus[],
  result: Part[] | null = null,
  parts = [call(CALL)],
): Promise<StoredMessage> {
  const chat = host.addChat('A chat', Date.now(), settings);
  const answer = host.addTurn(chat, 'Which note is about tea?', { finish_reason: 'tool_calls', settings, parts, calls });
  const ran = calls[0]?.state === 'done' || calls[0]?.state === 'failed';
  const row = { role: 'tool', tool_call_id: CALL, state: ran ? 'complete' : 'stopped' } as const;
  if (result) host.addRow(chat, { ...row, parts: result });
  await open('chat', chat.summary.id);
  return answer;
}

const state = (): string | undefined => the('call-state').textContent?.replace(/\s+/g, ' ').trim();
const actions = (): string[] =>
  ['show-consent', 'stop-call', 'run-again', 'continue-without'].filter((name) => all(name).length > 0);

describe('the card of a call', () => {
  it('that waits shows the window of calls, or stops', async () => {
    const { id } = await openCall([status('asked')]);
    expect(the('tool-call').textContent).toContain('search_files');
    expect(the('tool-call').textContent).toContain('Files');
    expect([state(), actions()]).toEqual(['Waits for your consent', ['show-consent', 'stop-call']]);
    await click('show-consent');
    expect(host.consentShown).toBe(1);
    const stop = vi.spyOn(host, 'stop');
    await click('stop-call');
    expect(stop).toHaveBeenCalledWith(id);
    // The answer goes on, so it has no actions yet.
    expect(all('regenerate')).toEqual([]);
  });

  it('that runs counts the seconds, and shows its end when it comes', async () => {
    const { id } = await openCall([status('started')]);
    expect([state(), actions()]).toEqual(['Running 12 s', ['stop-call']]);
    await pass(3000);
    expect(state()).toBe('Running 15 s');
    host.setStatus(id, { call: CALL, state: 'done', ended_at: Date.now() });
    host.addResult(id, CALL, { parts: [textPart('tea.md')] });
    await pass(50);
    expect([state(), actions()]).toEqual(['Done 15 s', []]);
    await click('tool-call-toggle');
    expect(the('tool-result').textContent).toBe('tea.md');
  });

  it('that runs tells how far it is, until it ends', async () => {
    const { id } = await openCall([status('started')]);
    const progress = { done: 3, total: 10, message: 'fetching', asks: false };
    host.setRunning([{ answer: id, call: CALL, progress }]);
    await pass(10);
    expect(state()).toBe('Running 3 of 10 · fetching 12 s');
    host.setRunning([{ answer: id, call: CALL, progress: { ...progress, total: null } }]);
    await pass(10);
    expect(state()).toBe('Running fetching 12 s');
    // Of another call.
    host.setRunning([{ answer: id, call: 'another', progress }]);
    await pass(10);
    expect(state()).toBe('Running 12 s');
    host.setRunning([{ answer: id, call: CALL, progress }]);
    host.setStatus(id, { call: CALL, state: 'done', ended_at: Date.now() });
    await pass(50);
    expect(state()).toBe('Done 12 s');
  });

  it('whose server asks for something shows where', async () => {
    const { id } = await openCall([status('started')]);
    const progress = { done: null, total: null, message: null, asks: true };
    host.setRunning([{ answer: id, call: CALL, progress }]);
    await pass(10);
    expect([state(), actions()]).toEqual(['Asks you for something 12 s', ['show-consent', 'stop-call']]);
    await click('show-consent');
    expect(host.consentShown).toBe(1);
  });

  it('that was done at once tells no time', async () => {
    const started_at = Date.now() - 40;
    await openCall([status('done', { started_at })], [textPart('x')]);
    expect(state()).toBe('Done');
  });

  it.each<[CallState, string]>([
    ['done', 'Done 12 s'],
    ['failed', 'Failed 12 s'],
    ['refused', 'Denied'],
    ['stopped', 'Stopped 12 s'],
  ])('that is %s is folded, with its result inside', async (ended, words) => {
    await openCall([status(ended)], [textPart('the result')]);
    expect([state(), actions()]).toEqual([words, []]);
    expect(all('tool-result')).toEqual([]);
    await click('tool-call-toggle');
    expect(the('tool-result').textContent).toBe('the result');
  });

  it.each<[CallState, string, string, string]>([
    ['not_run', 'Not run', 'Ask again', 'before you decided'],
    ['may_have_run', 'May have run', 'Run again', 'while the tool was running'],
  ])('that lost its process, %s, does nothing by itself', async (lost, words, again, note) => {
    const { id } = await openCall([status(lost, { started_at: null })]);
    expect([state(), actions()]).toEqual([words, ['run-again', 'continue-without']]);
    expect(the('tool-call').textContent).toContain(note);
    expect(the('run-again').textContent).toBe(again);
    expect(host.ranAgain).toEqual([]);
    await click('run-again');
    await pass(50);
    expect(host.ranAgain).toEqual([id]);
    expect([state(), actions()]).toEqual(['Waits for your consent', ['show-consent', 'stop-call']]);
  });

  it('that lost its process can be gone on without', async () => {
    await openCall([status('may_have_run')]);
    await click('continue-without');
    await pass(50);
    expect(actions()).toEqual([]);
    expect(the('answer-text').textContent?.trim()).toBe('Without it, then.');
  });

  it('says why it could not be asked about again', async () => {
    await openCall([status('not_run')]);
    host.refuse = { call: 'runCallsAgain', error: { code: 'busy', message: 'no' } };
    await click('run-again');
    expect(the('toast').textContent).toContain('Ponder is busy');
    expect(actions()).toEqual(['run-again', 'continue-without']);
  });

  it('that comes after one that waits says so', async () => {
    await openCall([status('asked')], null, [call(CALL), call('f5g6h7i8j')]);
    expect(all('call-state').map(({ textContent }) => textContent?.trim())).toEqual([
      'Waits for your consent',
      'Waits for the call before it',
    ]);
  });

  it('shows the arguments that it ran with, and those of the model', async () => {
    await openCall([status('done', { arguments: { words: 'coffee' } })], [textPart('x')]);
    await click('tool-call-toggle');
    expect(the('tool-request').textContent).toContain('coffee');
    expect(the('tool-request-model').textContent).toContain('tea');
  });
});

describe('the result of a call', () => {
  const image: Part = {
    ...{ kind: 'image', attachment: 'image-1', media_type: 'image/png', width: 8, height: 8, alt: '' },
    started_at: 0,
    ended_at: 0,
  };

  async function openResult(...parts: Part[]): Promise<void> {
    await openCall([status('done')], parts);
    await click('tool-call-toggle');
  }

  it('is a table if it is a list of flat objects', async () => {
    const files = [
      { name: 'tea.md', bytes: 12 },
      { name: '<b>x</b>', link: 'https://evil.example' },
    ];
    await openResult(textPart(JSON.stringify(files)));
    const rows = [...the('tool-table').querySelectorAll('tr')];
    expect(rows.map((row) => [...row.cells].map((cell) => cell.textContent))).toEqual([
      ['name', 'bytes', 'link'],
      ['tea.md', '12', ''],
      ['<b>x</b>', '', 'https://evil.example'],
    ]);
    expect(the('tool-table').querySelectorAll('a, b, img')).toHaveLength(0);
  });

  it('is text otherwise, whatever it claims to be', async () => {
    const text = '![x](https://evil.example/x.png) <img src=x> https://evil.example \u202Eabc';
    await openResult(textPart(text));
    expect(the('tool-result').textContent).toBe(text);
    expect(the('tool-result').children).toHaveLength(0);
    expect(all('tool-table')).toEqual([]);
  });

  it('shows its images, which are stored', async () => {
    await openResult(textPart('a cup'), image);
    expect(the('message-images').querySelector('img')?.src).toMatch(/^(?:data:image|attachment:)/);
  });
});

describe('a question that waits', () => {
  /** Asks two questions, of which the second waits, and ends the answer to the first with a call. */
  async function openWaiting(): Promise<{ chat: ReturnType<typeof host.addChat>; id: string }> {
    const chat = host.addChat('A chat', Date.now(), settings);
    host.callNext = { part: call(CALL), status: status('asked') };
    await open('chat', chat.summary.id);
    await ask('What is 2 + 2?');
    await pass(30);
    await type('And then?');
    await click('queue');
    expect(all('queued-question')).toHaveLength(1);
    await pass(5000);
    expect(state()).toBe('Waits for your consent');
    return { chat, id: chat.messages.find(({ role }) => role === 'assistant')?.id ?? '' };
  }

  it('is not asked between a call and the answer to its result', async () => {
    const { chat, id } = await openWaiting();
    expect([all('queued-question').length, all('message-user').length]).toEqual([1, 1]);
    host.setStatus(id, { call: CALL, state: 'done', ended_at: Date.now() });
    host.addResult(id, CALL, { parts: [textPart('tea.md')] });
    await pass(100);
    expect([all('queued-question').length, state()]).toEqual([1, 'Done']);
    host.addRow(chat, { role: 'assistant', finish_reason: 'stop', settings, parts: [textPart('Tea.')] });
    host.setStatus(id, { call: CALL });
    await pass(100);
    expect([all('queued-question').length, all('message-user').length]).toEqual([0, 2]);
  });

  it('is in the draft again if the call before it was stopped', async () => {
    const { id } = await openWaiting();
    host.setStatus(id, { call: CALL, state: 'stopped' });
    await pass(100);
    expect([all('queued-question').length, composer().value]).toEqual([0, 'And then?']);
  });
});
