/** Texts and numbers for the user. Pure: the time is passed in. */

import type { ChatSummary } from '../bindings/ChatSummary';
import type { Timing } from '../bindings/Timing';
import type { Usage } from '../bindings/Usage';
import { plainName } from '../shared/displayNames';
import { folded } from '../shared/findText';
import { locale, number, t } from '../locales';

const DAY = 86_400_000;

/** `1,204` */
export function count(value: number): string {
  return number(value);
}

/** A size as the Finder gives it: `15 MB`, `4.2 GB`. */
export function bytes(value: number): string {
  const { size, unit, digits } = scaled(value);
  return inUnit(number(size, digits), unit, size);
}

/** The part of a size: `1.3 of 2.3 GB`, with the unit once if both have the same. */
export function progress(done: number, total: number): string {
  const [part, whole] = [scaled(done), scaled(total)];
  const before = part.unit === whole.unit ? number(part.size, part.digits) : bytes(done);
  return t('amount.progress', { done: before, total: bytes(total) });
}

/** The memory of a computer: `24 GB · 11.8 free`. */
export function memorySummary({ total, free }: { total: number; free: number }): string {
  const [whole, part] = [scaled(total), scaled(free)];
  const rounded = inUnit(
    number(whole.size, Number.isInteger(Number(whole.size.toFixed(1))) ? 0 : whole.digits),
    whole.unit,
    whole.size,
  );
  return t('amount.memory', {
    total: rounded,
    free: part.unit === whole.unit ? number(part.size, part.digits) : bytes(free),
  });
}

const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const;
type Unit = (typeof UNITS)[number];

/** A size in the largest unit that leaves a number of at least one, and the digits that are worth showing. */
function scaled(value: number): { size: number; unit: Unit; digits: number } {
  let power = 0;
  let size = value;
  // 999.5 already rounds to the next unit's 1.
  while (size >= 999.5 && power < UNITS.length - 1) {
    size /= 1000;
    power += 1;
  }
  return { size, unit: UNITS[power] ?? 'TB', digits: power >= 3 && size < 99.95 ? 1 : 0 };
}

function inUnit(value: string, unit: Unit, size: number): string {
  return unit === 'bytes' ? t('amount.bytes', { count: Math.round(size) }) : t(`amount.${unit}`, { value });
}

/** `0.3 s`, `12 s`, `2 min 5 s`; tenths below ten seconds if `fine`, below one second always. */
export function duration(milliseconds: number, fine = false): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 0.95 || (fine && seconds < 9.95)) return t('time.seconds', { value: number(seconds, 1) });
  const whole = Math.round(seconds);
  if (whole < 60) return t('time.seconds', { value: whole });
  return t('time.minutesSeconds', { minutes: Math.floor(whole / 60), seconds: whole % 60 });
}

/** A model's context: `128K context`. Contexts are powers of two, so K is 1,024. */
export function context(tokens: number): string {
  return t('amount.context', { tokens: contextSize(tokens) });
}

/** A context without its word: `32K`. */
export function contextSize(tokens: number): string {
  return tokens >= 1024 ? t('amount.thousands', { value: Math.round(tokens / 1024) }) : number(tokens);
}

/** The cost of an answer: `42 tok/s · 0.3 s to first token · 1,020 cached`; empty if unknown. */
export function usageSummary(usage: Usage | null, timing: Timing | null): string {
  const parts: string[] = [];
  if (timing && timing.decode_tokens_per_second > 0) {
    parts.push(t('usage.speed', { rate: timing.decode_tokens_per_second }));
  }
  if (timing && timing.first_token_ms > 0) {
    const milliseconds = timing.first_token_ms;
    const wait = milliseconds < 95 ? t('time.milliseconds', { value: milliseconds }) : duration(milliseconds, true);
    parts.push(t('usage.firstToken', { duration: wait }));
  }
  if (usage && usage.cached_tokens > 0) parts.push(t('usage.reused', { tokens: usage.cached_tokens }));
  const drafts = usage?.speculation;
  if (drafts) parts.push(t('usage.drafts', { accepted: drafts.accepted_draft_tokens, drafted: drafts.draft_tokens }));
  return parts.join(' · ');
}

/**
 * The last lines of a growing text, cut at the start of a line if there is one, so that its cost does not grow with the
 * text.
 */
