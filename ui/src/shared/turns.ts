/**
 * The rows of a branch, as a user reads them. One row is one generation or one result of a tool; everything between two
 * questions is one turn: answers that call tools, the tools' results, and the answer at the end.
 */

import type { CallStatus } from '../bindings/CallStatus';
import type { Position } from '../bindings/Position';
import type { StoredMessage } from '../bindings/StoredMessage';
import { imagesOf, textOf } from './messageParts';

/** A question, or all that answers it. */
export type Entry =
  { kind: 'question'; message: StoredMessage } | { kind: 'turn'; id: string; rows: readonly StoredMessage[] };

/** The rows of a branch, grouped. A system message belongs to no turn and is not shown. */
export function entries(messages: readonly StoredMessage[]): Entry[] {
  const result: Entry[] = [];
  let rows: StoredMessage[] | null = null;
  for (const message of messages) {
    switch (message.role) {
      case 'user':
        result.push({ kind: 'question', message });
        rows = null;
        break;
      case 'assistant':
      case 'tool':
        if (rows === null) result.push({ kind: 'turn', id: message.id, rows: (rows = []) });
        rows.push(message);
        break;
      case 'system':
        break;
    }
  }
  return result;
}

/** The text of a turn: that of its answers, without reasoning, calls and results. */
export function turnText(rows: readonly StoredMessage[]): string {
  return rows
    .map((row) => (row.role === 'assistant' ? textOf(row.parts).trim() : ''))
    .filter(Boolean)
    .join('\n\n');
}

/** The text of an earlier question of a branch, counted back from 1; `null` if the branch has fewer. */
export function earlierQuestion(messages: readonly StoredMessage[], back: number): string | null {
  const asked = messages.filter((message) => message.role === 'user').map((message) => textOf(message.parts));
  return asked.filter((text) => text.trim() !== '').at(-back) ?? null;
}

/** The result of each call of a turn, by the call's id. */
export function resultsOf(rows: readonly StoredMessage[]): Map<string, StoredMessage> {
  const results = new Map<string, StoredMessage>();
  for (const row of rows) if (row.tool_call_id !== null) results.set(row.tool_call_id, row);
  return results;
}

/** True for a call that waits or runs. */
export function isOpen({ state }: CallStatus): boolean {
  return state === 'asked' || state === 'started';
}

/** True for a call after which nothing follows by itself: it was stopped, or its process is gone. */
export function isCutOff({ state }: CallStatus): boolean {
  return state === 'stopped' || state === 'not_run' || state === 'may_have_run';
}

/** True for an answer whose calls Ponder looks after, so that another answer follows. */
export function goesOn({ state, parts, settings, calls }: StoredMessage): boolean {
  const calling = parts.some(({ kind }) => kind === 'tool_call') && (settings?.tools.length ?? 0) > 0;
  return state === 'complete' && calling && !calls.some(isCutOff);
}

/** The identity of an entry. */
export function entryKey(entry: Entry): string {
  return entry.kind === 'question' ? entry.message.id : entry.id;
}

/** True if a message belongs to an entry. */
export function holds(entry: Entry, message: string): boolean {
  return entry.kind === 'question' ? entry.message.id === message : entry.rows.some(({ id }) => id === message);
}

const LINE = 23;
const LINE_LENGTH = 90;
const FRAME = 72;
const IMAGE_ROW = 142;
const IMAGES_IN_ROW = 4;

/** About how high an entry will be, in pixels, as long as it was not drawn. */
export function guessedHeight(entry: Entry): number {
  const text = entry.kind === 'question' ? textOf(entry.message.parts) : turnText(entry.rows);
  const images = entry.kind === 'question' ? imagesOf(entry.message.parts).length : 0;
  return (
    FRAME +
    LINE * Math.ceil(Math.min(text.length, 40_000) / LINE_LENGTH) +
    IMAGE_ROW * Math.ceil(images / IMAGES_IN_ROW)
  );
}

/** The messages of a branch with a stored turn after the message that it follows. */
export function withTurn(
  messages: readonly StoredMessage[],
  question: StoredMessage,
  answer: StoredMessage,
): StoredMessage[] {
  const parent = messages.findIndex(({ id }) => id === question.parent);
  // The chat may have been read again meanwhile.
  const known = new Set([question.id, answer.id]);
  return [...messages.slice(0, parent + 1).filter(({ id }) => !known.has(id)), question, answer];
}

/** The position of the next question: after the messages shown, whatever another window or process added. */
export function endOf(messages: readonly StoredMessage[]): Position {
  const last = messages.at(-1);
  return last ? { after: last.id } : 'beginning';
}
