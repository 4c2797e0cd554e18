/** Passages of documents in a chat: the lines about them, the marks of answers, and the file of a passage. */

import { describe, expect, it, vi } from 'vitest';

import type { Part } from '../../../bindings/Part';
import { DEFAULT_CHAT_SETTINGS } from '../../../bindings/constants';
import { addCitingChat, addCollections, addPhotos, passagesPart, rulesPassage, signPassage, tidePassage } from '../../../host/fake/documentExamples';
import { textPart } from '../../../host/fake';
import { all, click, composer, host, open, pass, the, useWindow } from '../../../testing/window';

useWindow();

const PLACE = 'harbour/tides.md, lines 5–6';
const marks = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('[data-cite]')];
const buttons = (): HTMLElement[] => marks().filter((mark) => mark.getAttribute('role') === 'button');
const labelOf = (mark: HTMLElement | undefined): string[] => (mark?.getAttribute('aria-label') ?? '').split('\n');
const textOf = (name: string): string => the(name).textContent?.replace(/\s+/g, ' ').trim() ?? '';

/** Opens the chat of the examples, whose answer cites rightly and wrongly. */
async function openExample(): Promise<void> {
  const [first = ''] = addCollections(host);
  await open('chat', addCitingChat(host, first, null));
  await pass(100);
}

/** Opens a chat whose question or tool carries such a part. */
async function openWith(part: Part, answer = 'So it is [1].'): Promise<void> {
  const chat = host.addChat('Tides', Date.now(), { ...DEFAULT_CHAT_SETTINGS, model: 'pebble' });
  host.addRow(chat, { role: 'user', parts: [part, textPart('When?')] });
  host.addRow(chat, { role: 'assistant', model: 'pebble', finish_reason: 'stop', parts: [textPart(answer)] });
  await open('chat', chat.summary.id);
  await pass(100);
}

const coverage = { passages: 7, of_passages: 212, files: 3, of_files: 40, unread: 0 };

describe('the lines about passages', () => {
  it('say what came with a question and what was read for its answer, and list it', async () => {
    await openExample();
    expect(textOf('question-passages')).toBe('3 passages from 1 file');
    expect(textOf('answer-coverage')).toBe('Read 3 of 212 passages in 1 of 38 files · 2 files were not read');
    await click('question-passages');
    expect(all('passage')).toHaveLength(3);
    expect(all('passage')[1]?.textContent?.replace(/\s+/g, ' ')).toContain(
      '[2]harbour/tides.md lines 10–11 · The harbour > Ferries The last ferry leaves at 18:40.',
    );
    await click('passage-list-close');
    await click('answer-coverage');
    expect(all('passage')).toHaveLength(3);
  });

  it.each([
    [coverage, 'Read 7 of 212 passages in 3 of 40 files'],
    [{ ...coverage, passages: 212, files: 40 }, 'Read all 40 files'],
    [
      { passages: 1, of_passages: 1, files: 1, of_files: 1, unread: 1 },
      'Read the whole file · 1 file was not read',
    ],
    [{ ...coverage, passages: 0, files: 0 }, 'No matching passages in 40 files'],
    [
      { passages: 0, of_passages: 0, files: 0, of_files: 0, unread: 3 },
      'No file has been read yet · 3 files were not read',
    ],
  ])('tell %o as %s', async (told, words) => {
    await openWith(passagesPart([], told));
    expect(textOf('answer-coverage')).toBe(words);
    expect(textOf('question-passages')).toBe('No matching passages');
    // There is nothing to open.
    expect(the('question-passages').tagName).toBe('P');
  });

  it('take the numbers of the last passages, also of a tool, whose card lists its own', async () => {
    const chat = host.addChat('Tides', Date.now(), { ...DEFAULT_CHAT_SETTINGS, model: 'pebble' });
    const search = { id: 'call-1', name: 'search_documents', arguments: {} };
    const call: Part = { kind: 'tool_call', call: search, started_at: 0, ended_at: 0 };
    const [first, second] = [tidePassage('harbour', 1, '', 5, 6), tidePassage('harbour', 2, '', 10, 11)];
    host.addRow(chat, { role: 'user', parts: [passagesPart([first], coverage), textPart('When?')] });
    host.addRow(chat, { role: 'assistant', model: 'pebble', finish_reason: 'tool_calls', parts: [call] });
    const found = passagesPart([second], { ...coverage, passages: 8 });
    host.addRow(chat, { role: 'tool', tool_call_id: 'call-1', parts: [found] });
    const parts = [textPart('At noon [1], at 18:40 [2].')];
    host.addRow(chat, { role: 'assistant', model: 'pebble', finish_reason: 'stop', parts });
    await open('chat', chat.summary.id);
    await pass(100);
    expect(textOf('answer-coverage')).toContain('Read 8 of 212 passages');
    await click('tool-call-toggle');
    expect(textOf('result-passages')).toBe('1 passage from 1 file');
    expect(buttons()).toHaveLength(2);
    await click('answer-coverage');
    expect(all('passage')).toHaveLength(2);
  });
});