export function lastLines(text: string, limit = 1200): string {
  if (text.length <= limit) return text;
  const tail = text.slice(-limit);
  const newline = tail.indexOf('\n');
  return newline >= 0 && newline < limit / 2 ? tail.slice(newline + 1) : tail;
}

const RECENT = ['pinned', 'today', 'yesterday', 'week', 'month'] as const;
type Recent = (typeof RECENT)[number];

/** The period that the chats of a group share: a recent one, a month (from 0) of this year, or an earlier year. */
export type Period = Recent | `${number}` | `${number}-${number}`;

const isRecent = (period: string): period is Recent => RECENT.some((other) => other === period);

/** The heading of a period: “Yesterday”, “October 2026”, “2025”. */
export function periodName(period: Period): string {
  if (isRecent(period)) return t(`sidebar.group.${period}`);
  const [year = 0, month] = period.split('-').map(Number);
  const fields: Intl.DateTimeFormatOptions = month === undefined ? {} : { month: 'long' };
  return new Intl.DateTimeFormat(locale(), { ...fields, year: 'numeric' }).format(new Date(year, month ?? 0));
}

/** Chats under one heading of the sidebar. */
export interface ChatGroup {
  period: Period;
  chats: ChatSummary[];
}

/** The chats by when something was last said in them, newest first. */
export function newestFirst(chats: readonly ChatSummary[]): readonly ChatSummary[] {
  return [...chats].sort((a, b) => b.updated_at - a.updated_at);
}

/** The groups of chats, which are newest first, without empty ones. Days are those of the user's own clock. */
export function groupChats(chats: readonly ChatSummary[], now: number): ChatGroup[] {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const periodOf = ({ pinned, updated_at }: ChatSummary): Period => {
    if (pinned) return 'pinned';
    if (updated_at >= midnight) return 'today';
    if (updated_at >= midnight - DAY) return 'yesterday';
    if (updated_at >= midnight - 6 * DAY) return 'week';
    if (updated_at >= midnight - 30 * DAY) return 'month';
    const said = new Date(updated_at);
    const year = said.getFullYear();
    return year === new Date(now).getFullYear() ? `${year}-${said.getMonth()}` : `${year}`;
  };
  const groups = new Map<Period, ChatSummary[]>(RECENT.map((period) => [period, []]));
  for (const chat of chats) {
    const period = periodOf(chat);
    const group = groups.get(period);
    if (group) group.push(chat);
    else groups.set(period, [chat]);
  }
  return [...groups].flatMap(([period, chats]) => (chats.length > 0 ? [{ period, chats }] : []));
}

/** Titles as they are searched, because each letter that is typed searches all of them. */
const searched = new WeakMap<ChatSummary, string>();

/** A chat's title as it is shown, without accents in small letters. */
export function searchedTitle(chat: ChatSummary): string {
  // The placeholder for no title is in the current language.
  if (chat.title === '') return folded(chatTitle(''));
  let title = searched.get(chat);
  if (title === undefined) searched.set(chat, (title = folded(chatTitle(chat.title))));
  return title;
}

/** The chats whose title holds every word of the query, in any case and with any accents. */
export function searchChats(chats: readonly ChatSummary[], query: string): readonly ChatSummary[] {
  const words = folded(query).split(/\s+/).filter(Boolean);
  if (words.length === 0) return chats;
  return chats.filter((chat) => {
    const title = searchedTitle(chat);
    return words.every((word) => title.includes(word));
  });
}

/** A chat's title; it has none until its first question. */
export function chatTitle(title: string): string {
  return plainName(title).trim() || t('chat.untitled');
}

/** A draft with a quotation at its end, as Markdown. */
export function withQuote(draft: string, words: string): string {
  const quotation = words
    .trim()
    .split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n');
  return `${draft.trim() ? `${draft.trimEnd()}\n\n` : ''}${quotation}\n\n`;
}

/** The time of a message: only the time if it was today, else day and time, in the language of the windows. */
export function clock(at: number, now = Date.now()): string {
  const sameDay = new Date(at).toDateString() === new Date(now).toDateString();
  const day: Intl.DateTimeFormatOptions = sameDay ? {} : { day: 'numeric', month: 'short', year: 'numeric' };
  return new Intl.DateTimeFormat(locale(), { ...day, hour: '2-digit', minute: '2-digit' }).format(at);
}
