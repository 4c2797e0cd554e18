/** The temporary chat: begun, left, kept. */

import { describe, expect, it } from 'vitest';

import { all, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

function composer(): HTMLTextAreaElement {
  const area = the('composer');
  if (!(area instanceof HTMLTextAreaElement)) throw new Error('no text area');
  return area;
}

async function type(text: string): Promise<void> {
  composer().value = text;
  composer().dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(0);
}

async function send(text: string): Promise<void> {
  await type(text);
  composer().dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
  await pass(2000);
}

const listed = (): string[] => all('chat-item').map((item) => item.textContent.trim());
const toasts = (): string[] => all('toast').map((toast) => toast.textContent.trim());

describe('a temporary chat', () => {
  it('says so, is not listed, and is gone when it is left', async () => {
    await open('chat');
    await click('temporary-chat');
    expect([the('chat-title').textContent, all('temporary-chat')]).toEqual(['Temporary chat', []]);
    expect(the('temporary-empty').textContent).toContain('isn’t saved');
    expect(the('temporary-note').textContent).toContain('Nothing in this chat is saved.');
    await send('A secret');
    expect(all('message-user')).toHaveLength(1);
    expect(listed()).toEqual([]);
    const id = host.temporary;
    expect(id).not.toBeNull();
    await click('new-chat');
    expect([host.temporary, all('temporary-note'), all('message-user')]).toEqual([null, [], []]);
    await expect(host.chat(id ?? '')).rejects.toMatchObject({ code: 'not_found' });
    expect(toasts()).toEqual([]);
  });

  it('stores no draft, and what was written goes with it', async () => {
    await open('chat');
    await click('temporary-chat');
    const id = host.temporary ?? '';
    await type('Half a secret');
    await pass(3000);
    expect((await host.chat(id)).draft).toEqual([]);
    await click('new-chat');
    await pass(3000);
    expect(composer().value).toBe('');
    expect(toasts()).toEqual([]);
  });

  it('becomes a normal chat when it is kept, with its draft', async () => {
    await open('chat');
    await click('temporary-chat');
    expect(all('keep-chat')).toEqual([]);
    await send('Worth keeping');
    const id = host.temporary ?? '';
    await type('And more');
    await click('keep-chat');
    await pass(500);
    expect([host.temporary, all('temporary-note'), all('message-user').length]).toEqual([null, [], 1]);
    expect(listed()).toHaveLength(1);
    expect(toasts()).toEqual(['This chat is saved now.']);
    expect((await host.chat(id)).draft).toMatchObject([{ kind: 'text', text: 'And more' }]);
  });

  it('stays temporary if it cannot be kept', async () => {
    await open('chat');
    await click('temporary-chat');
    await send('Worth keeping');
    host.refuse = { call: 'keepTemporaryChat', error: { code: 'storage', message: 'The disk is full.' } };
    await click('keep-chat');
    await pass(100);
    expect(all('temporary-note')).toHaveLength(1);
    expect(toasts()).toHaveLength(1);
    expect(all('message-user')).toHaveLength(1);
  });

  /** Lets keeping take until the returned function is called, with an error if it fails. */
  function slowly(): { end: (error?: object) => void; calls: () => number } {
    const keep = host.keepTemporaryChat.bind(host);
    let calls = 0;
    let end: (error?: object) => void = () => {};
    const ended = new Promise<void>((resolve, reject) => {
      end = (error) => (error === undefined ? resolve() : reject(error));
    });
    host.keepTemporaryChat = async () => {
      calls += 1;
      await ended;
      await keep();
    };
    return { end, calls: () => calls };
  }

  it('is kept once, however often that is pressed', async () => {
    await open('chat');
    await click('temporary-chat');
    await send('Worth keeping');
    const keeping = slowly();
    await click('keep-chat');
    await click('keep-chat');
    expect(the('keep-chat')).toHaveProperty('disabled', true);
    keeping.end();
    await pass(500);
    expect([keeping.calls(), toasts(), listed().length]).toEqual([1, ['This chat is saved now.'], 1]);
  });

  it('is not closed while it is being kept, and what is sent meanwhile waits for that', async () => {
    await open('chat');
    await click('temporary-chat');
    await send('Worth keeping');
    const id = host.temporary ?? '';
    const keeping = slowly();
    await click('keep-chat');
    await send('And more');
    expect(all('message-user')).toHaveLength(1);
    await click('new-chat');
    expect(host.temporary).toBe(id);
    keeping.end();
    await pass(3000);
    expect([host.temporary, listed().length]).toEqual([null, 1]);
    const said = (await host.chat(id)).messages.filter(({ role }) => role === 'user');
    expect(said).toHaveLength(2);
  });

  it('is shown again if it was left and could not be kept', async () => {
    await open('chat');
    await click('temporary-chat');
    await send('Worth keeping');
    const keeping = slowly();
    await click('keep-chat');
    await click('new-chat');
    expect(all('message-user')).toEqual([]);
    keeping.end({ code: 'storage', reason: 'history_read_only', message: 'read only' });
    await pass(500);
    expect([all('temporary-note').length, all('message-user').length]).toEqual([1, 1]);
    expect(toasts()).toEqual([expect.stringContaining('Can’t save chats')]);
  });

  it('is replaced by another one, and is there again when the page is loaded anew', async () => {
    await open('chat');
    await click('temporary-chat');
    await send('A secret');
    const first = host.temporary;
    window.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'N', ctrlKey: true, shiftKey: true, bubbles: true, cancelable: true }),
    );
    await pass(100);
    expect(host.temporary).not.toBe(first);
    expect([host.temporary === null, all('message-user')]).toEqual([false, []]);
    await send('Another secret');
    await open('chat');
    expect(all('message-user')).toHaveLength(1);
    expect(all('temporary-note')).toHaveLength(1);
  });
});
