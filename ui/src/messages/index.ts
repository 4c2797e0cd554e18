/**
 * The texts of the windows, by typed keys. {@link en} holds them as data: a text with `{names}` in it, or its plural forms.
 * A key that does not exist, and an argument that is missing, unknown or of the wrong type, are errors of the compiler.
 *
 * Another language is one more file like `en.ts`, made by {@link translation}, and an entry in {@link CATALOGUES}.
 */

import { en } from './en';

/** A text with `{names}` in it, or its plural forms, of which `{count}` chooses one. */
export type Message = string | PluralForms;

/** The forms of a text that a language distinguishes. Every language has `other`. */
export type PluralForms = { readonly other: string } & { readonly [form in Exclude<Intl.LDMLPluralRule, 'other'>]?: string };

/** The key of a text. */
export type Key = keyof typeof en;

type Placeholder<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Placeholder<Rest> : never;
type PlaceholderOf<Text> = Text extends string ? Placeholder<Text> : Placeholder<Text[keyof Text]>;
type CountOf<Text> = Text extends string ? never : 'count';

/** The arguments of a text. Numbers are formatted for the language; texts are inserted as they are. */
export type Arguments<Text> = { readonly [Name in Exclude<PlaceholderOf<Text>, 'count'>]: string | number } & {
  readonly [Name in CountOf<Text>]: number;
} & { readonly [Name in Exclude<Extract<PlaceholderOf<Text>, 'count'>, CountOf<Text>>]: string | number };

type Rest<Text> = [PlaceholderOf<Text> | CountOf<Text>] extends [never] ? [] : [Arguments<Text>];

/** The texts of another language: all keys of English, each with no other arguments than English has. */
export type Catalogue = { readonly [K in Key]: Message };

/** Declares the texts of another language, for which the compiler compares keys and arguments with English. */
export function translation<const T extends Catalogue>(
  texts: T & { readonly [K in Key]: [Exclude<PlaceholderOf<T[K]>, PlaceholderOf<(typeof en)[K]> | CountOf<(typeof en)[K]>>] extends [never] ? unknown : never },
): T {
  return texts;
}

/** The texts of each language, by its BCP 47 tag. */
const CATALOGUES: Readonly<Record<string, Catalogue>> = { en };

/** The language of the windows, a BCP 47 tag. */
export let language = 'en';
let catalogue: Catalogue = en;
let plural = new Intl.PluralRules(language);
/** Number formats by their digits; making one costs more than using it. */
let numbers: Intl.NumberFormat[] = [];

/** Shows the windows in the first of these languages that Ponder speaks, or in English. Called before anything is drawn. */
export function chooseLanguage(wanted: readonly string[]): void {
  // Systems give what is no language tag as well, such as the locale "C".
  const tags = wanted.flatMap((tag) => [tag, tag.split('-')[0] ?? tag]);
  const tag = tags.find((candidate) => candidate in CATALOGUES) ?? 'en';
  useCatalogue(tag, CATALOGUES[tag] ?? en);
}

/** Shows the windows with these texts. */
export function useCatalogue(tag: string, texts: Catalogue): void {
  language = tag;
  catalogue = texts;
  plural = new Intl.PluralRules(tag);
  numbers = [];
}

/** The text of a key in the language of the windows, with its arguments inserted. */
export function t<K extends Key>(key: K, ...rest: Rest<(typeof en)[K]>): string {
  return insert(textOf(key, rest[0] ?? {}), rest[0] ?? {});
}

/** The same for arguments that come from the host, where the compiler cannot compare them; `null` if one is missing. */
export function format(key: Key, args: Readonly<Record<string, unknown>>): string | null {
  const text = textOf(key, args);
  const complete = [...text.matchAll(PLACEHOLDER)].every(([, name]) => name !== undefined && name in args);
  return complete ? insert(text, args) : null;
}

const PLACEHOLDER = /\{(\w+)\}/g;

function textOf(key: Key, args: Readonly<Record<string, unknown>>): string {
  const message = catalogue[key];
  return typeof message === 'string' ? message : (message[plural.select(Number(args['count']))] ?? message.other);
}

function insert(text: string, args: Readonly<Record<string, unknown>>): string {
  return text.replace(PLACEHOLDER, (placeholder, name: string) => {
    const value = args[name];
    if (typeof value === 'number') return number(value);
    return typeof value === 'string' ? value : placeholder;
  });
}

/** A number with this many digits after the point, `1,204` or `4.2`. */
export function number(value: number, digits = 0): string {
  numbers[digits] ??= new Intl.NumberFormat(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return numbers[digits].format(value);
}
