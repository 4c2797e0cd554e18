/** The lines of the sidebar's list. */

import type { ChatSummary } from '../../../bindings/ChatSummary';
import type { Project } from '../../../bindings/Project';
import type { HistoryHit } from '../../../bindings/HistoryHit';
import type { Period } from '../../../format/format';

/** A line of the list. */
export type Line =
  | { kind: 'heading'; period: Period }
  | { kind: 'projects' }
  | { kind: 'project'; project: Project; count: number }
  | { kind: 'chat'; chat: ChatSummary }
  | { kind: 'found' }
  | { kind: 'hits'; chat: string; title: string; count: number }
  | { kind: 'hit'; hit: HistoryHit }
  | { kind: 'more'; chat: string; title: string; count: number };

/** The estimated height of a line that was not drawn, in pixels. */
export const HEIGHTS: Record<Line['kind'], number> = {
  heading: 32,
  projects: 32,
  project: 33,
  chat: 33,
  found: 32,
  hits: 30,
  hit: 44,
  more: 30,
};

/** The identity of a line. */
export function lineKey(line: Line): string {
  switch (line.kind) {
    case 'heading':
      return line.period;
    case 'project':
      return line.project.id;
    case 'chat':
      return line.chat.id;
    case 'found':
      return 'found';
    case 'projects':
      return 'projects';
    case 'hits':
      return `hits ${line.chat}`;
    case 'more':
      return `more ${line.chat}`;
    case 'hit':
      return `found ${line.hit.message}`;
  }
}

/** True for a line that the arrow keys stop at. */
export function isRow({ kind }: Line): boolean {
  return kind !== 'heading' && kind !== 'found' && kind !== 'hits';
}

/** The hits of a chat that are listed until all of them are asked for. */
const AT_FIRST = 3;

/** The lines of what was found: grouped by chat, in the order of their first hits. */
export function hitLines(hits: readonly HistoryHit[], whole: ReadonlySet<string>): Line[] {
  const groups = new Map<string, HistoryHit[]>();
  for (const hit of hits) {
    const others = groups.get(hit.chat);
    if (others) others.push(hit);
    else groups.set(hit.chat, [hit]);
  }
  return [...groups].flatMap(([chat, inside]): Line[] => {
    const count = inside.length;
    // A line that stands for one hit takes as much room as that hit.
    const shown = whole.has(chat) || count <= AT_FIRST + 1 ? inside : inside.slice(0, AT_FIRST);
    const title = inside[0]?.title ?? '';
    return [
      { kind: 'hits', chat, title, count },
      ...shown.map((hit): Line => ({ kind: 'hit', hit })),
      ...(shown.length < count ? [{ kind: 'more', chat, title, count } as const] : []),
    ];
  });
}
