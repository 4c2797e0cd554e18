/** Versions of questions and answers, deletions, and chats that other windows change. */

import { describe, expect, it, vi } from 'vitest';

import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import { textPart } from '../../host/fake';
import { all, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

async function openChat(turns = 1): Promise<string> {
  const chat = host.addChat('A chat', Date.now());
  for (let turn = 1; turn <= turns; turn++)
    host.addTurn(chat, `Question ${turn}`, {
      settings: DEFAULT_CHAT_SETTINGS,
      parts: [textPart(`Answer **${turn}**`)],
    });
  await open('chat', chat.summary.id);
  return chat.summary.id;
}

function editor(): HTMLTextAreaElement {
  const area = the('message-editor');
  if (!(area instanceof HTMLTextAreaElement)) throw new Error('no field');
  return area;
}

async function rewrite(text: string): Promise<void> {
  editor().value = text;
  editor().dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(0);
  await click('keep-edit');
  await pass(2000);
}

/** Presses a menu of a message, an entry of it, and what that asks. */
async function choose(...names: string[]): Promise<void> {
  for (const name of names) await click(name);
  await pass(50);
}

const shown = (): string[] =>
  [...document.querySelectorAll<HTMLElement>('.words, [data-testid="answer-text"]')].map((element) =>
    element.textContent.trim(),
  );

describe('a question', () => {
  it('is edited in its place; the old one and its answers stay a branch away', async () => {
    await openChat(2);
    all('edit-question')[0]?.click();
    await pass(0);
    expect(document.activeElement).toBe(editor());
    expect(editor().value).toBe('Question 1');
    await rewrite('Another question');
    expect(shown()[0]).toBe('Another question');
    expect(all('message-user')).toHaveLength(1);
    expect(the('question-pager').textContent).toContain('2 / 2');
    the('question-pager').querySelector('button')?.click();
    await pass(50);
    expect(shown()).toEqual(['Question 1', 'Answer 1', 'Question 2', 'Answer 2']);
    expect(all('question-pager')).toHaveLength(1);
  });

  it('keeps what was written if it cannot be sent, and nothing if it is cancelled', async () => {
    await openChat();
    await click('edit-question');
    host.refuse = { call: 'send', error: { code: 'storage', message: 'The disk is full.' } };
    await rewrite('Another question');
    expect(editor().value).toBe('Another question');
    await click('cancel-edit');
    expect(shown()).toEqual(['Question 1', 'Answer 1']);
    expect(document.activeElement).toBe(the('composer'));
  });

  it('without an answer can be answered', async () => {
    await openChat();
    await choose('answer-menu', 'delete-answer', 'delete-branch-confirm');
    expect(shown()).toEqual(['Question 1']);
    await click('answer-question');
    await pass(3000);
    expect(all('message-assistant')).toHaveLength(1);
    expect(the('message-assistant').dataset['state']).toBe('complete');
  });
});

describe('an answer', () => {
  it('is written over beside the first and says so', async () => {
    await openChat();
    await click('edit-answer');
    expect(editor().value).toBe('Answer **1**');
    await rewrite('A *better* answer');
    expect(shown()).toEqual(['Question 1', 'A better answer']);
    expect(the('pager').textContent).toContain('2 / 2');
    expect(all('edited')).toHaveLength(1);
  });

  it('is asked for again from another model or with another thinking setting', async () => {
    await openChat();
    await click('answer-menu');
    expect(all('answer-again-with')).toEqual([]);
    await click('regenerate-with');
    const ways = all('answer-again-with').map((entry) => entry.textContent.trim());
    expect(ways[0]).toBe('No thinking');
    expect(ways).toContain('Gemma 4 E4B');
    expect(ways).not.toContain('Pebble');
    all('answer-again-with')
      .find((entry) => entry.textContent.includes('Gemma'))
      ?.click();
    await pass(3000);
    expect(the('pager').textContent).toContain('2 / 2');
    expect(the('origin').textContent).toContain('Gemma 4 E4B');
    const [chat] = await host.chats();
    expect((await host.chat(chat?.id ?? '')).settings.model).toBe('pebble');
  });

  it('says who wrote it and when', async () => {
    await openChat();
    expect(the('origin').textContent).toMatch(/^Pebble · \d/);
  });
});

describe('what is deleted', () => {
  it('comes back by Undo, a turn in the middle without what follows it', async () => {
    await openChat(3);
    all('answer-menu')[1]?.click();
    await pass(0);
    await click('delete-turn');
    await pass(50);
    expect(shown()).toEqual(['Question 1', 'Answer 1', 'Question 3', 'Answer 3']);
    await click('toast-undo');
    await pass(50);
    expect(shown()).toHaveLength(6);
    all('question-menu')[1]?.click();
    await pass(0);
    await click('delete-question');
    await pass(50);
    expect(shown()).toHaveLength(6);
    await click('delete-branch-confirm');
    await pass(50);
    expect(shown()).toEqual(['Question 1', 'Answer 1']);
    await click('toast-undo');
    await pass(50);
    expect(shown()).toHaveLength(6);
  });

  it('with all that follows it is counted and asked about first', async () => {
    await openChat(3);
    all('answer-menu')[1]?.click();
    await pass(0);
    await click('delete-answer');
    expect(the('delete-branch').querySelector('h2')?.textContent).toBe('Delete 3 messages?');
    await click('delete-branch-cancel');
    expect([shown().length, all('delete-branch')]).toEqual([6, []]);
    all('answer-menu')[2]?.click();
    await pass(0);
    await click('delete-answer');
    expect(the('delete-branch').querySelector('h2')?.textContent).toBe('Delete 1 message?');
    await click('delete-branch-confirm');
    await pass(50);
    expect(shown()).toHaveLength(5);
  });
});

describe('the key of Undo in the composer, where the focus is after a deletion', () => {
  const press = async (): Promise<boolean> => {
    const event = new KeyboardEvent('keydown', { key: 'z', ctrlKey: true, bubbles: true, cancelable: true });
    the('composer').dispatchEvent(event);
    await pass(50);
    return event.defaultPrevented;
  };

  it('brings back what was deleted', async () => {
    await openChat();
    await choose('answer-menu', 'delete-answer', 'delete-branch-confirm');
    expect(document.activeElement).toBe(the('composer'));
    expect(shown()).toEqual(['Question 1']);
    expect(await press()).toBe(true);
    expect(shown()).toEqual(['Question 1', 'Answer 1']);
  });

  it('takes back letters that were written since', async () => {
    await openChat();
    await choose('answer-menu', 'delete-answer', 'delete-branch-confirm');
    the('composer').dispatchEvent(new InputEvent('input', { bubbles: true }));
    const letters = vi.spyOn(document, 'execCommand');
    expect(await press()).toBe(true);
    expect(letters.mock.calls).toEqual([['undo']]);
    expect(shown()).toEqual(['Question 1']);
  });
});

describe('a chat', () => {
  it('is taken along from a message into another one', async () => {
    const id = await openChat(2);
    all('answer-menu')[0]?.click();
    await pass(0);
    await click('fork-answer');
    await pass(50);
    expect(shown()).toEqual(['Question 1', 'Answer 1']);
    expect(the('chat-title').textContent).toBe('A chat (branch)');
    expect((await host.chat(id)).messages).toHaveLength(4);
  });

  it('that another window or program writes to is shown as it is', async () => {
    const id = await openChat();
    host.addForeignTurn(id, 'From elsewhere', 'Answered elsewhere');
    await pass(50);
    expect(shown()).toEqual(['Question 1', 'Answer 1', 'From elsewhere', 'Answered elsewhere']);
    const { messages } = await host.chat(id);
    await host.showBranch(messages[1]?.id ?? '');
    await host.deleteMessage(messages[2]?.id ?? '', 'branch');
    await pass(50);
    expect(shown()).toEqual(['Question 1', 'Answer 1']);
  });

  it('gets a question after what is shown, whatever came meanwhile', async () => {
    const id = await openChat();
    const { messages } = await host.chat(id);
    const [question, answer] = messages;
    const sent = host.send.bind(host);
    let position: unknown = null;
    host.send = async (chat, content, at) => {
      position = at;
      return sent(chat, content, at);
    };
    host.addForeignTurn(id, 'From elsewhere', 'Answered elsewhere');
    const area = the('composer');
    if (!(area instanceof HTMLTextAreaElement)) throw new Error('no composer');
    area.value = 'Mine';
    area.dispatchEvent(new InputEvent('input', { bubbles: true }));
    area.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    await pass(3000);
    expect(position).toEqual({ after: answer?.id });
    expect(question?.parent).toBeNull();
    expect(shown().slice(0, 3)).toEqual(['Question 1', 'Answer 1', 'Mine']);
    expect(all('question-pager').at(-1)?.textContent).toContain('2 / 2');
  });

  it('in which an answer ended is marked until it is opened', async () => {
    await openChat();
    const other = host.addChat('Another', Date.now() - 1000);
    await host.send(other.summary.id, [{ kind: 'text', text: 'Hello' }], 'end');
    await pass(3000);
    expect(all('unread')).toHaveLength(1);
    all('chat-item')
      .find((entry) => entry.textContent.includes('Another'))
      ?.click();
    await pass(100);
    expect(all('unread')).toHaveLength(0);
    expect((await host.chats()).some(({ unread }) => unread)).toBe(false);
  });
});