describe('the marks of an answer', () => {
  it('name their places, and say what their passages do not say', async () => {
    await openExample();
    expect(buttons().map((mark) => mark.textContent)).toEqual(['[1]', '[2]', '[1', '2]', '[3]', '[7]']);
    expect(labelOf(buttons()[0])).toEqual([`Source 1: ${PLACE}`]);
    expect(labelOf(buttons()[1])).toEqual(['Source 2: harbour/tides.md, lines 10–11', 'Not in this source: 18:55']);
    expect(labelOf(buttons()[5])).toEqual(['This chat has no source 7.']);
    expect(buttons().map((mark) => mark.hasAttribute('data-wrong'))).toEqual([false, true, false, false, false, true]);
  });

  it('are checked once, when the answer is complete', async () => {
    await openExample();
    expect(host.citationsAsked).toHaveLength(1);
    const [chat = ''] = (await host.chats()).map(({ id }) => id);
    host.addForeignTurn(chat, 'And now?', 'Nothing is cited.');
    await pass(300);
    expect(host.citationsAsked).toHaveLength(1);
  });

  it('have no verdict if the host has none to give', async () => {
    vi.spyOn(host, 'citations').mockRejectedValue({ code: 'storage', message: 'no' });
    await openExample();
    expect(buttons().some((mark) => mark.hasAttribute('data-wrong'))).toBe(false);
    expect(labelOf(buttons()[0])).toEqual([`Source 1: ${PLACE}`]);
  });

  it('are words in a chat without passages', async () => {
    const chat = host.addChat('A list', Date.now());
    host.addTurn(chat, 'Which?', { parts: [textPart('As in [1].')] });
    await open('chat', chat.summary.id);
    await pass(100);
    expect([marks().length, buttons().length]).toEqual([1, 0]);
    expect(host.citationsAsked).toEqual([]);
    expect(all('answer-coverage')).toEqual([]);
  });

  it('show their passage while they have the focus or the pointer', async () => {
    await openExample();
    buttons()[0]?.focus();
    await pass(0);
    expect(textOf('citation-card')).toContain(`Source 1: ${PLACE}`);
    expect(textOf('citation-card')).toContain('The tide turns at noon.');
    buttons()[0]?.blur();
    await pass(0);
    expect(all('citation-card')).toEqual([]);
    buttons()[5]?.dispatchEvent(new Event('pointerover', { bubbles: true }));
    await pass(0);
    expect(textOf('citation-card')).toBe('This chat has no source 7.');
  });
});

describe('the file of a passage', () => {
  it('is opened with the passage marked', async () => {
    await openExample();
    buttons()[0]?.click();
    await pass(10);
    expect(the('passage-text').textContent).toContain('The last ferry leaves at 18:40.');
    expect(the('passage-text').querySelector('mark')?.textContent).toContain('The tide turns at noon.');
    expect(the('passage-viewer').textContent).toContain('/home/ada/Documents/Harbour/harbour/tides.md');
    expect(all('passage-changed')).toEqual([]);
  });

  it('that has changed says so, and the passage is shown as it was quoted', async () => {
    await openExample();
    buttons()[4]?.click();
    await pass(10);
    expect(textOf('passage-changed')).toContain('This file has changed since.');
    expect(the('passage-text').textContent).toBe('A night at the guest pier costs 22 euros.');
  });

  it('that is gone says why, beside what was quoted', async () => {
    await openExample();
    host.keptCollections = [];
    buttons()[0]?.click();
    await pass(10);
    expect(textOf('passage-problem').length).toBeGreaterThan(5);
    expect(the('passage-text').textContent).toContain('The tide turns at noon.');
  });
});

