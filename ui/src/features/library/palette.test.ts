import { describe, expect, it } from 'vitest';

import type { ChatSummary } from '../../bindings/ChatSummary';
import { offered } from './palette';

/** Chats that count how often their titles are read. */
function chats(count: number): { list: ChatSummary[]; reads: () => number } {
  let reads = 0;
  const list = Array.from({ length: count }, (_, index) => ({
    id: `${index}`,
    get title() {
      reads++;
      return index % 2 === 0 ? `Café number ${index}` : `A walk to the café, ${index}`;
    },
  })) as unknown as ChatSummary[];
  return { list, reads: () => reads };
}

const nothingElse = { commands: [], settings: [], models: [], hits: [] };

describe('the palette with 5,000 chats', () => {
  it('reads the titles of those it shows alone', () => {
    const { list, reads } = chats(5000);
    expect(offered('', { ...nothingElse, chats: list })).toHaveLength(8);
    expect(reads()).toBeLessThan(50);
  });

  it('folds each title once, however many letters are typed', () => {
    const { list, reads } = chats(5000);
    for (const query of ['c', 'ca', 'caf', 'cafe', 'CAFÉ']) {
      const labels = offered(query, { ...nothingElse, chats: list }).map(({ label }) => label);
      expect(labels.slice(0, 2)).toEqual(['Café number 0', 'Café number 2']);
      expect(labels).toHaveLength(8);
    }
    // The first letter reads each title twice, the others look whether there is one.
    expect(reads()).toBeLessThan(5000 * 7);
  });

  it('puts the beginnings of words first', () => {
    const list = ['Submarine', 'A marine', 'Marine life'].map((title, id) => ({ id: `${id}`, title }) as ChatSummary);
    const labels = offered('marine', { ...nothingElse, chats: list }).map(({ label }) => label);
    expect(labels).toEqual(['Marine life', 'A marine', 'Submarine']);
  });
});
