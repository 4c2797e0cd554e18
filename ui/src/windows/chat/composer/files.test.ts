import { describe, expect, it, vi } from 'vitest';

import { all, click, field, host, open, pass, submit, the, useWindow, write } from '../../../testing/window';
import { carrying, fileOf } from '../../../testing/images';

useWindow();

const SMALL = 'pebble';
const LARGE = 'mlx-community/gemma-4-e4b-it-4bit';

async function openWith(model: string) {
  const chat = host.addChat('A chat', Date.now());
  chat.settings = { ...chat.settings, model };
  await open('chat', chat.summary.id);
  return chat;
}

const textFile = (text: string, name = 'notes.md'): File =>
  fileOf(new Uint8Array(new TextEncoder().encode(text)), name);

/** A document with this number of pages and tokens per page, for the fake host. */
const pages = (count: number, tokens: number): string =>
  Array.from({ length: count }, (_, index) => `page ${index + 1} `.padEnd(tokens * 4, 'x')).join('\f');

async function drop(...files: File[]): Promise<void> {
  the('chat-title').dispatchEvent(carrying('drop', files));
  await pass(50);
}

async function pressEnter(): Promise<void> {
  the('composer').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
  await pass(50);
}

describe('a document in a question', () => {
  it('stands there with its length and its tokens, is kept with the draft, and is sent', async () => {
    const chat = await openWith(LARGE);
    const sent = vi.spyOn(host, 'send');
    await drop(textFile('one\ntwo\nthree\n'));
    expect(the('attachment').textContent).toContain('notes.md');
    expect(the('attachment').textContent).toContain('3 lines · 4 tokens');
    expect(the('file-bar').textContent).toContain('of context');
    await pass(400);
    const kept = chat.draft;
    expect(kept).toMatchObject([
      { kind: 'file', name: 'notes.md', excerpt: { unit: 'lines', first: 1, last: 3, of: 3 } },
    ]);
    await open('chat', chat.summary.id);
    await pressEnter();
    expect(sent).toHaveBeenLastCalledWith(chat.summary.id, kept, 'beginning');
    expect(the('message-user').textContent).toContain('notes.md');
  });

  it('is read where it was asked', async () => {
    await openWith(LARGE);
    await drop(textFile('the first line\nthe second line\n'));
    await pressEnter();
    await click('read-file');
    expect(the('file-text').textContent).toBe('the first line\nthe second line\n');
    expect([all('use-part').length, all('insert-file').length]).toEqual([0, 0]);
  });

  it('says why it cannot be read, by its name, and can be taken out', async () => {
    await openWith(LARGE);
    await drop(fileOf(new Uint8Array([1, 0, 2]), 'program.exe'));
    expect(the('broken-image').textContent).toContain('program.exe can’t be read');
    expect((the('send') as HTMLButtonElement).disabled).toBe(true);
    await click('remove-attachment');
    expect(all('broken-image')).toEqual([]);
  });

  it('is no image for a model that cannot see', async () => {
    await openWith(SMALL);
    await drop(textFile('one'));
    expect([all('cannot-see').length, all('image-bar').length, all('attachment').length]).toEqual([0, 0, 1]);
  });
});

