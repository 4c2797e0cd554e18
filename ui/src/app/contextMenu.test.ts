import { describe, expect, it } from 'vitest';

import { textPart } from '../host/fake';
import { all, click, host, open, pass, the, useWindow } from '../testing/window';

useWindow();

async function openMenu(target: Element): Promise<string[]> {
  target.dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true, clientX: 10, clientY: 10 }));
  await pass(0);
  return all('context-menu').flatMap((menu) =>
    [...menu.querySelectorAll('[role=menuitem]')].map((item) => item.textContent?.trim() ?? ''),
  );
}

async function openChat(): Promise<void> {
  const chat = host.addChat('A chat', Date.now());
  host.addTurn(chat, 'A question\nof two lines', {
    state: 'stopped',
    finish_reason: 'cancelled',
    parts: [textPart('An **answer**')],
  });
  await open('chat', chat.summary.id);
}

function draft(): string {
  const area = the('composer');
  return area instanceof HTMLTextAreaElement ? area.value : '';
}

describe('the context menu', () => {
  it('has the tools of a message', async () => {
    await openChat();
    expect(await openMenu(the('message-user').querySelector('.words') ?? the('message-user'))).toEqual([
      'Copy message',
      'Quote',
      'Edit message',
    ]);
    expect(await openMenu(the('answer-text'))).toEqual([
      'Copy response',
      'Quote',
      'Edit response',
      'Continue',
      'Regenerate',
    ]);
    await click('menu-regenerate');
    await pass(100);
    expect(the('message-assistant').dataset.state).toBe('streaming');
  });

  it('quotes a message in the draft, below what is there', async () => {
    await openChat();
    await openMenu(the('message-user'));
    await click('quote');
    expect(draft()).toBe('> A question\n> of two lines\n\n');
    expect(document.activeElement).toBe(the('composer'));
    await openMenu(the('answer-text'));
    await click('quote');
    expect(draft()).toBe('> A question\n> of two lines\n\n> An answer\n\n');
  });

  it('copies or quotes selected words of a message', async () => {
    await openChat();
    getSelection()?.selectAllChildren(the('answer-text').querySelector('strong') ?? the('answer-text'));
    expect(await openMenu(the('answer-text'))).toEqual(['Copy', 'Quote']);
    await click('quote');
    expect(draft()).toBe('> answer\n\n');
  });

  it('only copies words that belong to no message, and is absent elsewhere', async () => {
    await openChat();
    getSelection()?.selectAllChildren(the('chat-title'));
    expect(await openMenu(the('chat-title'))).toEqual(['Copy']);
    getSelection()?.removeAllRanges();
    expect(await openMenu(the('chats'))).toEqual([]);
  });

  it('has for a field what can be done with its words', async () => {
    await openChat();
    const area = the('composer');
    if (!(area instanceof HTMLTextAreaElement)) throw new Error('no field');
    expect(await openMenu(area)).toEqual(['Paste']);
    area.value = 'some words';
    area.dispatchEvent(new InputEvent('input', { bubbles: true }));
    expect(await openMenu(area)).toEqual(['Paste', 'Select all']);
    await click('select-all');
    expect([area.selectionStart, area.selectionEnd, document.activeElement === area]).toEqual([0, 10, true]);
    expect(await openMenu(area)).toEqual(['Cut', 'Copy', 'Paste', 'Select all']);
    area.readOnly = true;
    expect(await openMenu(area)).toEqual(['Copy', 'Select all']);
  });
});
