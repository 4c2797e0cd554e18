import { describe, expect, it } from 'vitest';

import type { ChatSummary } from '../bindings/ChatSummary';
import {
  bytes,
  context,
  count,
  duration,
  usageSummary,
  groupChats,
  lastLines,
  newestFirst,
  periodName,
  searchChats,
} from './format';

function chat(title: string, updated: Date, pinned = false): ChatSummary {
  return {
    id: title,
    title,
    created_at: 0,
    updated_at: updated.getTime(),
    pinned,
    running: false,
    unread: false,
    has_draft: false,
    revision: 0,
    archived: false,
    project: null,
  };
}

describe('numbers', () => {
  it.each([
    [14_900_000, '15 MB'],
    [4_200_000_000, '4.2 GB'],
    [999_600, '1 MB'],
    [120_000_000_000, '120 GB'],
    [0, '0 bytes'],
  ])('%d bytes are %s', (value, text) => expect(bytes(value)).toBe(text));

  it.each([
    [400, false, '0.4 s'],
    [2400, false, '2 s'],
    [2400, true, '2.4 s'],
    [9960, true, '10 s'],
    [59_700, false, '1 min 0 s'],
    [125_000, true, '2 min 5 s'],
    [-5, true, '0.0 s'],
  ])('%d ms (fine: %s) are %s', (value, fine, text) => expect(duration(value, fine)).toBe(text));

  it('groups thousands', () => expect(count(32_768)).toBe('32,768'));
  it('counts contexts in 1,024s', () => expect(context(131_072)).toBe('128K context'));

  it('leaves out figures that are not known', () => {
    const usage = { prompt_tokens: 9, cached_tokens: 0, prefilled_tokens: 9, completion_tokens: 5, thinking_tokens: 0 };
    const timing = { load_ms: 0, first_token_ms: 312, prefill_tokens_per_second: 80, decode_tokens_per_second: 41.6 };
    expect(usageSummary(usage, timing)).toBe('42 tok/s · 0.3 s to first token');
    const cached = usageSummary({ ...usage, cached_tokens: 1020 }, timing);
    expect(cached).toBe('42 tok/s · 0.3 s to first token · 1,020 cached');
    const speculation = { draft_tokens: 48, accepted_draft_tokens: 35, decode_steps: 20 };
    expect(usageSummary({ ...usage, speculation }, null)).toBe('35 of 48 drafted tokens kept');
    expect(usageSummary(null, null)).toBe('');
  });
});

describe('chats', () => {
  const now = new Date(2026, 10, 20, 9, 30);
  const chats = [
    chat('september', new Date(2026, 8, 30)),
    chat('first of september', new Date(2026, 8, 1)),
    chat('june', new Date(2026, 5, 15)),
    chat('last year', new Date(2025, 11, 31)),
    chat('long ago', new Date(2024, 1, 2)),
    chat('midnight', new Date(2026, 10, 20, 0, 0)),
    chat('last evening', new Date(2026, 10, 19, 23, 59)),
    chat('monday', new Date(2026, 10, 16, 12)),
    chat('october', new Date(2026, 9, 25)),
    chat('pinned and old', new Date(2025, 1, 1), true),
    chat('this morning', new Date(2026, 10, 20, 9)),
  ];

  it('fall under the day of the own clock, pinned first, newest first', () => {
    const titles = groupChats(newestFirst(chats), now.getTime()).map((group) => [
      periodName(group.period),
      ...group.chats.map((c) => c.title),
    ]);
    expect(titles).toEqual([
      ['Pinned', 'pinned and old'],
      ['Today', 'this morning', 'midnight'],
      ['Yesterday', 'last evening'],
      ['This week', 'monday'],
      ['Last 30 days', 'october'],
      ['September 2026', 'september', 'first of september'],
      ['June 2026', 'june'],
      ['2025', 'last year'],
      ['2024', 'long ago'],
    ]);
  });

  it('are found by every word of the query', () => {
    expect(searchChats(chats, ' OLD  pin').map((c) => c.title)).toEqual(['pinned and old']);
    expect(searchChats(chats, '')).toHaveLength(chats.length);
    expect(searchChats([chat('', now)], 'new')).toHaveLength(1);
  });
});

describe('lastLines', () => {
  it('keeps a short text whole', () => expect(lastLines('a\nb', 10)).toBe('a\nb'));
  it('begins at a line', () => expect(lastLines('first line\nsecond\nthird', 15)).toBe('second\nthird'));
  it('cuts a long line', () => expect(lastLines('x'.repeat(50), 10)).toBe('x'.repeat(10)));
});
