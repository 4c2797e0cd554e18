/** Words and numbers for people. Pure: the time is passed in. */

import type { ChatSummary } from '../bindings/ChatSummary';
import type { Timing } from '../bindings/Timing';
import type { Usage } from '../bindings/Usage';

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const DAY = 86_400_000;

/** `1,204` */
export function count(value: number): string {
  return WHOLE.format(value);
}

/** A size as the Finder gives it: `15 MB`, `4.2 GB`. */
export function bytes(value: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  let size = value;
  // 999.5 already rounds to the next unit's 1.
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const digits = unit >= 3 && size < 99.95 ? 1 : 0;
  return `${size.toFixed(digits)} ${units[unit]}`;
}

/** `0.3 s`, `12 s`, `2 min 5 s`; tenths below ten seconds where `fine`, below one second always. */
export function duration(milliseconds: number, fine = false): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 0.95 || (fine && seconds < 9.95)) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** A model's context: `128 k context`. Contexts are powers of two, so k is 1,024. */
export function context(tokens: number): string {
  return tokens >= 1024 ? `${Math.round(tokens / 1024)} k context` : `${tokens} tokens of context`;
}

/** What an answer cost: `42 tok/s · first token 0.3 s · 1,020 reused`; empty where nothing is known. */
export function usageSummary(usage: Usage | null, timing: Timing | null): string {
  const parts: string[] = [];
  if (timing && timing.decode_tokens_per_second > 0) {
    parts.push(`${count(timing.decode_tokens_per_second)} tok/s`);
  }
  if (timing && timing.first_token_ms > 0) {
    const milliseconds = timing.first_token_ms;
    parts.push(`first token ${milliseconds < 95 ? `${Math.round(milliseconds)} ms` : duration(milliseconds, true)}`);
  }
  if (usage && usage.cached_tokens > 0) parts.push(`${count(usage.cached_tokens)} reused`);
  return parts.join(' · ');
}

/** The last lines of a growing text, cut at a line's start where there is one, so that showing it costs the same for ever. */
export function lastLines(text: string, limit = 1200): string {
  if (text.length <= limit) return text;
  const tail = text.slice(-limit);
  const newline = tail.indexOf('\n');
  return newline >= 0 && newline < limit / 2 ? tail.slice(newline + 1) : tail;
}

/** Chats under one heading of the sidebar. */
export interface ChatGroup {
  title: string;
  chats: ChatSummary[];
}

/** The sidebar's groups, newest first, empty ones left out. Days are days of the user's own clock. */
export function groupChats(chats: readonly ChatSummary[], now: number): ChatGroup[] {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const groups: [string, (chat: ChatSummary) => boolean][] = [
    ['Pinned', (chat) => chat.pinned],
    ['Today', (chat) => chat.updated_at >= midnight],
    ['Yesterday', (chat) => chat.updated_at >= midnight - DAY],
    ['This week', (chat) => chat.updated_at >= midnight - 6 * DAY],
    ['This month', (chat) => chat.updated_at >= midnight - 30 * DAY],
    ['Older', () => true],
  ];
  const result: ChatGroup[] = groups.map(([title]) => ({ title, chats: [] }));
  for (const chat of [...chats].sort((a, b) => b.updated_at - a.updated_at)) {
    result[groups.findIndex(([, holds]) => holds(chat))]?.chats.push(chat);
  }
  return result.filter((group) => group.chats.length > 0);
}

/** The chats whose title holds every word of the query, in any case. */
export function searchChats(chats: readonly ChatSummary[], query: string): ChatSummary[] {
  const words = query.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  return chats.filter((chat) => {
    const title = chatTitle(chat.title).toLocaleLowerCase();
    return words.every((word) => title.includes(word));
  });
}

/** A chat's title; it has none until its first question. */
export function chatTitle(title: string): string {
  return title.trim() || 'New chat';
}
