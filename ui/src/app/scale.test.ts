import { Lexer } from 'marked';
import { afterEach, beforeEach, describe, expect, it, vi, type MockInstance } from 'vitest';

import * as format from '../format/format';
import { textPart } from '../host/fake';
import { all, click, host, open, pass, searchList, the, type, useWindow } from '../testing/window';

useWindow();

const ANSWER = 'An answer with **marks** and `code`.\n\n- one\n- two\n\n```python\nprint(1)\n```\n\nAnd its end.';
/** Tokens of blocks in it, white space and those of a list's items included. */
const TOKENS = 20;
/** The approximate number of messages that fill a window and its margins. */
const DRAWN = 30;

let lexer: MockInstance<Lexer['blockTokens']>;
beforeEach(() => void (lexer = vi.spyOn(Lexer.prototype, 'blockTokens')));
afterEach(() => lexer.mockRestore());

/** The number of tokens that were lexed since the last call. */
function tokens(): number {
  const read = lexer.mock.results.reduce((sum, { value }) => sum + (Array.isArray(value) ? value.length : 0), 0);
  lexer.mockClear();
  return read;
}

function nodes(name: string): number {
  return the(name).querySelectorAll('*').length;
}

/** Counts the changes below these elements from now on. */
function changesIn(...elements: readonly HTMLElement[]): () => MutationRecord[] {
  const seen: MutationRecord[] = [];
  const observer = new MutationObserver((records) => void seen.push(...records));
  for (const element of elements)
    observer.observe(element, { subtree: true, childList: true, attributes: true, characterData: true });
  return () => [...seen.splice(0), ...observer.takeRecords()];
}

function chatOf(messages: number): string {
  const chat = host.addChat(`A chat of ${messages}`, Date.now());
  // Only the end of it fits into the context of the host's model.
  const compacted = messages / 2 - 5;
  for (let turn = 0; turn < messages / 2; turn++)
    host.addTurn(chat, `Question ${turn}`, {
      parts: [textPart(`${ANSWER} ${turn}`)],
      compaction_mark: turn === compacted ? { summary: null } : null,
    });
  return chat.summary.id;
}

function addChats(count: number): void {
  for (let chat = 0; chat < count; chat++) host.addChat(`Chat ${chat}`, Date.now() - (chat + 1) * 3_600_000);
}

/** Waits for rows around the view, and for colors, whose grammar is read when it is first used. */
async function drawn(): Promise<void> {
  await pass(500);
  await vi.dynamicImportSettled();
  await pass(1000);
}

describe('a chat of 3,000 messages', () => {
  it('is read and drawn as far as it is in sight', async () => {
    const counts: number[] = [];
    for (const messages of [300, 3000]) {
      const id = chatOf(messages);
      tokens();
      await open('chat', id);
      await drawn();
      const read = tokens();
      expect(read).toBeGreaterThan(0);
      expect(read).toBeLessThan(DRAWN * TOKENS);
      counts.push(nodes('messages'));
    }
    expect(Math.abs((counts[0] ?? 0) - (counts[1] ?? 0))).toBeLessThan(20);
  });

  it('is neither read nor drawn again for a key', async () => {
    addChats(1000);
    await open('chat', chatOf(3000));
    await type('a');
    await drawn();
    // The list notes once that a draft began.
    await pass(500);
    tokens();
    const changes = changesIn(the('messages'), the('chats'));
    for (let key = 2; key <= 20; key++) await type('a'.repeat(key));
    // The draft is stored and its tokens are counted in a pause.
    await pass(2000);
    expect([tokens(), changes()]).toEqual([0, []]);
  });

  it('is not read again while an answer to it streams, of which only the open block is', async () => {
    await open('chat', chatOf(3000));
    await type('Tell me a long story');
    await vi.dynamicImportSettled();
    await click('send');
    await pass(500);
    const answer = all('message-assistant').at(-1);
    expect(answer?.dataset['state']).toBe('streaming');
    tokens();
    const list = the('messages');
    const changes = changesIn(list);
    // The host writes 200 pieces a second, and no frame reads more than a few of them.
    const [before, most] = [answer?.textContent?.length ?? 0, { tokens: 0 }];
    let touched = 0;
    for (let frame = 0; frame < 120; frame++) {
      await pass(16);
      most.tokens = Math.max(most.tokens, tokens());
      for (const { target } of changes()) {
        touched += 1;
        expect(answer?.contains(target)).toBe(true);
      }
    }
    expect(answer?.textContent?.length ?? 0).toBeGreaterThan(before + 500);
    expect(touched).toBeGreaterThan(0);
    expect(most.tokens).toBeLessThan(10);
    expect(answer?.dataset['state']).toBe('streaming');
  });
});

