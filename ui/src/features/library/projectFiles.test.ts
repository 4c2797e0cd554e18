import { beforeEach, describe, expect, it, vi } from 'vitest';

import { filesOf } from '../../shared/files';
import { carrying, fileOf, pngFile } from '../../testing/images';
import { all, click, field, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

const SMALL = 'pebble';
const textFile = (text: string, name: string): File => fileOf(new Uint8Array(new TextEncoder().encode(text)), name);

/** A document with this number of pages and tokens per page, for the fake host. */
const pages = (count: number, tokens: number): string =>
  Array.from({ length: count }, (_, index) => `page ${index + 1} `.padEnd(tokens * 4, 'x')).join('\f');

async function drop(...files: File[]): Promise<Event> {
  const event = carrying('drop', files);
  the('project-settings').dispatchEvent(event);
  await pass(50);
  return event;
}

async function takeOutFirst(): Promise<void> {
  all('remove-attachment')[0]?.click();
  await pass(50);
}

function names(): string[] {
  return all('attachment').map((item) => item.textContent?.trim() ?? '');
}

const kept = async () => filesOf((await host.projects())[0]?.files ?? []);

beforeEach(async () => {
  const chat = host.addChat('About tea', Date.now());
  chat.settings = { ...chat.settings, model: SMALL };
  const { id } = await host.createProject('Drinks');
  await host.moveChat(chat.summary.id, id);
  await open('chat', chat.summary.id);
  await click('project-menu');
  await click('open-project');
});

describe("a project's files", () => {
  it('are added one after another, with their length and tokens, and are in the project at once', async () => {
    expect(the('project-files').textContent).toContain('start of every chat');
    await drop(textFile('one\ntwo\nthree\n', 'notes.md'), textFile('a,b\n', 'table.csv'));
    expect(names()).toEqual([
      expect.stringMatching(/notes\.md.*3 lines · 4 tokens/s),
      expect.stringMatching(/table\.csv.*1 line · 1 token/s),
    ]);
    expect((await kept()).map(({ name }) => name)).toEqual(['notes.md', 'table.csv']);
    expect(the('file-bar').textContent).toContain('5 tokens');
    // None of it went into the draft behind the sheet.
    expect(document.querySelector('.composer [data-testid="attachment"]')).toBeNull();
    expect(all('drop-target')).toEqual([]);
  });

  it('are taken out, and come back to their place by the sheet or by Ctrl+Z', async () => {
    await drop(textFile('one\n', 'one.txt'), textFile('two\n', 'two.txt'));
    await takeOutFirst();
    expect((await kept()).map(({ name }) => name)).toEqual(['two.txt']);
    expect(the('file-removed').textContent).toContain('Removed “one.txt” from “Drinks”.');
    expect(document.activeElement).toBe(the('add-project-files'));
    await click('put-file-back');
    await pass(50);
    expect((await kept()).map(({ name }) => name)).toEqual(['one.txt', 'two.txt']);
    expect(all('file-removed')).toEqual([]);

    await takeOutFirst();
    await click('project-settings-close');
    document.body.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'z', ctrlKey: true, bubbles: true, cancelable: true }),
    );
    await pass(50);
    expect((await kept()).map(({ name }) => name)).toEqual(['one.txt', 'two.txt']);
  });

  it('say why one cannot be taken, by its name, and the others are', async () => {
    await drop(fileOf(new Uint8Array([1, 0, 2]), 'program.exe'), pngFile('cup.png'), textFile('tea\n', 'tea.txt'));
    const broken = all('broken-file').map(({ textContent }) => textContent);
    expect(broken).toEqual([
      expect.stringContaining('program.exe can’t be read'),
      expect.stringContaining('cup.png can’t be read'),
    ]);
    expect(names()).toEqual([expect.stringContaining('tea.txt')]);
    await click('dismiss-file');
    expect(all('broken-file')).toHaveLength(1);
    // A refusal of the host is shown in the sheet, not under it.
    vi.spyOn(host, 'removeProjectFile').mockRejectedValueOnce({
      code: 'not_found',
      message: 'there is no such file; it may have been deleted',
    });
    await click('remove-attachment');
    await pass(50);
    expect(the('project-files-problem').textContent).toBe('Not found. It may have been deleted or moved.');
    expect([names().length, all('file-removed').length]).toEqual([1, 0]);
  });

  it('have names that stand apart from the sentence around them, in which nothing turns the letters around', async () => {
    await drop(textFile('one\n', 'שלום.txt'), fileOf(new Uint8Array([1, 0, 2]), 'cod\u202egpj.exe'));
    const [broken] = all('broken-file');
    expect(broken?.querySelector('b')?.hasAttribute('dir')).toBe(false);
    expect(broken?.querySelector('b')?.innerHTML.replace(/<!---->/g, '')).toBe('<bdi>codgpj.exe</bdi> can’t be read');
    await takeOutFirst();
    const line = the('file-removed').querySelector('span');
    expect(line?.hasAttribute('dir')).toBe(false);
    expect(line?.innerHTML.replace(/<!---->/g, '')).toBe('Removed “<bdi>שלום.txt</bdi>” from “<bdi>Drinks</bdi>”.');
  });

  it('that are too long say what fits, and leave that or a choice of pages', async () => {
    const context = host.local.find(({ reference }) => reference === SMALL)?.context ?? 0;
    await drop(textFile(pages(10, Math.ceil(context / 5)), 'book.pdf'));
    await pass(50);
    expect(the('files-too-long').textContent).toMatch(/The first \d of 10 pages of book\.pdf fit\./);
    await click('take-fitting');
    await pass(50);
    expect(all('files-too-long')).toEqual([]);
    expect((await kept())[0]?.excerpt).toMatchObject({ first: 1, of: 10 });
    await click('read-file');
    await pass(50);
    for (const [name, value] of [
      ['part-first', '2'],
      ['part-last', '3'],
    ] as const) {
      field(name).value = value;
      field(name).dispatchEvent(new Event('change', { bubbles: true }));
      await pass(0);
    }
    await click('use-part');
    await pass(50);
    expect((await kept())[0]?.excerpt).toMatchObject({ first: 2, last: 3, of: 10 });
  });

  it('are read ahead while the first question of a new chat is typed, once until they change', async () => {
    await drop(textFile('one\n', 'one.txt'));
    await click('project-settings-close');
    const composer = (): HTMLTextAreaElement => the('composer') as HTMLTextAreaElement;
    const type = async (text: string): Promise<void> => {
      composer().value = text;
      composer().dispatchEvent(new InputEvent('input', { bubbles: true }));
      await pass(600);
    };
    // An existing chat is prefetched when it is opened.
    await type('What is in it?');
    expect(host.prefetched).toEqual([]);
    await click('new-in-project');
    await pass(50);
    expect(host.prefetched).toEqual([]);
    const [project] = await host.projects();
    for (const text of ['W', 'Wh', 'What is in it?']) await type(text);
    expect(host.prefetched).toEqual([project?.id]);
    await host.putProjectFile(project?.id ?? '', await host.addFile(new TextEncoder().encode('two'), 'two.txt', ''));
    await type('What is in them?');
    expect(host.prefetched).toEqual([project?.id, project?.id]);
    // One that begins outside takes none along.
    await click('new-chat');
    await type('What is 2 + 3?');
    expect(host.prefetched).toHaveLength(2);
  });

  it('count in what the first question takes of the context', async () => {
    const context = host.local.find(({ reference }) => reference === SMALL)?.context ?? 0;
    await drop(textFile('x'.repeat(4 * (context - 4)), 'long.txt'));
    await click('project-settings-close');
    const composer = the('composer') as HTMLTextAreaElement;
    composer.value = 'a question of more than four tokens, as anybody sees';
    composer.dispatchEvent(new InputEvent('input', { bubbles: true }));
    await pass(600);
    expect(the('project-along').textContent).toMatch(/^1 file from “Drinks” included · [\d,]+ tokens$/);
    expect(the('draft-tokens').textContent).toBe('13 tokens, only 4 free');
  });
});
