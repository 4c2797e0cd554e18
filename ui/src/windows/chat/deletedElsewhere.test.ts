/** A chat that is open here and is deleted in another window, or by another program. */

import { describe, expect, it } from 'vitest';

import { textPart } from '../../host/fake';
import { all, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

async function openChat(): Promise<string> {
  const chat = host.addChat('About tea', Date.now());
  host.addTurn(chat, 'A question', { parts: [textPart('An answer')] });
  await open('chat', chat.summary.id);
  return chat.summary.id;
}

function composer(name = 'composer'): HTMLTextAreaElement {
  const area = the(name);
  if (!(area instanceof HTMLTextAreaElement)) throw new Error('no text area');
  return area;
}

async function type(text: string, name?: string): Promise<void> {
  composer(name).value = text;
  composer(name).dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(0);
}

async function send(text: string, name?: string): Promise<void> {
  await type(text, name);
  composer(name).dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
  await pass(0);
}

const toasts = (): string[] => all('toast').map((toast) => toast.textContent.trim());

describe('a chat that is deleted elsewhere', () => {
  it('is left, and a person is told', async () => {
    const id = await openChat();
    await host.deleteChat(id);
    await pass(500);
    expect([the('chat-title').textContent, all('message-user')]).toEqual(['New chat', []]);
    expect(toasts()).toEqual(['“About tea” was deleted elsewhere.']);
  });

  it('is no more told of once a chat is opened', async () => {
    const other = host.addChat('About the sea', Date.now() - 1000);
    const id = await openChat();
    await host.deleteChat(id);
    await pass(500);
    expect(toasts()).toEqual(['“About tea” was deleted elsewhere.']);
    document.querySelector<HTMLElement>(`[data-chat-id="${other.summary.id}"]`)?.click();
    await pass(50);
    expect(toasts()).toEqual([]);
  });

  it('leaves what was being written in it in the draft of a new chat, after what that held', async () => {
    const id = await openChat();
    await click('new-chat');
    await type('For a new chat');
    await pass(500);
    await click('chat-item');
    await pass(50);
    await type('Half a question');
    await host.deleteChat(id);
    await pass(500);
    expect(composer().value).toBe('For a new chat\nHalf a question');
    expect(toasts()).toEqual(['“About tea” was deleted elsewhere. Your draft is in this new chat.']);
    await send(composer().value);
    await pass(5000);
    expect((await host.chats()).map(({ id: chat }) => chat)).not.toContain(id);
    expect(the('message-user').textContent).toContain('Half a question');
    expect(toasts().join(' ')).not.toContain('no such chat');
  });

  it('takes back the question that waits for its answer', async () => {
    const id = await openChat();
    await send('Tell me a long story');
    await pass(300);
    await send('And then?');
    expect(all('queued-question')).toHaveLength(1);
    await host.stop((await host.chat(id)).messages.at(-1)?.id ?? '');
    await host.deleteChat(id);
    await pass(500);
    expect(composer().value).toBe('And then?');
    expect(all('queued-question')).toEqual([]);
  });

  it('is left once a question that was on its way has come back', async () => {
    const id = await openChat();
    const sent = host.send.bind(host);
    host.send = async (...question) => {
      await host.deleteChat(id);
      await new Promise((wake) => setTimeout(wake, 200));
      return sent(...question);
    };
    await send('Too late');
    await pass(1000);
    expect([the('chat-title').textContent, composer().value]).toEqual(['New chat', 'Too late']);
    expect(toasts()).toContain('“About tea” was deleted elsewhere. Your draft is in this new chat.');
  });

  it('is not told of if it was deleted here', async () => {
    await openChat();
    await type('Half a question');
    await click('chat-menu');
    await click('delete-chat');
    await pass(500);
    expect([the('chat-title').textContent, composer().value]).toEqual(['New chat', '']);
    expect(toasts().join(' ')).not.toContain('elsewhere');
    await click('toast-undo');
    await pass(50);
    expect([the('chat-title').textContent, composer().value]).toEqual(['About tea', 'Half a question']);
  });

  it('stays open if it could not be deleted', async () => {
    await openChat();
    host.deleteChat = () => Promise.reject({ code: 'storage', message: 'The disk is full.' });
    await click('chat-menu');
    await click('delete-chat');
    await pass(50);
    expect(the('chat-title').textContent).toBe('About tea');
    expect(toasts().join(' ')).toContain('Couldn’t read or save data');
  });

  it('is left in quick entry as well', async () => {
    await open('quick');
    await send('What is 347 + 589?', 'quick-question');
    await pass(5000);
    expect(all('quick-answer')).toHaveLength(1);
    const [chat] = await host.chats();
    await host.deleteChat(chat?.id ?? '');
    await pass(50);
    expect(all('quick-answer')).toEqual([]);
    expect(toasts().join(' ')).toContain('was deleted elsewhere');
  });
});
