import { parse, type AST } from 'svelte/compiler';
import { afterEach, describe, expect, it } from 'vitest';

import type { Notice } from '../bindings/Notice';
import { ERROR_CODES, REASONS } from '../bindings/constants';
import { asHostError } from '../host';
import { en } from './en';
import { errorText, errorWords, noticeText } from './host';
import { translation } from './en/catalogue';
import { language, number, t, useCatalogue, type Key, type Message } from '.';

const COMPONENTS = import.meta.glob<string>('../**/*.svelte', { query: '?raw', import: 'default', eager: true });
const SCRIPTS = import.meta.glob<string>(['../**/*.ts', '!../**/*.test.ts', '!../bindings/**', '!./{en,de,ar}/**'], {
  query: '?raw',
  import: 'default',
  eager: true,
});

/** Names, and parts of addresses and tokens, that are the same in every language. */
const NAMES = ['Ponder', '/settings/tokens', 'hf_'];
/** Attributes and properties whose value a user sees or hears. */
const VISIBLE = /^(title|label|placeholder|text|alt|message|aria-label|aria-valuetext|aria-description)$/;

type Node = { type: string } & Record<string, unknown>;

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

function nodes(value: unknown): Node[] {
  return Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : [];
}

/** The literal texts that an expression may have as its value. */
function literals(node: unknown): string[] {
  if (!isNode(node)) return [];
  switch (node.type) {
    case 'Text':
      return typeof node['data'] === 'string' ? [node['data']] : [];
    case 'Literal':
      return typeof node['value'] === 'string' ? [node['value']] : [];
    case 'TemplateElement':
      return [JSON.stringify(node['value'])].map((quasi) => quasi.replace(/"(raw|cooked)":/g, ''));
    case 'ExpressionTag':
      return literals(node['expression']);
    case 'ConditionalExpression':
      return [...literals(node['consequent']), ...literals(node['alternate'])];
    case 'LogicalExpression':
    case 'BinaryExpression':
      return /^[=!<>]/.test(String(node['operator'])) ? [] : [...literals(node['left']), ...literals(node['right'])];
    case 'TemplateLiteral':
      return [...nodes(node['quasis']), ...nodes(node['expressions'])].flatMap(literals);
    default:
      return [];
  }
}

/** The visible texts of a component, or of a script in one, that do not come from the catalogue. */
function bareTexts(source: string): string[] {
  const found: string[] = [];
  const visit = (node: Node): void => {
    if (node.type === 'Text' || node.type === 'ExpressionTag') found.push(...literals(node));
    if (node.type === 'Attribute' && VISIBLE.test(String(node['name'])))
      found.push(...nodes(node['value']).flatMap(literals));
    if (node.type === 'Property' && isNode(node['key']) && VISIBLE.test(String(node['key']['name'])))
      found.push(...literals(node['value']));
    if (node.type === 'Attribute' || node.type === 'StyleDirective') return;
    for (const value of Object.values(node)) nodes(value).forEach(visit);
  };
  const { fragment, instance, module }: AST.Root = parse(source, { modern: true });
  nodes([fragment, instance?.content, module?.content]).forEach(visit);
  const words = (text: string): string => NAMES.reduce((rest, name) => rest.replaceAll(name, ''), text);
  return found.filter((text) => /\p{L}/u.test(words(text)));
}

afterEach(() => useCatalogue('en', en));

describe('windows', () => {
  it('are looked at: bare words are found wherever a person would see them', () => {
    expect(bareTexts('<p>Hello</p>')).toEqual(['Hello']);
    expect(bareTexts('<p>{open ? "yes" : t("a.b")}</p>')).toEqual(['yes']);
    expect(bareTexts('<button title="Go" class="round">{count} {`${count} files`}</button>')).toEqual([
      'Go',
      expect.stringContaining(' files'),
    ]);
    expect(bareTexts('<script>const item = { label: "Go", test: "go" };</script>')).toEqual(['Go']);
    expect(bareTexts('{#if kind === "on"}<i aria-label={t("a.b", { c: "d" })}>Ponder · {x}</i>{/if}')).toEqual([]);
  });

  it.each(Object.entries(SCRIPTS).filter(([path]) => !path.includes('/fake')))(
    '%s shows only texts from the catalogue',
    (_, source) => {
      expect(bareTexts(`<script lang="ts">${source}</script>`)).toEqual([]);
    },
  );

  it.each(Object.entries(COMPONENTS))('%s takes its texts from the catalogue', (_, source) => {
    expect(bareTexts(source)).toEqual([]);
  });
});

