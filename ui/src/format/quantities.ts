/** Amounts and times of the Models window, as texts. Pure: the time is passed in. */

import { locale, number, t } from '../locales';
import { bytes } from './format';

const MINUTE = 60;
const HOUR = 3600;
const DAY = 24 * HOUR;

/** A large count: `950`, `12K`, `1.9M`. */
export function short(value: number): string {
  if (value < 1000) return number(value);
  const [size, key] =
    value < 999_500 ? ([value / 1000, 'amount.thousands'] as const) : ([value / 1_000_000, 'amount.millions'] as const);
  const digits = size < 9.95 && Math.round(size * 10) % 10 !== 0 ? 1 : 0;
  return t(key, { value: number(size, digits) });
}

/** `18 MB/s` */
export function speed(bytesPerSecond: number): string {
  return t('amount.perSecond', { size: bytes(bytesPerSecond) });
}

/** `a few seconds left`, `40 s left`, `2 min left`, `3 h 20 min left`. */
export function timeLeft(seconds: number): string {
  if (seconds < 5) return t('time.left.moment');
  if (seconds < 55) return t('time.left.seconds', { seconds: Math.ceil(seconds / 5) * 5 });
  const minutes = Math.max(1, Math.round(seconds / MINUTE));
  if (minutes < 60) return t('time.left.minutes', { minutes });
  const hours = Math.floor(minutes / 60);
  if (hours >= 48) return t('time.left.days', { count: Math.round(hours / 24) });
  return minutes % 60 === 0
    ? t('time.left.hours', { hours })
    : t('time.left.hoursMinutes', { hours, minutes: minutes % 60 });
}

/** A time that is only estimated: `20 s`, `2 min`, `3 h 20 min`. */
export function roughTime(seconds: number): string {
  if (seconds < 55) return t('time.seconds', { value: Math.max(1, Math.ceil(seconds / 5)) * 5 });
  const minutes = Math.max(1, Math.round(seconds / MINUTE));
  if (minutes < 60) return t('time.minutes', { minutes });
  return t('time.hoursMinutes', { hours: Math.floor(minutes / 60), minutes: minutes % 60 });
}

/** The time since then, by calendar days: `just now`, `20 minutes ago`, `yesterday`, `5 days ago`, `3 months ago`. */
export function ago(then: number, now: number): string {
  const relative = new Intl.RelativeTimeFormat(locale(), { numeric: 'auto' });
  const seconds = Math.max(0, (now - then) / 1000);
  if (seconds < MINUTE) return t('time.justNow');
  if (seconds < HOUR) return relative.format(-Math.floor(seconds / MINUTE), 'minute');
  const days = Math.round((midnight(now) - midnight(then)) / (DAY * 1000));
  if (days < 45) return relative.format(-days, 'day');
  const months = Math.round(days / 30.4);
  return months < 18 ? relative.format(-months, 'month') : relative.format(-Math.round(days / 365), 'year');
}

function midnight(time: number): number {
  return new Date(time).setHours(0, 0, 0, 0);
}

/** The steps of a context slider: powers of two from 1K, or `least`, to the model's own context, the last one. */
export function contextSteps(most: number, least = 1024): number[] {
  const steps: number[] = [];
  for (let step = least; step < most; step *= 2) steps.push(step);
  return [...steps, most];
}

/** The share of a context from which images leave little room for words. */
const CROWDED = 0.5;

/** The share of a context that tokens take, as a whole percentage, with a flag if that is much. */
export function shareOf(tokens: number, context: number): { percent: number; crowded: boolean } {
  const share = tokens / context;
  return { percent: Math.max(1, Math.round(share * 100)), crowded: share > CROWDED };
}
