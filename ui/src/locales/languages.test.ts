import { afterEach, describe, expect, it, vi } from 'vitest';

import { en } from './en';
import { ERROR_CODES, REASONS } from '../bindings/constants';
import { errorText } from './host';
import { chooseLanguage, firstSpoken, LANGUAGES } from './languages.svelte';
import { locale, t, useCatalogue, type Catalogue, type Key, type Message } from '.';

const KEYS = Object.keys(en) as Key[];
const forms = (message: Message | undefined): readonly string[] =>
  typeof message === 'string' ? [message] : Object.values(message ?? {});
const names = (message: Message | undefined): Set<string> =>
  new Set(forms(message).flatMap((text) => [...text.matchAll(/\{\w+\}/g)].map(String)));
/** A text without the marks that isolate inserted values. */
const plain = (text: string): string => text.replace(/[\u2068\u2069]/g, '');

afterEach(() => chooseLanguage(['en']));

const others = await Promise.all(
  Object.entries(LANGUAGES).map(async ([tag, { read }]): Promise<[string, Catalogue]> => [tag, await read()]),
);

describe.each(others.filter(([tag]) => tag !== 'en'))('%s', (tag, catalogue) => {
  it('has every text', () => {
    // The printed lines can be pasted into a file of the language and translated there.
    const missing = KEYS.filter((key) => catalogue[key] === undefined).map(
      (key) => `  '${key}': ${JSON.stringify(en[key])},`,
    );
    expect(missing.join('\n')).toBe('');
  });

  it('says everything that English says', () => {
    const left = KEYS.filter(
      (key) =>
        catalogue[key] !== undefined &&
        [...names(en[key])].some((name) => name !== '{count}' && !names(catalogue[key]).has(name)),
    );
    expect(left).toEqual([]);
  });

  it('uses no plural form that the language does not have', () => {
    const known = new Set<string>(new Intl.PluralRules(tag).resolvedOptions().pluralCategories);
    const strange = KEYS.filter(
      (key) => typeof catalogue[key] === 'object' && Object.keys(catalogue[key]).some((form) => !known.has(form)),
    );
    expect(strange).toEqual([]);
  });
});

describe('a language', () => {
  it('is the first of those that are wanted', () => {
    expect([['de-AT', 'en'], ['tlh', 'ar-EG', 'de'], ['C'], ['POSIX.UTF-8'], []].map(firstSpoken)).toEqual([
      'de',
      'ar',
      'en',
      'en',
      'en',
    ]);
  });

  it('names its own plural forms and writes its own numbers', async () => {
    await chooseLanguage(['de']);
    expect([1, 1204].map((count) => t('amount.files', { count }))).toEqual(['1 Datei', '1.204 Dateien']);
    await chooseLanguage(['ar']);
    expect([0, 1, 2, 3, 11, 100].map((count) => plain(t('amount.files', { count })))).toEqual([
      'لا ملفات',
      'ملف واحد',
      'ملفان',
      '3 ملفات',
      '11 ملفًا',
      '100 ملف',
    ]);
  });

  it('writes dates as the country does for which the system has it set', async () => {
    vi.stubGlobal('navigator', { languages: ['C', 'en-GB.UTF-8', 'en-GB', 'ar-EG'] });
    const day = (): string => new Intl.DateTimeFormat(locale(), { dateStyle: 'short', timeZone: 'UTC' }).format(0);
    await chooseLanguage(['en']);
    expect(day()).toBe('01/01/1970');
    await chooseLanguage(['ar']);
    expect(day().replace(/[^\d/]/g, '')).toBe('1/1/1970');
    vi.unstubAllGlobals();
  });

  it('turns the page around if it is written from right to left', async () => {
    const root = document.documentElement;
    await chooseLanguage(['ar-EG']);
    expect([root.lang, root.dir]).toEqual(['ar', 'rtl']);
    await chooseLanguage(['de']);
    expect([root.lang, root.dir]).toEqual(['de', 'ltr']);
  });

  it('keeps names and paths in their own direction', async () => {
    await chooseLanguage(['ar']);
    expect(t('export.done', { path: '/tmp/a' })).toBe('حُفظ في \u2068/tmp/a\u2069');
    expect(t('chat.deleted', { title: 'سؤال' })).toBe('حُذفت «\u2068سؤال\u2069».');
  });

  it('is the last that was wanted, whichever is read first', async () => {
    await Promise.all([chooseLanguage(['de']), chooseLanguage(['ar']), chooseLanguage(['en'])]);
    expect([document.documentElement.lang, t('common.copy')]).toEqual(['en', 'Copy']);
  });

  it('speaks English where it has no words, also in plural forms', () => {
    useCatalogue('ar', { 'common.copy': 'نسخ' }, true);
    expect([t('common.copy'), t('common.close')]).toEqual(['نسخ', 'Close']);
    expect([1, 2, 11].map((count) => plain(t('amount.files', { count })))).toEqual(['1 file', '2 files', '11 files']);
  });

  it.each(['de', 'ar'])('has its own words for every error: %s', async (tag) => {
    const errors = [...ERROR_CODES.map((code) => ({ code })), ...REASONS.map((reason) => ({ code: 'busy', reason }) as const)];
    const all = KEYS.flatMap((key) => [...names(en[key])]).map((name) => [name.slice(1, -1), 7]);
    const given = { arguments: Object.fromEntries(all) as Record<string, number>, message: 'the English sentence' };
    await chooseLanguage(['en']);
    const english = errors.map((error) => errorText({ ...given, ...error }));
    await chooseLanguage([tag]);
    errors.forEach((error, index) => {
      const words = errorText({ ...given, ...error });
      expect(words).not.toBe(english[index]);
      expect(words).not.toContain('English');
    });
  });
});
