/**
 * The types of the texts: English declares every key and its arguments, and the other languages are compared with it.
 */

import type { en } from '.';

/** A text with `{names}` in it, or its plural forms, of which `{count}` chooses one. */
export type Message = string | PluralForms;

/** The forms of a text that a language distinguishes. Every language has `other`. */
export type PluralForms = { readonly other: string } & {
  readonly [form in Exclude<Intl.LDMLPluralRule, 'other'>]?: string;
};

/** The key of a text. */
export type Key = keyof typeof en;

type Placeholder<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Placeholder<Rest> : never;
type PlaceholderOf<Text> = Text extends string ? Placeholder<Text> : Placeholder<Text[keyof Text]>;
type CountOf<Text> = Text extends string ? never : 'count';

/** The arguments of a text. Numbers are formatted for the language; texts are inserted as they are. */
export type Arguments<Text> = { readonly [Name in Exclude<PlaceholderOf<Text>, 'count'>]: string | number } & {
  readonly [Name in CountOf<Text>]: number;
} & { readonly [Name in Exclude<Extract<PlaceholderOf<Text>, 'count'>, CountOf<Text>>]: string | number };

/** The arguments that `t` takes after a key: none if its text has none. */
export type Rest<Text> = [PlaceholderOf<Text> | CountOf<Text>] extends [never] ? [] : [Arguments<Text>];

/** Texts of another language by keys of English; those that it lacks are shown in English. */
export type Catalogue = { readonly [K in Key]?: Message };

/** The arguments that a text may use: those of its English twin. */
type Known<K extends Key> = PlaceholderOf<(typeof en)[K]> | CountOf<(typeof en)[K]>;

/**
 * `never` for each key that English does not have, or whose text uses an argument that the English one does not have.
 */
type Checked<T> = {
  readonly [K in keyof T]: K extends Key
    ? [Exclude<PlaceholderOf<T[K]>, Known<K>>] extends [never]
      ? unknown
      : never
    : never;
};

/** Declares texts of another language, whose keys and arguments the compiler compares with English. */
export function translation<const T extends Catalogue>(texts: T & Checked<T>): T {
  return texts;
}