describe('a document that is too long', () => {
  it('says what fits and leaves that in the question', async () => {
    const chat = await openWith(SMALL);
    const context = host.local.find(({ reference }) => reference === SMALL)?.context ?? 0;
    expect(context).toBeGreaterThan(1000);
    await drop(textFile(pages(10, Math.ceil(context / 5)), 'book.pdf'));
    await pass(50);
    expect(the('files-too-long').textContent).toMatch(/The first \d of 10 pages of book\.pdf fit\./);
    await click('take-fitting');
    await pass(400);
    expect(all('files-too-long')).toEqual([]);
    expect(the('attachment').textContent).toMatch(/pages 1–[34] of 10/);
    expect(chat.draft).toMatchObject([{ excerpt: { first: 1, of: 10 } }]);
  });

  it('is searched for the part that fits around a hit', async () => {
    const chat = await openWith(SMALL);
    // 195,000 letters; the model has room for 1,536 tokens.
    const lines = Array.from({ length: 1300 }, (_, line) => `line ${line + 1} `.padEnd(149, 'x'));
    lines[899] = 'A Needle '.padEnd(149, 'x');
    await drop(textFile(lines.join('\n')));
    expect(the('files-too-long').textContent).toContain('The first');
    await click('choose-part');
    await pass(50);
    await write('search-file', 'nothing');
    await submit('search-file');
    expect(the('file-hits').textContent).toBe('No matches');
    await write('search-file', 'needle');
    await submit('search-file');
    await pass(400);
    expect(the('file-hits').textContent).toBe('1 of 1');
    expect(the('file-text').querySelector('mark')?.textContent).toBe('Needle');
    const [first, last] = [field('part-first').valueAsNumber, field('part-last').valueAsNumber];
    expect([first > 860, first < 900, last > 900, last - first >= 30]).toEqual([true, true, true, true]);
    await click('use-part');
    await pass(400);
    expect(all('files-too-long')).toEqual([]);
    expect(chat.draft).toMatchObject([{ excerpt: { first, last, of: 1300 } }]);
  });

  it('keeps the part that was chosen last, however long an earlier count takes', async () => {
    await openWith(SMALL);
    const lines = Array.from({ length: 1300 }, (_, line) => `line ${line + 1} `.padEnd(149, 'x'));
    for (const at of [299, 899, 1199]) lines[at] = 'A Needle '.padEnd(149, 'x');
    await drop(textFile(lines.join('\n')));
    await click('choose-part');
    await pass(50);
    const count = host.contentTokens.bind(host);
    const slowly = async (wait: number): Promise<void> => {
      host.contentTokens = async (...asked) => {
        await new Promise((resolve) => setTimeout(resolve, wait));
        return count(...asked);
      };
      await submit('search-file');
    };
    const part = (): number[] => [field('part-first').valueAsNumber, field('part-last').valueAsNumber];
    await write('search-file', 'needle');
    await slowly(100);
    await slowly(1);
    await pass(50);
    const [first = 0, last = 0] = part();
    expect([first > 860, last > 900]).toEqual([true, true]);
    await pass(1000);
    expect(part()).toEqual([first, last]);
    await slowly(100);
    field('part-last').value = '1000';
    field('part-last').dispatchEvent(new Event('change', { bubbles: true }));
    await pass(2000);
    expect(part()).toEqual([first, 1000]);
  });

  it('of which only the first page fits has that offered', async () => {
    await openWith(SMALL);
    await drop(textFile(['x'.repeat(4000), 'y'.repeat(40_000)].join('\f'), 'book.pdf'));
    await pass(50);
    expect(the('files-too-long').textContent).toContain('The first of 2 pages');
  });

  it('asks for no new chat in a new chat', async () => {
    await open('chat');
    await drop(textFile('x'.repeat(200_000)));
    await pass(50);
    expect(the('files-too-long').textContent).toContain('Not even part of it fits. Choose a model');
  });

  it('offers a choice of its pages', async () => {
    const chat = await openWith(SMALL);
    await drop(textFile(pages(10, 900), 'book.pdf'));
    await click('choose-part');
    await pass(50);
    expect(the('file-place').textContent).toBe('Page 1 of 10');
    await click('file-next');
    expect(the('file-text').textContent).toContain('page 2');
    for (const [name, value] of [
      ['part-first', '4'],
      ['part-last', '3'],
    ] as const) {
      field(name).value = value;
      field(name).dispatchEvent(new Event('change', { bubbles: true }));
      await pass(0);
    }
    await pass(400);
    expect([field('part-first').value, field('part-last').value, the('part-tokens').textContent]).toEqual([
      '3',
      '4',
      '1,800 tokens',
    ]);
    await click('use-part');
    await pass(400);
    expect(all('file-reader')).toEqual([]);
    expect(chat.draft).toMatchObject([{ excerpt: { first: 3, last: 4, of: 10 } }]);
    expect(the('attachment').textContent).toContain('pages 3–4 of 10');
  });
});

describe('a long paste', () => {
  it('becomes a file, which can be put back as words', async () => {
    await openWith(LARGE);
    const text = 'some words\n'.repeat(800);
    const event = carrying('paste', [], { 'text/plain': text });
    // The test's page has files, but cannot read them.
    const make = File;
    vi.stubGlobal('File', function (parts: [string], name: string) {
      return Object.assign(new make(parts, name), {
        arrayBuffer: async () => new TextEncoder().encode(parts[0]).slice().buffer,
      });
    });
    the('composer').dispatchEvent(event);
    await pass(50);
    expect(event.defaultPrevented).toBe(true);
    expect(the('attachment').textContent).toContain('Pasted text.txt');
    expect((the('composer') as HTMLTextAreaElement).value).toBe('');
    await click('read-file');
    await pass(50);
    await click('insert-file');
    expect([all('attachment').length, (the('composer') as HTMLTextAreaElement).value]).toEqual([0, text]);
  });

  it('of fewer characters is pasted as words', async () => {
    await openWith(LARGE);
    const event = carrying('paste', [], { 'text/plain': 'some words\n'.repeat(700) });
    the('composer').dispatchEvent(event);
    await pass(50);
    expect([event.defaultPrevented, all('attachment').length]).toEqual([false, 0]);
  });
});

describe('files that a file manager copied', () => {
  it('are attached, not their paths, where the web view only says that addresses are there', async () => {
    await open('chat');
    const make = File;
    vi.stubGlobal('File', function (parts: [ArrayBuffer], name: string) {
      return Object.assign(new make(parts, name), { arrayBuffer: async () => parts[0] });
    });
    host.copiedFiles = [
      { name: 'letter.txt', bytes: new TextEncoder().encode('Dear all').slice() },
      { name: 'a folder', bytes: null },
    ];
    const event = carrying('paste', [], { 'text/uri-list': '' });
    the('composer').dispatchEvent(event);
    await pass(50);
    expect(event.defaultPrevented).toBe(true);
    expect(all('attachment')[0]?.textContent).toContain('letter.txt');
    expect(document.querySelector('.composer')?.textContent).toContain('Couldn’t open this file');
    expect((the('composer') as HTMLTextAreaElement).value).toBe('');
  });

  it('while a copied address stays words', async () => {
    await open('chat');
    const event = carrying('paste', [], {
      'text/uri-list': 'https://example.org',
      'text/plain': 'https://example.org',
    });
    the('composer').dispatchEvent(event);
    await pass(50);
    expect([event.defaultPrevented, all('attachment').length]).toEqual([false, 0]);
  });
});
