import { describe, expect, it } from 'vitest';

import { all, host, open, pass, type, useWindow } from '../../../testing/window';

useWindow();

function row(title: string): HTMLElement {
  const found = all('chat-item').find((item) => item.querySelector('.title')?.textContent === title);
  if (!found) throw new Error(`no chat ${title}`);
  return found;
}

describe('a chat with a draft', () => {
  it('says so in the list, in words, until the draft is gone, and not while its composer is open', async () => {
    const tea = host.addChat('About tea', Date.now());
    host.addChat('About the sea', Date.now() - 1000);
    await open('chat', tea.summary.id);
    await type('Half a question');
    await pass(500);
    expect(all('draft-mark')).toEqual([]);
    row('About the sea').click();
    await pass(50);
    expect(row('About tea').textContent?.replace(/\s+/g, ' ').trim()).toBe('About tea Draft');
    expect(all('draft-mark')).toHaveLength(1);
    row('About tea').click();
    await pass(50);
    expect(all('draft-mark')).toEqual([]);
    await type('');
    row('About the sea').click();
    await pass(50);
    expect(all('draft-mark')).toEqual([]);
  });
});

describe('old chats', () => {
  it('stand under their month, and those of earlier years under the year', async () => {
    const now = new Date();
    const month = (back: number): number => new Date(now.getFullYear(), now.getMonth() - back, 2).getTime();
    for (const back of [0, 2, 3, 12, 13]) host.addChat(`${back} months ago`, month(back));
    await open('chat');
    const headings = [...document.querySelectorAll('[data-testid="chats"] h2')].map(({ textContent }) => textContent);
    expect(headings).toEqual(['Last 30 days', 'September 2026', 'August 2026', '2025']);
  });
});