describe('what a chat of 3,000 messages costs', () => {
  it('is a page of them when it is opened, and nothing when an answer in it ends', async () => {
    const read = vi.spyOn(host, 'chat');
    const earlier = vi.spyOn(host, 'earlierMessages');
    const id = chatOf(3000);
    await open('chat', id);
    expect((await read.mock.results[0]?.value).messages).toHaveLength(100);
    await pass(300);
    expect([read.mock.calls.length, earlier.mock.calls.length]).toEqual([1, 6]);
    await type('2 + 3');
    await click('send');
    await pass(60_000);
    const last = all('message-assistant').at(-1);
    expect(last?.dataset['state']).toBe('complete');
    expect([read.mock.calls.length, earlier.mock.calls.length]).toEqual([1, 6]);
    // Another window asks in it: now it is read, its end first.
    host.addForeignTurn(id, 'A question from elsewhere', 'And its answer.');
    await pass(0);
    expect([read.mock.calls.length, earlier.mock.calls.length]).toEqual([2, 6]);
    expect(all('message-user').at(-1)?.textContent).toContain('A question from elsewhere');
    await pass(300);
    expect([read.mock.calls.length, earlier.mock.calls.length]).toEqual([2, 12]);
    await pass(5000);
    expect([read.mock.calls.length, earlier.mock.calls.length]).toEqual([2, 12]);
  });
});

describe('an answer that streams', () => {
  it('wakes the page once a frame, however many pieces come', async () => {
    await open('chat', chatOf(40));
    await type('Tell me a long story');
    await click('send');
    await pass(500);
    const wakes = vi.spyOn(globalThis, 'setTimeout');
    await pass(1000);
    const own = wakes.mock.calls.filter(([, delay]) => delay === 16).length;
    wakes.mockRestore();
    // The pieces of the host are timers too, every 5 ms.
    expect(own).toBeGreaterThan(30);
    expect(own).toBeLessThanOrEqual(1000 / 16 + 1);
  });
});

describe('a sidebar of 5,000 chats', () => {
  it('draws what is in sight, and no more for more chats', async () => {
    addChats(500);
    await open('chat');
    const few = nodes('chats');
    addChats(4500);
    await open('chat');
    expect(nodes('chats')).toBeLessThan(1000);
    expect(Math.abs(nodes('chats') - few)).toBeLessThan(30);
  });

  it('is put in order once for a change, however the clock runs on meanwhile', async () => {
    addChats(5000);
    await open('chat');
    let time = Date.now();
    // On a real computer sorting takes longer than one tick of the clock.
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => (time += 5));
    const order = vi.spyOn(format, 'groupChats');
    await host.pinChat(all('chat-item')[0]?.dataset['chatId'] ?? '', true);
    await pass(50);
    const times = order.mock.calls.length;
    clock.mockRestore();
    expect(times).toBeGreaterThan(0);
    expect(times).toBeLessThan(5);
  });

  it('is not drawn anew when another chat is opened', async () => {
    addChats(5000);
    await open('chat');
    const entries = all('chat-item');
    entries[0]?.click();
    await pass(50);
    const changes = changesIn(the('chats'));
    entries[1]?.click();
    await pass(50);
    expect(all('chat-item')).toEqual(entries);
    expect(changes().length).toBeLessThan(20);
  });

  it('is not put in order again for a letter in the search field', async () => {
    addChats(5000);
    await open('chat');
    const order = vi.spyOn(format, 'newestFirst');
    const list = vi.spyOn(host, 'chatsSince');
    for (const query of ['c', 'ch', 'chat 4', 'chat 49', '']) {
      await searchList(query);
      await pass(50);
    }
    expect([order.mock.calls.length, list.mock.calls.length]).toEqual([0, 0]);
    await searchList('chat 49');
    expect(
      all('chat-item')
        .map((item) => item.textContent?.trim())
        .slice(0, 3),
    ).toEqual(['Chat 49', 'Chat 149', 'Chat 249']);
    order.mockRestore();
  });

  it('is listed once more after what changes while it is listed, and drawn anew only where something did', async () => {
    addChats(5000);
    await open('chat');
    const order = vi.spyOn(format, 'newestFirst');
    const list = vi.spyOn(host, 'chatsSince');
    const entries = all('chat-item');
    for (let change = 0; change < 20; change++) void host.pinChat(entries[0]?.dataset['chatId'] ?? '', false);
    await pass(50);
    expect([list.mock.calls.length, order.mock.calls.length]).toEqual([2, 0]);
    const changes = changesIn(the('chats'));
    await host.renameChat(entries[3]?.dataset['chatId'] ?? '', 'Another name');
    await pass(50);
    const given = await Promise.all(list.mock.results.map(({ value }) => value));
    expect(given.map(({ whole, chats }) => [whole, chats.length])).toEqual([
      [false, 0],
      [false, 0],
      [false, 1],
    ]);
    expect(all('chat-item')).toEqual(entries);
    expect(entries[3]?.textContent?.trim()).toBe('Another name');
    expect(changes().length).toBeLessThan(10);
    order.mockRestore();
  });
});
