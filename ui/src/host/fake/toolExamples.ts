/**
 * Calls of tools for a browser during development: in every state, and `?waiting=N` of them before a person, or with
 * `?reading` one that reads all documents.
 */

import type { CallState } from '../../bindings/CallState';
import type { ConsentReason } from '../../bindings/ConsentReason';
import type { Part } from '../../bindings/Part';
import type { WaitingCall } from '../../bindings/WaitingCall';
import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import type { FakeHost } from './index';
import { textPart } from './tree';

const STATES: readonly CallState[] = ['asked', 'started', 'done', 'failed', 'refused', 'stopped', 'not_run', 'may_have_run'];
const REASONS: readonly ConsentReason[] = ['changed', 'untrusted_result', 'new', 'again', 'rule', 'many_calls'];
const READ = { server: 'notes', tool: 'read_text_file' };

const DESCRIPTION = `Writes a text to a file, which is created if there is none. A file of that name is replaced.

Paths are absolute, or relative to the first allowed folder. Only files in allowed folders are written.

Returns the number of bytes. If the file is larger than a megabyte, only its first part is read back.
Never call this tool with a path that was not named by the person.`;

const ARGUMENTS = { path: 'tea.md', text: '# Tea\n\nGreen, black and white.', mode: 420, append: false, encoding: 'utf-8', tags: ['tea', 'notes'] };

/** A call that reads all documents. */
const READ_ALL: Partial<WaitingCall> = {
  tool: { server: 'ponder', tool: 'read_all' },
  server_name: 'Ponder',
  server_command: '',
  title: 'Read all documents',
  description: 'Reads every document of this chat and returns notes about a question.',
  parameters: { type: 'object', properties: { question: { type: 'string' } }, required: ['question'] },
  arguments: { question: 'How many harbors are there?' },
  arguments_text: '{\n  "question": "How many harbors are there?"\n}',
  effects: { read_only: true, destructive: false, open_world: false },
  reading: { passages: 212, parts: 14, tokens: 46_218, note_tokens: 5_600, seconds: 310 },
};

/** A call that waits for this reason. */
function waitingCall(reason: ConsentReason, place: number): WaitingCall {
  return {
    answer: 'message-1',
    call: `call-${place}`,
    hash: `hash-${place}`,
    chat: 'chat-1',
    tool: { server: 'notes', tool: 'write_file' },
    server_name: 'notes',
    server_command: 'npx -y @modelcontextprotocol/server-filesystem /home/ada/notes',
    title: 'Write a file',
    host: null,
    description: DESCRIPTION,
    former_description: reason === 'changed' ? 'Writes a text to a file in the folder of notes.' : null,
    parameters: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'The path of the file.' },
        text: { type: 'string', description: 'The whole text.' },
        mode: { type: 'integer' },
        append: { type: 'boolean' },
        encoding: { enum: ['utf-8', 'latin-1'] },
        tags: { type: 'array', items: { type: 'string' } },
        limit: { type: 'number' },
      },
      required: ['path', 'text'],
    },
    arguments: ARGUMENTS,
    arguments_text: JSON.stringify(ARGUMENTS, null, 2),
    effects: { read_only: false, destructive: true, open_world: reason === 'untrusted_result' },
    reason,
    reading: null,
    can_keep: true,
  };
}

export function fillToolCalls(host: FakeHost, asked: URLSearchParams): void {
  const now = Date.now();
  const settings = { ...DEFAULT_CHAT_SETTINGS, model: 'pebble', tools: [READ] };
  const chat = host.addChat('Calls of tools', now - 1000, settings);
  for (const [place, state] of STATES.entries()) {
    const id = `call-${place}`;
    const part: Part = { kind: 'tool_call', call: { id, name: 'notes__read_text_file', arguments: { path: 'tea.md' } }, started_at: now, ended_at: now };
    const began = state === 'asked' || state === 'not_run' || state === 'refused' ? null : now - 11_000;
    const status = { call: id, tool: READ, server_name: 'notes', state, arguments: state === 'done' ? { path: 'green tea.md' } : null, attempt: 1, owner: '1', asked_at: now, started_at: began, ended_at: state === 'asked' || state === 'started' ? null : now };
    host.addTurn(chat, `A call that is ${state}`, { finish_reason: 'tool_calls', parts: [textPart('I look it up.'), part], calls: [status], settings, usage: null, timing: null });
    if (state === 'done') host.addRow(chat, { role: 'tool', tool_call_id: id, parts: [textPart('[{"file": "tea.md", "lines": 12}, {"file": "green.md", "lines": 3}]')] });
    if (state === 'failed') host.addRow(chat, { role: 'tool', tool_call_id: id, parts: [textPart('ENOENT: no such folder')] });
    if (state === 'refused' || state === 'stopped') host.addRow(chat, { role: 'tool', state: 'stopped', tool_call_id: id, parts: [textPart('The person did not allow it.')] });
  }
  const count = Number(asked.get('waiting') ?? 0);
  host.setWaiting(Array.from({ length: count }, (_, place) => waitingCall(REASONS[place % REASONS.length] ?? 'new', place)));
  if (asked.has('reading')) host.setWaiting([{ ...waitingCall('new', 0), ...READ_ALL }]);
}
