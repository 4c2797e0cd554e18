import { describe, expect, it } from 'vitest';

import { textPart } from '../host/fake';
import { all, click, host, open, pass, the, useWindow, write } from '../testing/window';
import { FOLDED } from './LongTable.svelte';
import { PART_ROWS } from './sections';

useWindow();

const AT_FIRST = FOLDED * PART_ROWS;

async function openAnswer(text: string): Promise<void> {
  const chat = host.addChat('Long', Date.now());
  host.addTurn(chat, 'A question', { parts: [textPart(text)] });
  await open('chat', chat.summary.id);
  await pass(300);
}

const rows = (): number => the('answer-text').querySelectorAll('tbody tr').length;

describe('a table of many rows', () => {
  const ROWS = 1000;
  // A table that was unfolded stays so, so each test has its own.
  const openTable = (title: string): Promise<void> => {
    const lines = Array.from({ length: ROWS }, (_, row) => `| row ${row} of it | words |\n`).join('');
    return openAnswer(`${title}\n\n| name | what |\n|---|---|\n${lines}\n**After.**\n`);
  };

  it('shows its first part, and all of it on request, a part in each frame', async () => {
    await openTable('Shown');
    expect(rows()).toBe(AT_FIRST);
    expect(the('answer-text').querySelectorAll('table, thead tr')).toHaveLength(2);
    expect(the('show-all-rows').textContent).toBe('Show all 1,000 rows');
    expect(the('answer-text').querySelector('strong')?.textContent).toBe('After.');
    the('show-all-rows').click();
    for (let before = rows(); before < ROWS; ) {
      await pass(16);
      expect(rows() - before).toBe(PART_ROWS);
      before = rows();
    }
    expect(all('show-all-rows')).toEqual([]);
    const names = [...the('answer-text').querySelectorAll('tbody td:first-child')].map((cell) => cell.textContent);
    expect(names).toEqual(Array.from({ length: ROWS }, (_, row) => `row ${row} of it`));
    expect(the('answer-text').querySelectorAll('table')).toHaveLength(1);
  });

  it('is found through, also where it is not drawn', async () => {
    await openTable('Found');
    document.dispatchEvent(new KeyboardEvent('keydown', { key: 'f', ctrlKey: true, bubbles: true }));
    await pass(20);
    await write('find-words', 'row 5 of');
    await pass(100);
    expect([the('find-count').textContent?.trim(), rows()]).toEqual(['1 of 1', AT_FIRST]);
    await write('find-words', 'row 999 of');
    await pass(100);
    expect([the('find-count').textContent?.trim(), rows()]).toEqual(['1 of 1', ROWS]);
  });

  it('is copied whole', async () => {
    await openTable('Copied');
    let copied = '';
    const clipboard = { writeText: async (text: string) => void (copied = text) };
    Object.defineProperty(navigator, 'clipboard', { value: clipboard, configurable: true });
    the('answer-text')
      .querySelector('td')
      ?.dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true }));
    await pass(0);
    expect(rows()).toBe(AT_FIRST);
    await click('copy-table');
    expect(copied.split('\n')).toHaveLength(1 + ROWS);
    expect(copied.split('\n').at(-1)).toBe('row 999 of it\twords');
  });
});

describe('a part that is out of proportion', () => {
  it('says that it is shown as it is written, and is formatted on request', async () => {
    await openAnswer(`# Before\n\n${'word '.repeat(3400)}**end**\n\nafter\n`);
    expect(the('shown-plain').textContent).toContain('Shown as plain text');
    expect(the('answer-text').querySelectorAll('strong')).toHaveLength(0);
    await click('format-anyway');
    await pass(300);
    expect(all('shown-plain')).toEqual([]);
    expect(the('answer-text').querySelectorAll('strong')).toHaveLength(1);
    expect(the('answer-text').textContent).toContain('after');
  });

  it('says so if it cannot be formatted at all', async () => {
    await openAnswer(`${'>'.repeat(10_000)}\n\nafter\n`);
    await click('format-anyway');
    await pass(300);
    expect(the('shown-plain').textContent).toContain('couldn’t be formatted');
    expect(all('format-anyway')).toEqual([]);
    expect(the('answer-text').textContent).toContain('>>>>');
  });

  it('is not said of ordinary texts, nor while one is read', async () => {
    const chat = host.addChat('Long', Date.now());
    host.addTurn(chat, 'A question', { parts: [textPart('Some words. '.repeat(60).concat('\n\n').repeat(20))] });
    await open('chat', chat.summary.id);
    for (let frame = 0; frame < 20; frame++) {
      expect(all('shown-plain')).toEqual([]);
      await pass(16);
    }
  });
});
