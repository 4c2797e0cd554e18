/** The parts that a message is made of. */

import type { Part } from '../bindings/Part';

/** A part with text in it that can grow. */
type TextPart = Extract<Part, { kind: 'text' | 'thinking' }>;

/** The parts with a piece of text added: neighbouring pieces of one kind are one part. The parts given are not changed. */
export function appendText(parts: readonly Part[], kind: TextPart['kind'], text: string, at: number): Part[] {
  const last = parts.at(-1);
  if (last?.kind === kind) return [...parts.slice(0, -1), { ...last, text: last.text + text, ended_at: at }];
  return [...parts, { kind, text, started_at: at, ended_at: at }];
}

/** What the parts say, reasoning and calls left out. */
export function textOf(parts: readonly Part[]): string {
  return parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
}