describe('a page of the file of a passage', () => {
  /** Opens the passage on the second of three pages. */
  async function openPage(passage = rulesPassage('harbour', 1)): Promise<void> {
    addCollections(host);
    await openWith(passagesPart([passage], coverage));
    buttons()[0]?.click();
    await pass(100);
  }
  const image = (): HTMLImageElement => {
    const shown = the('page-image');
    if (!(shown instanceof HTMLImageElement)) throw new Error('it is an image');
    return shown;
  };
  const disabled = (name: string): boolean => the(name).hasAttribute('disabled');
  async function press(key: string): Promise<void> {
    the('page-area').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    await pass(100);
  }

  it('is drawn beside its text, with the lines of the passage on it', async () => {
    const asked = vi.spyOn(host, 'passagePage');
    await openPage();
    expect(asked.mock.calls.map(([{ file }, page, width]) => [file, page, width])).toEqual([['harbour/rules.pdf', 2, 800]]);
    expect(image().src.startsWith('data:image/png;base64,iVBOR')).toBe(true);
    expect(image().alt).toBe('Page 2 of 3 with the passage highlighted. Its text follows.');
    expect(all('page-mark').map(({ style }) => [style.left, style.top, style.width])).toEqual([['12%', '10%', '60%']]);
    expect(the('passage-text').querySelector('mark')?.textContent).toBe('Dogs are kept on a leash.');
    expect(the('passage-text').textContent).not.toContain('\f');
    expect(textOf('page-place')).toBe('Page 2 of 3');
  });

  it('has neighbors, which buttons and arrow keys turn to', async () => {
    await openPage();
    await click('page-next');
    await pass(100);
    expect([textOf('page-place'), image().alt, disabled('page-next')]).toEqual([
      'Page 3 of 3',
      'Page 3 of 3. Its text follows.',
      true,
    ]);
    expect(all('page-mark')).toEqual([]);
    await press('ArrowRight');
    expect(textOf('page-place')).toBe('Page 3 of 3');
    await press('ArrowLeft');
    await press('ArrowLeft');
    expect([textOf('page-place'), disabled('page-previous')]).toEqual(['Page 1 of 3', true]);
  });

  it('is drawn anew when it is shown larger, and stays in sight meanwhile', async () => {
    await openPage();
    const asked = vi.spyOn(host, 'passagePage');
    await click('page-larger');
    expect(all('page-image')).toHaveLength(1);
    await pass(100);
    expect(asked.mock.calls.map(([, page, width]) => [page, width])).toEqual([[2, 1200]]);
    expect(image().width).toBe(1200);
    // The arrow keys move a page that is wider than its place.
    await press('ArrowRight');
    expect(textOf('page-place')).toBe('Page 2 of 3');
    await press('+');
    await press('+');
    expect(disabled('page-larger')).toBe(true);
    expect(image().width).toBe(2400);
    await press('0');
    expect([disabled('page-smaller'), image().width]).toEqual([true, 800]);
  });

  it('that cannot be drawn says so, leaves the text, and is asked for again', async () => {
    const asked = vi.spyOn(host, 'passagePage').mockRejectedValueOnce({ code: 'file_broken', message: 'no' });
    await openPage();
    expect(textOf('page-problem')).toBe('This page can’t be shown as an image. Read the text instead.');
    expect(the('passage-text').textContent).toContain('Fires are not allowed.');
    await click('page-retry');
    await pass(100);
    expect(asked).toHaveBeenCalledTimes(2);
    expect(all('page-problem')).toEqual([]);
    expect(image().width).toBe(800);
  });

  it('is the image itself for a file that is one, without neighbors', async () => {
    addPhotos(host);
    const asked = vi.spyOn(host, 'passagePage');
    await openPage(signPassage('photos', 1));
    await pass(100);
    expect(asked.mock.calls.map(([{ file }, page, width]) => [file, page, width])).toEqual([['sign.jpg', 1, 800]]);
    expect(image().alt).toBe('The image. A model’s text about it follows.');
    expect([all('page-next').length, all('page-place').length, all('page-larger').length]).toEqual([0, 0, 1]);
    expect(the('passage-text').querySelector('mark')?.textContent).toContain('FERRY 7:15');
    expect(textOf('passage-viewer')).toContain('Described by Qwen3-VL 4B');
    await press('ArrowRight');
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it('is not asked for where a file has none, or is gone', async () => {
    const asked = vi.spyOn(host, 'passagePage');
    await openPage(tidePassage('harbour', 1, '', 5, 6));
    expect([asked.mock.calls.length, all('page-area').length]).toEqual([0, 0]);
    await click('passage-viewer-close');
    host.keptCollections = [];
    await openPage({ ...rulesPassage('harbour', 1), file: 'harbour/gone.pdf' });
    expect([all('page-area').length, textOf('passage-problem').length > 5]).toEqual([0, true]);
  });
});

describe('the words of a question with passages', () => {
  it('are edited and sent without them', async () => {
    await openExample();
    const sent = vi.spyOn(host, 'send');
    await click('edit-question');
    const editor = the('message-editor');
    if (!(editor instanceof HTMLTextAreaElement)) throw new Error('the editor is a text area');
    expect(editor.value).toBe('When does the tide turn, and when does the last ferry leave?');
    editor.value = 'When is high water?';
    editor.dispatchEvent(new InputEvent('input', { bubbles: true }));
    await click('keep-edit');
    await pass(50);
    expect(sent.mock.calls[0]?.[1]).toEqual([{ kind: 'text', text: 'When is high water?' }]);
  });

  it('come back with the arrow key without them', async () => {
    await openExample();
    composer().focus();
    composer().dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', bubbles: true, cancelable: true }));
    await pass(10);
    expect(composer().value).toBe('When does the tide turn, and when does the last ferry leave?');
  });

  it('are copied without them, and an answer with the list of its sources', async () => {
    const written = vi.fn<(text: string) => Promise<void>>(() => Promise.resolve());
    await openExample();
    vi.stubGlobal('navigator', Object.assign(Object.create(navigator), { clipboard: { writeText: written } }));
    await click('copy-question');
    expect(written).toHaveBeenLastCalledWith('When does the tide turn, and when does the last ferry leave?');
    await click('copy-answer');
    const copied = written.mock.calls.at(-1)?.[0] ?? '';
    expect(copied.startsWith('The tide turns at noon, and high water is at **12:40** [1].')).toBe(true);
    expect(copied.split('\n\n').at(-1)).toBe(
      [
        'Sources:',
        `[1] ${PLACE}, SHA-256 9f2c51d07be4`,
        '[2] harbour/tides.md, lines 10–11, SHA-256 9f2c51d07be4',
        '[3] harbour/tides.md, line 15, SHA-256 9f2c51d07be4',
      ].join('\n'),
    );
  });

  it('are found without those of the passages', async () => {
    await openExample();
    const keys = { key: 'f', ctrlKey: true, bubbles: true, cancelable: true };
    document.body.dispatchEvent(new KeyboardEvent('keydown', keys));
    await pass(50);
    const field = the('find-words');
    if (!(field instanceof HTMLInputElement)) throw new Error('it is a field');
    const find = async (words: string): Promise<string> => {
      field.value = words;
      field.dispatchEvent(new InputEvent('input', { bubbles: true }));
      await pass(50);
      return textOf('find-count');
    };
    expect(await find('Dogs travel')).toBe('No matches');
    expect(await find('passages')).toBe('No matches');
    expect(await find('12:40 [1]')).not.toBe('No matches');
  });
});
