import { describe, expect, it, vi } from 'vitest';

import { textPart } from '../host/fake';
import { all, click, host, open, pass, the, useWindow } from '../testing/window';

useWindow();

async function openCode(fence: string): Promise<void> {
  const chat = host.addChat('Code', Date.now());
  host.addTurn(chat, 'Write code', { parts: [textPart(fence)] });
  await open('chat', chat.summary.id);
}

describe('a code block', () => {
  it('is saved to a file by the dialog of the system, which alone knows the place', async () => {
    await openCode('```rust\nfn main() {}\n```');
    await click('save-code');
    expect(host.savedCode).toEqual([{ code: 'fn main() {}', language: 'rust' }]);
    expect(the('save-code').textContent).toBe('Saved as code.rust');
    await pass(3000);
    expect(the('save-code').textContent).toBe('Save');
    host.closesDialogs = true;
    await click('save-code');
    expect(the('save-code').textContent).toBe('Save');
    expect(all('toast')).toEqual([]);
  });

  it('says why it could not be saved', async () => {
    await openCode('```\nx\n```');
    host.saveCode = async () => {
      throw { code: 'storage', reason: 'file_not_saved', message: 'the file could not be written: the disk is full' };
    };
    await click('save-code');
    expect(the('toast').textContent).toContain('Couldn’t save the file');
    expect(the('save-code').textContent).toBe('Save');
  });

  /** How many there are after each frame. */
  async function counts(count: () => number): Promise<number[]> {
    const seen: number[] = [];
    for (let frame = 0; frame < 90; frame++) {
      seen.push(count());
      await pass(16);
      await vi.dynamicImportSettled();
    }
    return seen;
  }
  /** The most that one frame added. */
  const most = (seen: readonly number[]): number =>
    Math.max(...seen.slice(1).map((count, frame) => count - (seen[frame] ?? 0)));

  it.each(['', 'rust'])('of 200 and of 50 kilobytes is drawn a few pieces in each frame (%s)', async (label) => {
    const lines = (label ? 50_000 : 200_000) / 20;
    await openCode(`\`\`\`${label}\n${'let number = 12345;\n'.repeat(lines)}\`\`\`\n`);
    const pieces = (): Element[] => [...document.querySelectorAll('[data-testid=answer-text] pre .piece')];
    const seen = await counts(() => pieces().length);
    expect(seen[0]).toBeLessThan(12);
    expect(most(seen)).toBe(1);
    expect(the('answer-text').querySelectorAll('[data-drawing]')).toHaveLength(0);
    expect(pieces().reduce((sum, piece) => sum + (piece.textContent ?? '').split('\n').length, 0)).toBe(lines);
    expect(document.querySelectorAll('pre .t-keyword').length).toBe(label ? lines : 0);
  });

  it.each([
    ['rust', 3100, ['Shown without colors because highlighting would be slow.']],
    ['rust', 300, []],
    ['', 3100, []],
  ])('says that it is too long to be colored (%s, %i lines)', async (label, lines, notes) => {
    await openCode(`\`\`\`${label}\n${'let number = 12345;\n'.repeat(lines)}\`\`\`\n`);
    await counts(() => 0);
    expect(document.querySelectorAll('pre .t-keyword').length).toBe(label && notes.length === 0 ? lines : 0);
    expect(all('shown-plain').map((note) => note.textContent)).toEqual(notes);
  });

  it('is colored one in each frame, however many there are', async () => {
    await openCode(Array.from({ length: 12 }, (_, at) => `\`\`\`rust\nfn f${at}() {}\n\`\`\``).join('\n\n'));
    const blocks = (): Element[] => [...document.querySelectorAll('[data-testid=answer-text] pre')];
    const seen = await counts(() => blocks().filter((block) => block.querySelector('.t-keyword')).length);
    expect([seen.at(-1), most(seen)]).toEqual([12, 1]);
  });

  it('offers to draw diagrams alone', async () => {
    await openCode('```mermaid\ngraph TD\n  A --> B\n```\n\n```rust\nfn main() {}\n```');
    expect(all('draw-diagram')).toHaveLength(1);
    expect(all('save-code')).toHaveLength(2);
  });
});
