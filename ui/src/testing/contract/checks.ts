/** The checks of a case of the contract; a broken promise is named. */

import type { WindowName } from '../../bindings/WindowName';
import type { AnswerEvent } from '../../bindings/AnswerEvent';
import type { ChatSettings } from '../../bindings/ChatSettings';
import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import type { ErrorCode } from '../../bindings/ErrorCode';
import type { StoredMessage } from '../../bindings/StoredMessage';
import { asHostError, type Platform, type Unsubscribe } from '../../host/types';

/** One promise of a host. */
export interface Case {
  name: string;
  /** The window whose page may make its calls; the chat window if it says none. */
  window?: WindowName;
  run(host: Platform): Promise<void>;
}

export const SHORT = 'What is 2 + 3?';
export const MISSING = '01990000-0000-7000-8000-000000000000';
export const PEBBLE = 'pebble';
/** The longest wait for what must come, in milliseconds. */
const PATIENCE = 60_000;

export const plain: ChatSettings = { ...DEFAULT_CHAT_SETTINGS, model: PEBBLE, thinking: 'off' };

/** The call is to be refused with this code. */
export async function refused(code: ErrorCode, call: () => Promise<unknown>): Promise<void> {
  const error = await call().then(
    () => null,
    (reason: unknown) => asHostError(reason),
  );
  if (error?.code !== code) throw new Error(`${call.toString()} was to be refused with ${code}, not ${JSON.stringify(error)}`);
}

/** The promise, put into words by `what`, is to hold. */
export function holds(value: boolean, what: string): void {
  if (!value) throw new Error(`it does not hold that ${what}`);
}

/** Two values are to be the same; the order of keys does not count. */
export function same(found: unknown, wanted: unknown, what: string): void {
  const [a, b] = [sorted(found), sorted(wanted)];
  if (a !== b) throw new Error(`${what}: ${a} instead of ${b}`);
}

/** JSON with the keys in order. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** The events of an answer after number `from`, up to its end. */
export function follow(host: Platform, message: string, from = 0): Promise<AnswerEvent[]> {
  const events: AnswerEvent[] = [];
  const ended = new Promise<AnswerEvent[]>((resolve, reject) => {
    const listener = (event: AnswerEvent): void => {
      events.push(event);
      if (event.body.type === 'finished') resolve(events);
      if (event.body.type === 'detached') reject(new Error('it was detached'));
    };
    host.attach(message, from, listener).catch(reject);
  });
  return within('the end of the answer', ended);
}

/** Waits until an answer has told this many events. */
export function some(host: Platform, message: string, count: number): Promise<void> {
  let left = count;
  const told = new Promise<void>((resolve, reject) => {
    const listener = (): void => {
      left -= 1;
      if (left === 0) resolve();
    };
    host.attach(message, 0, listener).catch(reject);
  });
  return within(`${count} events`, told);
}

/** Does something of which a listener must hear. */
export async function heard(subscribe: (listener: () => void) => Promise<Unsubscribe>, change: () => Promise<unknown>): Promise<void> {
  let listener = (): void => {};
  const news = new Promise<void>((resolve) => (listener = resolve));
  const unsubscribe = await subscribe(listener);
  await change();
  await within('an announcement', news);
  unsubscribe();
}

/** True if no number comes twice or after a larger one. Neighboring deltas may have been joined, so numbers may be missing. */
export function rises(events: readonly AnswerEvent[]): boolean {
  return events.every((event, index) => event.seq > (events[index - 1]?.seq ?? 0));
}

export function finished(events: readonly AnswerEvent[]): StoredMessage {
  const body = events.at(-1)?.body;
  if (body?.type !== 'finished') throw new Error('it did not end');
  return body.message;
}

export async function isRunning(host: Platform, chat: string): Promise<boolean | undefined> {
  return (await host.chats()).find(({ id }) => id === chat)?.running;
}

export function textOf(message: StoredMessage | undefined): string {
  return message?.parts.map((part) => (part.kind === 'text' ? part.text : '')).join('') ?? '';
}

export function within<T>(what: string, promise: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error(`${what} did not come`)), PATIENCE));
  return Promise.race([promise, late]);
}
