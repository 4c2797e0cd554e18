import { describe, expect, it, vi } from 'vitest';

import { textPart } from '../../../host/fake';
import { all, click, field, host, open, pass, searchList, the, useWindow, write } from '../../../testing/window';

useWindow();

function longChat(turns: number): string {
  const chat = host.addChat('A long chat', Date.now());
  for (let turn = 0; turn < turns; turn++)
    host.addTurn(chat, `Question ${turn}`, { parts: [textPart(`Answer **${turn}** with some words.`)] });
  return chat.summary.id;
}

function nodes(name: string): number {
  return the(name).querySelectorAll('*').length;
}

describe('a chat of many messages', () => {
  it('draws those in sight, at its end at first', async () => {
    const counts: number[] = [];
    for (const turns of [100, 1000]) {
      await open('chat', longChat(turns));
      counts.push(nodes('messages'));
      expect(the('message-assistant').textContent).toContain(`Answer ${turns - 1}`);
      expect(all('message-assistant').length).toBeLessThan(30);
    }
    expect(Math.abs((counts[0] ?? 0) - (counts[1] ?? 0))).toBeLessThan(20);
  });

  it('draws others when it is scrolled, and keeps room for those that are not drawn', async () => {
    await open('chat', longChat(200));
    const area = the('messages');
    area.scrollTop = 0;
    area.dispatchEvent(new Event('scroll'));
    await pass(20);
    expect(all('message-user')[0]?.querySelector('.words')?.textContent).toBe('Question 0');
    expect(all('message-user').length).toBeLessThan(30);
    const room = [...area.querySelectorAll<HTMLElement>('.room')].map((element) => parseFloat(element.style.height));
    expect(room).toHaveLength(1);
    expect(room[0]).toBeGreaterThan(150 * 72);
  });

  it('draws what is in view first, and a few more rows in each frame', async () => {
    await open('chat', longChat(300));
    const area = the('messages');
    area.scrollTop = 0;
    area.dispatchEvent(new Event('scroll'));
    await pass(0);
    const drawn = (): number => area.querySelectorAll('.row').length;
    let before = drawn();
    // A view of 900 pixels, and rows of 95.
    expect(before).toBeLessThanOrEqual(11);
    for (let frame = 0; frame < 10; frame++) {
      await pass(16);
      expect(drawn() - before).toBeLessThanOrEqual(5);
      before = drawn();
    }
    expect(before).toBeGreaterThan(15);
  });

  it('draws long answers one after the other, also in a short chat', async () => {
    const chat = host.addChat('Long answers', Date.now());
    const answer = 'Some words of **an answer** in a paragraph.\n\n'.repeat(80);
    for (let turn = 0; turn < 12; turn++) host.addTurn(chat, `Question ${turn}`, { parts: [textPart(answer)] });
    await open('chat', chat.summary.id);
    let before = all('message-assistant').length;
    expect(before).toBeLessThan(4);
    for (let frame = 0; frame < 100; frame++) {
      await pass(16);
      expect(all('message-assistant').length - before).toBeLessThanOrEqual(1);
      before = all('message-assistant').length;
    }
    expect([before, all('message-user').length]).toEqual([12, 12]);
    expect(the('messages').querySelectorAll('.room')).toHaveLength(0);
  });

  it('is looked at before it is known whole, and stays where it is when the rest comes', async () => {
    const chat = vi.spyOn(host, 'chat');
    await open('chat', longChat(1500));
    expect((await chat.mock.results[0]?.value).messages).toHaveLength(100);
    const area = the('messages');
    area.scrollTop = 1000;
    area.dispatchEvent(new Event('scroll'));
    await pass(0);
    const words = (): string[] =>
      all('message-user').map((question) => question.querySelector('.words')?.textContent ?? '');
    const [seen, room] = [words(), area.querySelectorAll('.room').length];
    expect([seen.length > 3, room]).toEqual([true, 2]);
    await pass(200);
    expect(words()).toEqual(expect.arrayContaining(seen));
    // A question and an answer that were not drawn are guessed to be 95 pixels high each.
    expect(area.scrollTop).toBe(1000 + 2900 * 95);
    area.scrollTop = 0;
    area.dispatchEvent(new Event('scroll'));
    await pass(20);
    expect(words()[0]).toBe('Question 0');
  });

  it('is found through as soon as it is known whole', async () => {
    await open('chat', longChat(1500));
    await pass(200);
    document.dispatchEvent(new KeyboardEvent('keydown', { key: 'f', ctrlKey: true, bubbles: true }));
    await pass(20);
    await write('find-words', 'Question 7');
    // 7, 70 to 79, 700 to 799.
    expect(the('find-count').textContent).toContain('111');
  });

  it('shows a place that is found near its beginning, which is on the same branch', async () => {
    const chat = host.addChat('A long chat', Date.now());
    host.addTurn(chat, 'Where is the needle?', { parts: [textPart('In the hay.')] });
    for (let turn = 0; turn < 300; turn++) host.addTurn(chat, `Question ${turn}`, { parts: [textPart('Yes.')] });
    await open('chat');
    const branch = vi.spyOn(host, 'showBranch');
    await searchList('needle');
    await pass(50);
    await click('found-place');
    await pass(500);
    expect(all('message-user').some((question) => question.textContent.includes('needle'))).toBe(true);
    expect(branch).not.toHaveBeenCalled();
  });

  it('opens at the place that it was scrolled to, wherever that is', async () => {
    const id = longChat(1500);
    const place = host.rows(id)[400];
    await host.setScrollPlace(id, { message: place?.id ?? '', offset: 0 });
    const chat = vi.spyOn(host, 'chat');
    await open('chat', id);
    expect((await chat.mock.results[0]?.value).messages).toHaveLength(3000 - 401 + 100);
    await pass(500);
    expect(all('message-user').some((question) => question.textContent.includes('Question 200'))).toBe(true);
  });

  it('draws a short one whole', async () => {
    await open('chat', longChat(10));
    await pass(100);
    expect(all('message-user')).toHaveLength(10);
  });

  it('keeps what was unfolded while it is out of sight', async () => {
    const id = longChat(100);
    const chat = host.addChat('Another', Date.now());
    host.addTurn(chat, 'A question', {
      parts: [{ kind: 'thinking', text: 'A thought', started_at: 0, ended_at: 1 }, textPart('x')],
    });
    await open('chat', chat.summary.id);
    await click('thought-toggle');
    all('chat-item')
      .find(({ dataset }) => dataset['chatId'] === id)
      ?.click();
    await pass(20);
    expect(all('thought')).toEqual([]);
    all('chat-item')
      .find(({ dataset }) => dataset['chatId'] === chat.summary.id)
      ?.click();
    await pass(20);
    expect(the('thought').dataset['open']).toBe('true');
  });
});

