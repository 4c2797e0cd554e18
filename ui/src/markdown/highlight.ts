/**
 * Colors for code. The highlighter and each grammar are read the first time a block needs them, and every token becomes
 * a class, so that one set of custom properties draws light and dark.
 */

import type { HighlighterCore, LanguageRegistration } from '@shikijs/core';

type Grammar = () => Promise<{ default: LanguageRegistration[] }>;

/** Each grammar with the labels that mean it; the first one is its name. */
const GRAMMARS: readonly [labels: string, read: Grammar][] = [
  ['bash sh shell zsh console', () => import('@shikijs/langs/bash')],
  ['c h', () => import('@shikijs/langs/c')],
  ['css', () => import('@shikijs/langs/css')],
  ['diff patch', () => import('@shikijs/langs/diff')],
  ['go golang', () => import('@shikijs/langs/go')],
  ['html xml svg', () => import('@shikijs/langs/html')],
  ['java', () => import('@shikijs/langs/java')],
  ['javascript js jsx mjs', () => import('@shikijs/langs/javascript')],
  ['json jsonc', () => import('@shikijs/langs/json')],
  ['kotlin kt', () => import('@shikijs/langs/kotlin')],
  ['python py python3', () => import('@shikijs/langs/python')],
  ['rust rs', () => import('@shikijs/langs/rust')],
  ['sql', () => import('@shikijs/langs/sql')],
  ['swift', () => import('@shikijs/langs/swift')],
  ['toml', () => import('@shikijs/langs/toml')],
  ['typescript ts', () => import('@shikijs/langs/typescript')],
  ['yaml yml', () => import('@shikijs/langs/yaml')],
];

const BY_LABEL = new Map(
  GRAMMARS.flatMap(([labels, read]) => {
    const [name = '', ...aliases] = labels.split(' ');
    return [name, ...aliases].map((label) => [label, { name, read }] as const);
  }),
);

/** Longer code stays plain: coloring it would hold up the window. */
const LIMIT = 60_000;

// The theme's colors are names in disguise; `CLASSES` turns them into classes.
const SCOPES: [className: string, colour: string, scopes: string[]][] = [
  ['t-comment', '#000001', ['comment', 'punctuation.definition.comment']],
  ['t-string', '#000002', ['string', 'markup.inserted', 'constant.character.escape']],
  [
    't-number',
    '#000003',
    [
      'constant',
      'entity.name.type',
      'support.type',
      'support.class',
      'entity.other.attribute-name',
      'variable.language',
      'storage.type.numeric',
    ],
  ],
  ['t-keyword', '#000004', ['keyword', 'storage', 'markup.deleted', 'entity.name.tag', 'meta.tag.sgml.doctype']],
  [
    't-function',
    '#000005',
    [
      'entity.name.function',
      'support.function',
      'meta.function-call.generic',
      'support.type.property-name',
      'meta.attribute',
      'entity.name.section',
      'meta.diff.header',
      'markup.heading',
    ],
  ],
  [
    't-plain',
    '#000006',
    ['keyword.operator', 'punctuation', 'storage.modifier.lifetime punctuation', 'keyword.operator.new punctuation'],
  ],
  [
    't-keyword',
    '#000004',
    ['keyword.operator.new', 'keyword.operator.expression', 'keyword.operator.logical.python', 'keyword.operator.word'],
  ],
];
const CLASSES: ReadonlyMap<string, string> = new Map(SCOPES.map(([className, colour]) => [colour, className]));
const THEME = {
  name: 'ponder',
  type: 'light' as const,
  fg: '#000006',
  bg: '#ffffff',
  settings: [
    { settings: { foreground: '#000006', background: '#ffffff' } },
    ...SCOPES.map(([, foreground, scope]) => ({ scope, settings: { foreground } })),
  ],
};

let core: HighlighterCore | null = null;
const loaded = new Set<string>();
const loading = new Map<string, Promise<void>>();

/** The grammar that a fence's label means; `null` if there is none. */
export function grammarOf(label: string): string | null {
  return BY_LABEL.get(label.toLowerCase())?.name ?? null;
}

/** True if code would have colors if it were shorter. */
export function tooLong(code: string, label: string): boolean {
  return code.length > LIMIT && grammarOf(label) !== null;
}

/** Reads a grammar, once. A grammar that cannot be read leaves its code plain. */
export function loadGrammar(name: string): Promise<void> {
  let promise = loading.get(name);
  if (!promise) {
    promise = read(name);
    loading.set(name, promise);
  }
  return promise;
}

async function read(name: string): Promise<void> {
  const grammar = BY_LABEL.get(name)?.read;
  if (!grammar) return;
  const [shiki, engine, { default: languages }] = await Promise.all([
    import('@shikijs/core'),
    import('@shikijs/engine-javascript'),
    grammar(),
  ]);
  core ??= shiki.createHighlighterCoreSync({
    themes: [THEME],
    langs: [],
    engine: engine.createJavaScriptRegexEngine({ forgiving: true }),
  });
  core.loadLanguageSync(languages);
  loaded.add(name);
}

/** The code as HTML of classed spans; `null` if its grammar is not loaded (yet). */
export function highlight(code: string, label: string): string | null {
  const name = grammarOf(label);
  if (!core || !name || !loaded.has(name) || code.length > LIMIT) return null;
  return core
    .codeToTokensBase(code, { lang: name, theme: THEME.name })
    .map((line) =>
      line
        .map(({ content, color }) => {
          const className = CLASSES.get((color ?? '').toLowerCase());
          return className && className !== 't-plain'
            ? `<span class="${className}">${escapeHtml(content)}</span>`
            : escapeHtml(content);
        })
        .join(''),
    )
    .join('\n');
}

/** Text as HTML that shows it. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
