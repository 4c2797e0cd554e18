/**
 * The host's messages in the language of the windows. Its errors have a reason or a code, its notices a code, which
 * select a text of the catalogue; the compiler makes sure that each has one. The host's own English sentence is for
 * details.
 */

import type { Error as HostError } from '../bindings/Error';
import type { ErrorCode } from '../bindings/ErrorCode';
import type { Notice } from '../bindings/Notice';
import type { Reason } from '../bindings/Reason';
import { format, number, t, type Key } from '.';

/** An error in words: what failed, then why and what to do. */
export interface ErrorWords {
  readonly title: string;
  readonly text: string;
}

type WordsKey = `error.${ErrorCode}` | `reason.${Reason}`;

/** Arguments in bytes, which texts give in GB. */
const SIZES = ['needed', 'free'];

/** An error of the host as a title and a sentence. */
export function errorWords({ code, reason, arguments: args = {} }: HostError): ErrorWords {
  const values = Object.fromEntries(
    Object.entries(args).map(([name, value]) =>
      SIZES.includes(name) && typeof value === 'number' ? [name, number(Math.max(0.1, value / 1e9), 1)] : [name, value],
    ),
  );
  const keys: readonly WordsKey[] = [...(reason === undefined ? [] : [`reason.${reason}` as const]), `error.${code}`];
  for (const key of keys) {
    const [title, text] = [format(`${key}.title`, values), format(key, values)];
    if (title !== null && text !== null) return { title, text };
  }
  // An error of an earlier version may lack the arguments that its sentence has now; no title of a code has any.
  return { title: t(`error.${code}.title`), text: '' };
}

/** An error of the host in one line. */
export function errorText(error: HostError): string {
  const { title, text } = errorWords(error);
  return text === '' ? `${title}.` : `${title}. ${text}`;
}

/** A notice as a sentence. */
export function noticeText(notice: Notice): string {
  const { budget, layers, images } = notice.arguments ?? {};
  if (notice.code === 'thinking_ended' && budget !== undefined)
    return say('notice.thinking_ended.budget', notice, budget);
  return say(`notice.${notice.code}`, notice, layers ?? images);
}

/** `count` chooses the plural form of a text that has some. */
function say(key: Key, { arguments: args, message }: Notice, count?: string | number): string {
  const sentence = asSentence(message);
  return format(key, { ...args, message: sentence, ...(count === undefined ? {} : { count }) }) ?? sentence;
}
/** The parts of a system's message that only programmers need; the details of an error keep them. */
const MACHINE_WORDS = /\s*\(os error \d+\)|\s*\(?ExitStatus\([^()]*(?:\([^()]*\))?[^()]*\)\)?/g;

/** A first word that is written as it is: a path, a field, a file of a model. */
const WRITTEN_SO = /^\S*(?:[/_]\w|\.(?:json|jinja|safetensors|txt)\b)/;

/** The host's messages follow a colon on the command line; alone they begin with a capital and end with a full stop. */
export function asSentence(message: string): string {
  const text = message.replace(MACHINE_WORDS, '').replace(/:$/, '').trim();
  if (text === '') return '';
  const begun = WRITTEN_SO.test(text) ? text : `${text[0]?.toUpperCase()}${text.slice(1)}`;
  return `${begun}${/[.!?…”"]$/.test(text) ? '' : '.'}`;
}
