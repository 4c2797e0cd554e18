import { describe, expect, it } from 'vitest';

import { all, click, field, host, open, pass, searchList, submit, the, type, useWindow, write } from '../testing/window';

useWindow();

/** Presses a control as a mouse does that gives it the focus first. */
async function press(name: string): Promise<void> {
  the(name).focus();
  expect(document.activeElement).toBe(the(name));
  await click(name);
  await pass(60);
}

function focused(): string {
  const { activeElement } = document;
  return activeElement === document.body
    ? 'nothing'
    : (activeElement?.getAttribute('data-testid') ?? activeElement?.getAttribute('aria-label') ?? 'something');
}

describe('the focus', () => {
  it('is in the composer after Send, Stop and another answer by mouse', async () => {
    await open('chat');
    await type('Tell me a long story');
    await press('send');
    expect(focused()).toBe('composer');
    await press('stop');
    expect(focused()).toBe('composer');
    await pass(200);
    await press('regenerate');
    expect(focused()).toBe('composer');
    await press('stop');
    await pass(200);
    expect(focused()).toBe('composer');
  });

  it('is on the arrow that was pressed, on the branch that it brought', async () => {
    const chat = host.addChat('A chat', Date.now());
    const first = host.addTurn(chat, 'A question', {});
    for (let more = 0; more < 2; more++)
      host.addRow(Object.assign(chat, { leaf: first.parent }), {
        role: 'assistant',
        model: 'pebble',
        finish_reason: 'stop',
      });
    await open('chat', chat.summary.id);
    expect(the('pager').textContent?.trim()).toBe('3 / 3');
    const arrow = (index: number): HTMLButtonElement | undefined => the('pager').querySelectorAll('button')[index];
    const go = async (index: number): Promise<void> => {
      arrow(index)?.focus();
      arrow(index)?.click();
      await pass(60);
    };
    await go(0);
    expect([the('pager').textContent?.trim(), document.activeElement]).toEqual(['2 / 3', arrow(0)]);
    // At the end only the other one can be pressed.
    await go(0);
    expect([the('pager').textContent?.trim(), document.activeElement]).toEqual(['1 / 3', arrow(1)]);
  });

  it('is somewhere after a chat was deleted, after Undo, and after a toast was dismissed', async () => {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'A question', {});
    await open('chat', chat.summary.id);
    await press('chat-menu');
    await press('delete-chat');
    expect(focused()).toBe('composer');
    await press('toast-undo');
    expect(focused()).toBe('composer');
    await press('chat-menu');
    await press('delete-chat');
    const dismiss = the('toast').querySelector<HTMLElement>('[aria-label="Dismiss"]');
    dismiss?.focus();
    dismiss?.click();
    await pass(60);
    expect([all('toast'), focused()]).toEqual([[], 'composer']);
  });

  it('goes along with what is put elsewhere', async () => {
    host.addChat('First', Date.now());
    host.addChat('Second', Date.now() - 1000);
    const last = host.addChat('Third', Date.now() - 2000);
    await open('chat');
    const row = (): HTMLElement | undefined =>
      all('chat-item').find(({ textContent }) => textContent?.trim() === 'Third');
    row()?.focus();
    await host.pinChat(last.summary.id, true);
    await pass(100);
    expect(all('chat-item')[0]).toBe(row());
    expect(document.activeElement).toBe(row());
  });

  it('is in the composer after Escape in the search', async () => {
    await open('chat');
    await searchList('word');
    expect(focused()).toBe('search');
    const escape = (): boolean =>
      the('search').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true }));
    escape();
    await pass(0);
    expect([field('search').value, focused()]).toEqual(['', 'search']);
    escape();
    await pass(0);
    expect([focused(), all('search'), all('open-palette').length]).toEqual(['composer', [], 1]);
  });

  it('comes back to a control that could not be used for a while', async () => {
    const button = document.body.appendChild(document.createElement('button'));
    await open('chat');
    button.focus();
    // Web views take the focus from disabled elements; jsdom leaves it there.
    button.blur();
    button.disabled = true;
    await pass(0);
    expect(focused()).toBe('nothing');
    button.disabled = false;
    await pass(0);
    expect(document.activeElement).toBe(button);
    button.remove();
    await pass(0);
    expect(focused()).toBe('composer');
  });

  it('is at home in the other windows when a control goes away', async () => {
    await open('settings');
    the('tab-connections').click();
    await pass(50);
    await press('open-add-endpoint');
    await write('endpoint-name', 'lab');
    await write('endpoint-url', 'https://lab.example');
    await submit('endpoint-url');
    await pass(50);
    await press('remove-endpoint');
    expect(focused()).not.toBe('nothing');
  });
});

describe('a toast', () => {
  it('takes room of its own above the composer and leaves with its cause', async () => {
    const chat = host.addChat('A chat', Date.now());
    await open('chat', chat.summary.id);
    host.refuse = { call: 'send', error: { code: 'storage', message: 'the disk is full' } };
    await type('Hello');
    await press('send');
    expect(the('toast').textContent).toContain('Couldn’t read or save data');
    expect(getComputedStyle(the('toast').parentElement ?? document.body).position).not.toBe('fixed');
    expect(the('toast').compareDocumentPosition(the('composer')) & Node.DOCUMENT_POSITION_FOLLOWING).toBeTruthy();
    host.refuse = null;
    await press('send');
    expect(all('toast')).toEqual([]);
  });

  it('about a chat leaves when another is opened', async () => {
    const chat = host.addChat('A chat', Date.now());
    await open('chat', chat.summary.id);
    host.refuse = { call: 'send', error: { code: 'storage', message: 'the disk is full' } };
    await type('Hello');
    await press('send');
    expect(all('toast')).toHaveLength(1);
    await click('new-chat');
    await pass(50);
    expect(all('toast')).toEqual([]);
  });

  it('about the list of chats leaves once the list is read', async () => {
    const chat = host.addChat('A chat', Date.now());
    const read = host.chatsSince;
    host.chatsSince = () => Promise.reject({ code: 'storage', message: 'the disk sleeps' });
    await open('chat', chat.summary.id);
    expect(the('toast').textContent).toContain('Couldn’t read or save data');
    host.chatsSince = read;
    await host.renameChat(chat.summary.id, 'Another name');
    await pass(50);
    expect(all('toast')).toEqual([]);
  });
});
