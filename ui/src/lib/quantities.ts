/** Amounts of the Models window, in words for people. Pure: the time is passed in. */

import { bytes } from './format';

const MINUTE = 60;
const HOUR = 3600;
const DAY = 24 * HOUR;

/** A large count: `950`, `12 k`, `1.9 M`. */
export function short(value: number): string {
  if (value < 1000) return String(Math.round(value));
  const [size, unit] = value < 999_500 ? [value / 1000, 'k'] : [value / 1_000_000, 'M'];
  return `${size < 9.95 ? size.toFixed(1).replace(/\.0$/, '') : Math.round(size)} ${unit}`;
}

/** How far something got: `1.3 of 2.3 GB`, with the unit once where both have the same. */
export function progress(done: number, total: number): string {
  const [before, after] = [bytes(done), bytes(total)];
  const [number, unit] = before.split(' ');
  return `${unit !== undefined && after.endsWith(` ${unit}`) ? number : before} of ${after}`;
}

/** The memory of a computer: `24 GB · 11.8 free`. */
export function memorySummary({ total, free }: { total: number; free: number }): string {
  return `${bytes(total).replace('.0 ', ' ')} · ${progress(free, total).split(' of ')[0] ?? ''} free`;
}

/** `18 MB/s` */
export function speed(bytesPerSecond: number): string {
  return `${bytes(bytesPerSecond)}/s`;
}

/** `a few seconds left`, `40 s left`, `2 min left`, `3 h 20 min left`. */
export function timeLeft(seconds: number): string {
  if (seconds < 5) return 'a few seconds left';
  if (seconds < 55) return `${Math.ceil(seconds / 5) * 5} s left`;
  const minutes = Math.max(1, Math.round(seconds / MINUTE));
  if (minutes < 60) return `${minutes} min left`;
  const hours = Math.floor(minutes / 60);
  if (hours >= 48) return `${Math.round(hours / 24)} days left`;
  return minutes % 60 === 0 ? `${hours} h left` : `${hours} h ${minutes % 60} min left`;
}

/** How long ago, in one word where there is one: `just now`, `20 min ago`, `yesterday`, `5 days ago`, `3 months ago`. */
export function ago(then: number, now: number): string {
  const seconds = Math.max(0, (now - then) / 1000);
  if (seconds < MINUTE) return 'just now';
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min ago`;
  const days = Math.round((midnight(now) - midnight(then)) / (DAY * 1000));
  if (days === 0) return 'today';
  if (days === 1) return 'yesterday';
  if (days < 45) return `${days} days ago`;
  const months = Math.round(days / 30.4);
  return months < 18 ? `${months} months ago` : `${Math.round(days / 365)} years ago`;
}

function midnight(time: number): number {
  return new Date(time).setHours(0, 0, 0, 0);
}

/** A count with its noun: `1 chat`, `3 chats`. */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

/** A context without its word: `32 k`. Contexts are powers of two, so k is 1,024. */
export function tokens(count: number): string {
  return count >= 1024 ? `${Math.round(count / 1024)} k` : String(count);
}

/** The steps of a context slider: powers of two from 1 k to the model's own context, which is the last one. */
export function contextSteps(most: number): number[] {
  const steps: number[] = [];
  for (let step = 1024; step < most; step *= 2) steps.push(step);
  return [...steps, most];
}