describe('the catalogue', () => {
  it('has no text that nothing shows', () => {
    const sources = [...Object.values(COMPONENTS), ...Object.values(SCRIPTS)].join('\n');
    const prefixes = [...sources.matchAll(/`([\w.]+\.)\$\{/g)].map(([, prefix]) => prefix ?? '');
    const unused = Object.keys(en).filter(
      (key) => !sources.includes(`'${key}'`) && !prefixes.some((prefix) => key.startsWith(prefix)),
    );
    expect(unused).toEqual([]);
  });

  it('checks keys and arguments when it is compiled', () => {
    // @ts-expect-error There is no such key.
    expect(() => t('chat.nothing')).toThrow();
    // @ts-expect-error The argument is missing.
    expect(t('chat.deleted')).toContain('{title}');
    // @ts-expect-error The argument has another name.
    expect(t('chat.deleted', { name: 'x' })).toContain('{title}');
    // @ts-expect-error Plural forms need a number.
    expect(t('amount.files', { count: '3' })).toContain('3');
    // @ts-expect-error This text has no argument.
    expect(t('common.copy', { title: 'x' })).toBe('Copy');
  });

  it('chooses a plural form and formats numbers', () => {
    expect([0, 1, 1204].map((count) => t('amount.files', { count }))).toEqual(['0 files', '1 file', '1,204 files']);
    expect(t('usage.speed', { rate: 41.6 })).toBe('42 tok/s');
    expect(t('chat.deleted', { title: '{title} $& of a chat' })).toBe('“{title} $& of a chat” was deleted.');
  });
});

describe('the host', () => {
  it('is quoted by code and arguments', () => {
    const ended: Notice = { code: 'thinking_ended', arguments: { budget: 1204 }, message: 'ended by its budget' };
    expect(noticeText(ended)).toBe('Thinking stopped at its budget of 1,204 tokens.');
    expect(noticeText({ ...ended, arguments: {} })).toBe('You stopped the thinking here.');
    expect(noticeText({ code: 'kv_bits', arguments: { layers: 1 }, message: 'x' })).toContain('1 layer can’t');
    expect(noticeText({ code: 'unknown', arguments: { file: 'a' }, message: 'something of a later version' })).toBe(
      'Something of a later version.',
    );
  });

  it('names what failed by reason, else by code, with the arguments of the error', () => {
    const full = { code: 'context_full', arguments: { prompt: 2310, context: 2048 }, message: 'too long' } as const;
    expect(errorWords(full)).toEqual({
      title: 'Chat too long for this model',
      text: 'It needs 2,310 tokens and the context length is 2,048. Nothing was removed.',
    });
    expect(errorText({ code: 'model_not_found', reason: 'model_missing', arguments: { reference: 'a/b' }, message: '' }))
      .toBe('Model not found. a/b isn’t on this computer. Choose another model or download it.');
    const memory = { needed: 28_700_000_000, free: 20_000_000 };
    expect(errorWords({ code: 'memory_short', reason: 'model_memory', arguments: memory, message: '' }).text).toBe(
      'This model needs 28.7 GB and 0.1 GB can be used. Nothing was loaded.',
    );
  });

  it('says less if an argument is missing, and never the sentence of the command line', () => {
    expect(errorText({ code: 'context_full', message: '' })).toBe('Chat too long for this model.');
    const message = 'cannot write the file: No space left on device (os error 28); see `ponder models`';
    for (const code of ERROR_CODES) {
      expect(errorText({ code, message })).not.toContain('os error');
      for (const reason of REASONS) expect(errorText({ code, reason, message })).not.toMatch(/ponder models|\{/);
    }
  });

  it('keeps the reason and the arguments of a call that was rejected', () => {
    const reason: unknown = { code: 'context_full', arguments: { prompt: 2310, context: 2048 }, message: 'too long' };
    expect(errorText(asHostError(reason))).toContain('It needs 2,310 tokens');
    expect(asHostError({ code: 'busy', arguments: [null], message: 'no' })).toEqual({ code: 'busy', message: 'no' });
    expect(asHostError({ code: 'busy', reason: 'chat_busy', message: 'no' }).reason).toBe('chat_busy');
    expect(asHostError({ code: 'busy', reason: 'of_a_later_version', message: 'no' }).reason).toBeUndefined();
  });
});

describe('another language', () => {
  // Every text reversed would do as well; Polish has more plural forms than English.
  const marked = Object.fromEntries(
    Object.entries(en).map(([key, text]) => [key, typeof text === 'string' ? `«${text}»` : text]),
  ) as { [K in Key]: Message };
  const polish = translation({
    ...marked,
    'amount.files': { one: '{count} plik', few: '{count} pliki', many: '{count} plików', other: '{count} pliku' },
  });

  it('is one more catalogue, with plural forms and numbers of its own', () => {
    useCatalogue('pl', polish);
    expect([1, 3, 5].map((count) => t('amount.files', { count }))).toEqual(['1 plik', '3 pliki', '5 plików']);
    expect(t('common.copy')).toBe('«Copy»');
    expect(number(4.25, 1)).toBe('4,3');
    expect(language).toBe('pl');
  });

  it('may not use an argument that English does not have', () => {
    // @ts-expect-error English gives it a title, no name.
    translation({ ...marked, 'chat.deleted': '{name}' } as const);
  });

  it('may not have a text that English does not have', () => {
    // @ts-expect-error There is no such key.
    translation({ 'chat.nothing': 'x' });
  });
});