describe('a hostile answer', () => {
  it.each([
    ['[', 20],
    ['a\n\n', 18],
  ])('of %j, up to a megabyte of it, is drawn in pieces, a few in each frame', async (unit, size) => {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'A question', { parts: [textPart(unit.repeat(2 ** size / unit.length))] });
    await open('chat', chat.summary.id);
    let before = nodes('answer-text');
    for (let frame = 0; frame < 30; frame++) {
      await pass(16);
      const now = nodes('answer-text');
      expect(now - before).toBeLessThan(2500);
      before = now;
    }
    expect(before).toBeLessThan(14_000);
    // A web view that looks for the direction of a text without letters reads all of it with every piece.
    const long = [...the('answer-text').querySelectorAll('[dir=auto]')].filter(
      (element) => (element.textContent?.length ?? 0) > 20_000,
    );
    expect(long).toEqual([]);
  });
});

describe('a window that is left alone', () => {
  it('wakes up at midnight', async () => {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'A question', {});
    await open('chat', chat.summary.id);
    await pass(20_000);
    expect(vi.getTimerCount()).toBe(1);
    const wake = vi.spyOn(Date, 'now');
    await pass(11 * 3_600_000);
    expect(wake).not.toHaveBeenCalled();
    await pass(2 * 3_600_000);
    expect(wake).toHaveBeenCalled();
  });
});

