/** The lines of the sidebar's list. */

import type { ChatSummary } from '../../../bindings/ChatSummary';
import type { Project } from '../../../bindings/Project';
import type { HistoryHit } from '../../../bindings/HistoryHit';
import type { Period } from '../../../format/format';

/** A line of the list. */
export type Line =
  | { kind: 'heading'; period: Period }
  | { kind: 'project'; project: Project }
  | { kind: 'chat'; chat: ChatSummary }
  | { kind: 'found' }
  | { kind: 'hit'; hit: HistoryHit };

/** The estimated height of a line that was not drawn, in pixels. */
export const HEIGHTS: Record<Line['kind'], number> = { heading: 32, project: 36, chat: 33, found: 32, hit: 58 };

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
    case 'hit':
      return `found ${line.hit.message}`;
  }
}

/** True for a line that the arrow keys stop at. */
export function isRow(line: Line): boolean {
  return line.kind !== 'heading' && line.kind !== 'found';
}
