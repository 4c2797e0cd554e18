/**
 * The host's messages in the language of the windows. Its errors and notices have a code and arguments, which select a
 * text of the catalogue; the compiler makes sure that every code has one. If an argument of the text is missing, the
 * host's own English sentence is shown.
 */

import type { Error as HostError } from '../bindings/Error';
import type { Notice } from '../bindings/Notice';
import { format, type Key } from '.';

/** An error of the host as a sentence. */
export function errorText(error: HostError): string {
  if (error.code === 'model_not_found' && error.arguments?.['reference'] !== undefined)
    return say('error.model_not_found.here', error);
  return say(`error.${error.code}`, error);
}

/** A notice as a sentence. */
export function noticeText(notice: Notice): string {
  const { budget, layers, images } = notice.arguments ?? {};
  if (notice.code === 'thinking_ended' && budget !== undefined)
    return say('notice.thinking_ended.budget', notice, budget);
  return say(`notice.${notice.code}`, notice, layers ?? images);
}

/** `count` chooses the plural form of a text that has some. */
function say(key: Key, { arguments: args, message }: HostError | Notice, count?: string | number): string {
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