describe('a long draft', () => {
  it('is not measured with each key', async () => {
    await open('chat');
    const area = the('composer');
    if (!(area instanceof HTMLTextAreaElement)) throw new Error('the composer is no text area');
    const measured = vi.spyOn(area, 'scrollHeight', 'get');
    const type = async (text: string): Promise<void> => {
      area.value = text;
      area.dispatchEvent(new InputEvent('input', { bubbles: true }));
      await pass(0);
    };
    await type('short');
    expect(measured).toHaveBeenCalled();
    const draft = 'a line of words\n'.repeat(200_000 / 16);
    await type(draft);
    measured.mockClear();
    const height = area.style.height;
    for (let key = 1; key <= 10; key++) await type(draft + 'x'.repeat(key));
    expect(measured).not.toHaveBeenCalled();
    expect([area.style.height, area.getAttribute('spellcheck')]).toEqual([height, 'false']);
    await type('short again');
    expect(measured).toHaveBeenCalled();
  });
});

describe('a sidebar of many chats', () => {
  const fill = async (count: number): Promise<void> => {
    for (let chat = 0; chat < count; chat++) host.addChat(`Chat ${chat}`, Date.now() - chat * 60_000);
    await open('chat');
  };
  const press = async (key: string): Promise<void> => {
    document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    await pass(50);
  };
  const focused = (): string => document.activeElement?.textContent?.trim() ?? '';
  const stops = (): HTMLElement[] =>
    [...the('chats').querySelectorAll<HTMLElement>('button, [tabindex]')].filter((element) => element.tabIndex >= 0);

  it('draws no more nodes for 1,000 than a screen holds, and all that are found', async () => {
    await fill(1000);
    expect(nodes('chats')).toBeLessThan(1000);
    expect(all('chat-item').length).toBeLessThan(80);
    await searchList('chat 99');
    expect(all('chat-item')).toHaveLength(19);
  });

  it('is one stop of the tab key, in which the arrows go on', async () => {
    await fill(1000);
    expect(stops().map((element) => element.textContent?.trim())).toEqual(['Chat 0']);
    stops()[0]?.focus();
    await press('ArrowDown');
    await press('ArrowDown');
    expect([focused(), stops().length]).toEqual(['Chat 2', 1]);
    await press('End');
    expect(focused()).toBe('Chat 999');
    await press('ArrowUp');
    expect(focused()).toBe('Chat 998');
    await press('Home');
    expect(focused()).toBe('Chat 0');
    expect(document.activeElement?.closest('[role=listitem]')?.getAttribute('aria-setsize')).toBe('1000');
    await press('ArrowUp');
    await press('ArrowUp');
    expect([document.activeElement, stops().length]).toEqual([the('add-project'), 1]);
  });

  it('has its menu by the key for it', async () => {
    await fill(1);
    stops()[0]?.focus();
    await press('ContextMenu');
    expect(all('pin-chat')).toHaveLength(1);
    expect(document.activeElement?.getAttribute('role')).toBe('menuitem');
  });

  it('renames by F2 and deletes by Delete, and the next chat has the focus', async () => {
    await fill(3);
    stops()[0]?.focus();
    await press('F2');
    field('rename-field').value = 'Renamed';
    await press('Enter');
    expect(focused()).toBe('Renamed');
    await press('Delete');
    expect([all('chat-item').length, focused()]).toEqual([2, 'Chat 1']);
    await press('End');
    await press('Delete');
    expect(focused()).toBe('Chat 1');
    await press('Delete');
    expect([all('chat-item').length, document.activeElement]).toEqual([0, the('composer')]);
  });
});
