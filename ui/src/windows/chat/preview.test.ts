/** The preview of what a response wrote. */

import { describe, expect, it, vi } from 'vitest';

import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import { textPart } from '../../host/fake';
import { all, ask, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

const page = (title: string, body: string): string =>
  `\`\`\`html\n<!doctype html>\n<title>${title}</title>\n<p>${body}</p>\n\`\`\``;

/** Opens a chat with these answers. */
async function openChat(...answers: string[]): Promise<string> {
  const chat = host.addChat('A chat', Date.now());
  for (const [turn, answer] of answers.entries())
    host.addTurn(chat, `Question ${turn + 1}`, { settings: DEFAULT_CHAT_SETTINGS, parts: [textPart(answer)] });
  await open('chat', chat.summary.id);
  return chat.summary.id;
}

/** Presses the button of the nth block that has a preview, as the keyboard does. */
async function openBlock(place: number): Promise<void> {
  const button = all('open-preview').at(place);
  button?.focus();
  button?.click();
  await pass(50);
}

/** The same for the block of the answer with this word: those far up are not drawn. */
async function openBlockOf(word: string): Promise<void> {
  const place = all('open-preview').findIndex((button) =>
    button.closest('[data-testid="message-assistant"]')?.textContent.includes(word),
  );
  await openBlock(place);
}

function frame(): HTMLIFrameElement {
  const found = the('preview-frame');
  if (!(found instanceof HTMLIFrameElement)) throw new Error('no frame');
  return found;
}

const version = (): string => the('preview-version').textContent;
const escape = (element: EventTarget): boolean =>
  element.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true }));

