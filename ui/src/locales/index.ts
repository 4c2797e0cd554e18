/**
 * The texts of the windows, by typed keys. {@link en} holds them as data: a text with `{names}` in it, or its plural
 * forms. A key that does not exist, and an argument that is missing, unknown or of the wrong type, are errors of the
 * compiler.
 *
 * The other languages are folders like `en`, with the same topics, declared by `translation` and listed in
 * `languages.svelte.ts`, which loads the one that is chosen. A text that a language does not have is shown in English.
 */

import { en } from './en';
import type { Catalogue, Key, Message, Rest } from './en/catalogue';

export type { Catalogue, Key, Message } from './en/catalogue';

/** The language of the windows, a BCP 47 tag. */
export let language = 'en';
/** The texts of that language. */
export let catalogue: Catalogue = en;
let plural = new Intl.PluralRules(language);
/** True if inserted values keep their own direction: paths their order, numbers their units. */
let isolates = false;
/** Number formats by their digits; making one costs more than using it. */
let numbers: Intl.NumberFormat[] = [];
let wasRead: () => void = () => {};

/**
 * Shows the windows with these texts. Values that are inserted into a text that runs from right to left are isolated.
 */
export function useCatalogue(tag: string, texts: Catalogue, rightToLeft = false): void {
  language = tag;
  catalogue = texts;
  plural = new Intl.PluralRules(tag);
  isolates = rightToLeft;
  numbers = [];
}

/** Sets a callback for each read of a value that depends on the language. */
export function onRead(call: () => void): void {
  wasRead = call;
}

/** The language of the windows, for formats of dates and times. */
export function locale(): string {
  wasRead();
  return language;
}

/** The text of a key in the language of the windows, with its arguments inserted. */
export function t<K extends Key>(key: K, ...rest: Rest<(typeof en)[K]>): string {
  return insert(textOf(key, rest[0] ?? {}), rest[0] ?? {});
}

/** A piece of a text: words of the catalogue, or an inserted value between them. */
export interface Piece {
  readonly words: string;
  readonly inserted: boolean;
}

/** The same text cut at its arguments, so that each of them can be shown in an element of its own. */
export function pieces<K extends Key>(key: K, ...rest: Rest<(typeof en)[K]>): Piece[] {
  const args: Readonly<Record<string, string | number>> = rest[0] ?? {};
  // Every second part is a name of an argument.
  const parts = textOf(key, args)
    .split(PLACEHOLDER)
    .map((part, index): Piece => {
      const value = index % 2 === 0 ? part : (args[part] ?? `{${part}}`);
      return { words: typeof value === 'number' ? number(value) : value, inserted: index % 2 === 1 };
    });
  return parts.filter(({ words }) => words !== '');
}

/** The same for arguments that come from the host, where the compiler cannot compare them; `null` if one is missing. */
export function format(key: Key, args: Readonly<Record<string, unknown>>): string | null {
  const text = textOf(key, args);
  const complete = [...text.matchAll(PLACEHOLDER)].every(([, name]) => name !== undefined && name in args);
  return complete ? insert(text, args) : null;
}

const PLACEHOLDER = /\{(\w+)\}/g;

function textOf(key: Key, args: Readonly<Record<string, unknown>>): string {
  wasRead();
  const message: Message = catalogue[key] ?? en[key];
  return typeof message === 'string' ? message : (message[plural.select(Number(args['count']))] ?? message.other);
}

function insert(text: string, args: Readonly<Record<string, unknown>>): string {
  return text.replace(PLACEHOLDER, (placeholder, name: string) => {
    const value = args[name];
    const words = typeof value === 'number' ? number(value) : value;
    if (typeof words !== 'string') return placeholder;
    return isolates ? `\u2068${words}\u2069` : words;
  });
}

/** A number with this many digits after the point, `1,204` or `4.2`. */
export function number(value: number, digits = 0): string {
  wasRead();
  numbers[digits] ??= new Intl.NumberFormat(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return numbers[digits].format(value);
}
