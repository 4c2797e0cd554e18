/**
 * Colors for code. The highlighter and each grammar are read the first time a block needs them, and every token becomes
 * a class, so that one set of custom properties draws light and dark.
 */

import type { HighlighterCore, LanguageRegistration } from '@shikijs/core';

type Grammar = () => Promise<{ default: LanguageRegistration[] }>;

const GRAMMARS: ReadonlyMap<string, Grammar> = new Map<string, Grammar>([
  ['bash', () => import('@shikijs/langs/bash')],
  ['c', () => import('@shikijs/langs/c')],
  ['css', () => import('@shikijs/langs/css')],
  ['diff', () => import('@shikijs/langs/diff')],
  ['go', () => import('@shikijs/langs/go')],
  ['html', () => import('@shikijs/langs/html')],
  ['java', () => import('@shikijs/langs/java')],
  ['javascript', () => import('@shikijs/langs/javascript')],
  ['json', () => import('@shikijs/langs/json')],
  ['kotlin', () => import('@shikijs/langs/kotlin')],
  ['python', () => import('@shikijs/langs/python')],
  ['rust', () => import('@shikijs/langs/rust')],
  ['sql', () => import('@shikijs/langs/sql')],
  ['swift', () => import('@shikijs/langs/swift')],
  ['toml', () => import('@shikijs/langs/toml')],
  ['typescript', () => import('@shikijs/langs/typescript')],
  ['yaml', () => import('@shikijs/langs/yaml')],
]);

const ALIASES: ReadonlyMap<string, string> = new Map([
  ['sh', 'bash'],
  ['shell', 'bash'],
  ['zsh', 'bash'],
  ['console', 'bash'],
  ['h', 'c'],
  ['js', 'javascript'],
  ['jsx', 'javascript'],
  ['mjs', 'javascript'],
  ['ts', 'typescript'],
  ['py', 'python'],
  ['python3', 'python'],
  ['rs', 'rust'],
  ['golang', 'go'],
  ['kt', 'kotlin'],
  ['jsonc', 'json'],
  ['yml', 'yaml'],
  ['xml', 'html'],
  ['svg', 'html'],
  ['patch', 'diff'],
]);

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
  const name = label.toLowerCase();
  const grammar = ALIASES.get(name) ?? name;
  return GRAMMARS.has(grammar) ? grammar : null;
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
  const grammar = GRAMMARS.get(name);
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
