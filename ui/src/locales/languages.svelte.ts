/** The languages of the windows, of which all but English are read when they are spoken. */

import { en } from './en';
import { catalogue, language as spokenNow, onRead, useCatalogue, type Catalogue } from '.';

interface Language {
  /** The name of the language in the language itself. */
  readonly name: string;
  /** Set if numbers use Latin digits, although the language has its own. */
  readonly latinDigits?: true;
  readonly rightToLeft?: true;
  readonly read: () => Promise<Catalogue>;
}

/** The languages of Ponder, by BCP 47 tags. */
export const LANGUAGES = {
  en: { name: 'English', read: async () => en },
  de: { name: 'Deutsch', read: async () => (await import('./de')).de },
  // Versions, ports and names of models have Latin digits, so other numbers have them too.
  ar: { name: 'العربية', latinDigits: true, rightToLeft: true, read: async () => (await import('./ar')).ar },
} as const satisfies Record<string, Language>;

/** The tag of a language that Ponder speaks. */
export type Spoken = keyof typeof LANGUAGES;

const isSpoken = (tag: string): tag is Spoken => Object.hasOwn(LANGUAGES, tag);

/** Grows with each change of language, so that texts of the previous one render again. */
let changes = $state(0);
onRead(() => void changes);

/** The number of language changes, for views that do not depend on texts alone. */
export function languageChanges(): number {
  return changes;
}

/** The latest wish, since languages may be read in another order than they were wanted in. */
let latest: readonly string[] = [];

/** The first of these languages that Ponder speaks, or English. */
export function firstSpoken(wanted: readonly string[]): Spoken {
  // Systems also report values that are not language tags, such as the locale "C".
  return wanted.flatMap((tag) => [tag, tag.split('-')[0] ?? tag]).find(isSpoken) ?? 'en';
}

/** The format of numbers and dates: that of the country for which the system has the language set. */
function localeOf(tag: string, { latinDigits }: Language): string {
  for (const wanted of navigator.languages) {
    try {
      const locale = new Intl.Locale(wanted, latinDigits ? { numberingSystem: 'latn' } : {});
      if (locale.language === tag) return locale.toString();
    } catch {
      // Not every system gives tags.
    }
  }
  return latinDigits ? `${tag}-u-nu-latn` : tag;
}

/** Shows the page in the first of these languages that Ponder speaks, or in English. */
export async function chooseLanguage(wanted: readonly string[]): Promise<void> {
  latest = wanted;
  const tag = firstSpoken(wanted);
  const language: Language = LANGUAGES[tag];
  // A page whose language cannot be read is still a page.
  const texts = await language.read().catch((reason: unknown) => {
    console.error(reason);
    return en;
  });
  if (latest !== wanted) return;
  const root = document.documentElement;
  root.lang = tag;
  root.dir = language.rightToLeft ? 'rtl' : 'ltr';
  const locale = localeOf(tag, language);
  if (catalogue === texts && spokenNow === locale) return;
  useCatalogue(locale, texts, language.rightToLeft);
  changes += 1;
}

/** The user's languages: the chosen one, or those of the system. */
export function wantedLanguages(chosen: string | null | undefined): readonly string[] {
  return chosen ? [chosen] : navigator.languages;
}