describe('a preview', () => {
  it('is opened by a person alone, in a frame that has no origin and no powers', async () => {
    await openChat(page('Tides', 'one'));
    expect(all('preview')).toEqual([]);
    expect(host.preview).toBeNull();
    await openBlock(0);
    expect(host.preview).toEqual({ code: '<!doctype html>\n<title>Tides</title>\n<p>one</p>', drawing: false });
    expect(the('preview-title').textContent.trim()).toBe('Tides');
    expect(document.activeElement).toBe(the('preview-title'));
    expect(frame().getAttribute('sandbox')).toBe('allow-scripts');
    expect([frame().allow, frame().referrerPolicy]).toEqual(['', 'no-referrer']);
    expect(frame().src).toMatch(/^data:text\/html/);
  });

  it('runs nothing in a drawing, and leaves diagrams to their own frame', async () => {
    vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener() {}, removeEventListener() {} }));
    await openChat('```svg\n<svg><title>A wave</title></svg>\n```\n\n```mermaid\npie title Shares\n  "a" : 3\n```');
    await openBlock(0);
    expect(frame().getAttribute('sandbox')).toBe('');
    expect(host.preview?.drawing).toBe(true);
    expect(the('preview-title').textContent.trim()).toBe('A wave');
    expect(all('preview-reload')).toEqual([]);
    await openBlock(1);
    expect(the('preview-title').textContent.trim()).toBe('Shares');
    expect(all('preview-frame')).toEqual([]);
    expect(host.previews).toBe(1);
  });

  it('closes with Escape and with its button, and gives the focus back', async () => {
    await openChat(page('Tides', 'one'));
    for (const close of [() => void escape(the('preview-title')), () => the('preview-close').click()]) {
      await openBlock(0);
      the('preview-close').focus();
      close();
      await pass(50);
      expect(all('preview')).toEqual([]);
      expect(host.preview).toBeNull();
      expect(document.activeElement).toBe(the('open-preview'));
    }
    await openBlock(0);
    escape(document.body);
    await pass(50);
    expect(all('preview')).toEqual([]);
  });

  it('has the versions of the branch, and shows another one in a frame of its own', async () => {
    await openChat(page('Tides', 'one'), page('Other', 'x'), page('Tides', 'two'), page('Tides', 'three'));
    await openBlockOf('two');
    expect(version()).toBe('2 of 3');
    const before = frame();
    await click('preview-newer');
    await pass(20);
    expect(version()).toBe('3 of 3');
    expect(frame()).not.toBe(before);
    expect(host.preview?.code).toContain('three');
    expect(the('preview-newer')).toHaveProperty('disabled', true);
    await click('preview-older');
    await click('preview-older');
    await pass(20);
    expect(version()).toBe('1 of 3');
    expect(the('preview-older')).toHaveProperty('disabled', true);
    await openBlockOf('Other');
    expect(all('preview-version')).toEqual([]);
  });

  it('follows the newest version as soon as it is finished, unless an older one is shown', async () => {
    await openChat(page('Tides', 'one'));
    await openBlock(0);
    await ask('The web page again, two');
    // While it is written there is no half of it.
    for (let step = 0; step < 200 && host.previews === 1; step++) {
      expect(host.preview?.code).toContain('one');
      await pass(10);
    }
    expect(host.preview?.code).toMatch(/two<\/p>$/);
    expect(version()).toBe('2 of 2');
    await pass(4000);
    expect(host.previews).toBe(2);
    await click('preview-older');
    await pass(20);
    await ask('The web page again, three');
    await pass(4000);
    expect(version()).toBe('1 of 3');
    expect(host.preview?.code).toContain('one');
  });

  it('shows, copies and saves its code', async () => {
    const copied: string[] = [];
    const clipboard = { writeText: async (text: string) => void copied.push(text) };
    Object.defineProperty(navigator, 'clipboard', { value: clipboard, configurable: true });
    await openChat(page('Tides', '<b>one</b>'));
    await openBlock(0);
    await click('preview-code');
    expect(the('preview-source').textContent).toContain('<p><b>one</b></p>');
    expect(all('preview-frame')).toEqual([]);
    await click('preview-copy');
    await click('preview-save');
    await pass(20);
    expect(copied).toEqual([expect.stringContaining('<title>Tides</title>')]);
    expect(host.savedCode).toEqual([{ code: expect.stringContaining('<title>Tides</title>'), language: 'html' }]);
    await click('preview-code');
    expect(all('preview-frame')).toHaveLength(1);
  });

  it('can be stopped and run again, at another address', async () => {
    await openChat(page('Tides', 'one'));
    await openBlock(0);
    const { src } = frame();
    await click('preview-stop');
    expect([all('preview-frame'), all('preview-stop')]).toEqual([[], []]);
    expect(the('preview-stopped').textContent).toContain('stopped');
    await click('preview-run');
    await pass(20);
    expect(frame().src).not.toBe(src);
    const again = frame().src;
    await click('preview-reload');
    await pass(20);
    expect(frame().src).not.toBe(again);
  });

  it('is stopped if it takes the focus while a person writes', async () => {
    await openChat(page('Tides', 'one'));
    await openBlock(0);
    const area = the('composer');
    area.focus();
    frame().focus();
    dispatchEvent(new FocusEvent('blur'));
    await pass(20);
    expect(all('preview-frame')).toEqual([]);
    expect(the('preview-stopped').textContent).toContain('keyboard');
    expect(document.activeElement).toBe(area);
  });

  it('may have the focus that a click or the Tab key gives it', async () => {
    await openChat(page('Tides', 'one'));
    await openBlock(0);
    the('composer').focus();
    const over = vi.spyOn(frame(), 'matches').mockImplementation((selector) => selector === ':hover');
    frame().focus();
    dispatchEvent(new FocusEvent('blur'));
    over.mockRestore();
    the('preview-close').focus();
    the('preview-close').dispatchEvent(new KeyboardEvent('keydown', { key: 'Tab', bubbles: true }));
    frame().focus();
    dispatchEvent(new FocusEvent('blur'));
    await pass(20);
    expect(all('preview-stopped')).toEqual([]);
    // Someone who has just pressed another key is writing, wherever the pointer is.
    the('composer').focus();
    the('composer').dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true }));
    vi.spyOn(frame(), 'matches').mockImplementation((selector) => selector === ':hover');
    frame().focus();
    dispatchEvent(new FocusEvent('blur'));
    await pass(20);
    expect(all('preview-stopped')).toHaveLength(1);
  });

  it('goes with its chat, and a refused one says why', async () => {
    await openChat(page('Tides', 'one'));
    await openBlock(0);
    await click('new-chat');
    await pass(50);
    expect([all('preview'), host.preview]).toEqual([[], null]);

    await openChat(page('Tides', 'one'));
    vi.spyOn(host, 'showPreview').mockRejectedValue({ code: 'bad_request', message: 'too long' });
    await openBlock(0);
    expect(all('preview')).toEqual([]);
    expect(all('toast')).toHaveLength(1);
  });

  it('is spoken of if the page had to be loaded again with it', async () => {
    await host.showPreview('for (;;);', false);
    await openChat(page('Tides', 'one'));
    expect(the('toast').textContent).toContain('reloaded');
    expect([all('preview'), host.preview]).toEqual([[], null]);
  });

  it('hears nothing of what its page says', async () => {
    await openChat(page('Tides', 'one'));
    await openBlock(0);
    const before = document.body.innerHTML;
    for (const data of ['quit', { cmd: 'open_window' }, { nonce: '1', svg: '<svg/>' }, null])
      dispatchEvent(new MessageEvent('message', { data, source: frame().contentWindow }));
    await pass(50);
    expect(document.body.innerHTML).toBe(before);
  });

  it('is made wider with the arrow keys', async () => {
    await openChat(page('Tides', 'one'));
    await openBlock(0);
    vi.spyOn(the('preview'), 'getBoundingClientRect').mockReturnValue(new DOMRect(0, 0, 500, 400));
    const press = (key: string): boolean =>
      the('preview-edge').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    press('ArrowLeft');
    await pass(0);
    expect(the('preview').style.width).toBe('532px');
    press('ArrowRight');
    await pass(0);
    expect(the('preview').style.width).toBe('468px');
    expect(the('preview-edge').getAttribute('aria-valuenow')).toBe('468');
  });
});
