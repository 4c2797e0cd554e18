import { describe, expect, it } from 'vitest';

import WORDS from '../../../src-tauri/src/words/en.json';
import type { Message } from '.';

const TOPICS = import.meta.glob<Record<string, Record<string, Message>>>(['./en/*.ts', '!./en/{index,catalogue}.ts'], {
  eager: true,
});

/** Words that no English text has, and the words to write in their place. */
const REFUSED: readonly (readonly [RegExp, string])[] = [
  [/\bhubs?\b/i, 'Hugging Face'],
  [/\bfetch(?:es|ed|ing)?\b/i, 'download'],
  [/\bpictures?\b/i, 'image'],
  [/\bquestions?\b/i, 'message'],
  [/\banswers?\b/i, 'response'],
  [/\bthoughts?\b/i, 'thinking'],
  [/\bchoice of words\b|\blikeliest\b/i, 'the names of the sampling parameters'],
  [/\bstop texts?\b/i, 'stop sequence'],
  [/\bturns?\b(?! (?:it )?(?:on|off)\b)/i, 'message'],
  [/\bkeys and values\b|\bmemory (?:of|for) (?:a|the) (?:chat|conversation)s?\b/i, 'KV cache'],
  [/\bpacked\b|\bbits\b|\b\d+ bit\b|\{\} bit\b/i, '4-bit, or quantization'],
  [/\bgraphics cards?\b|\bkernels?\b/i, 'GPU'],
  [/(?<!fit )\b(?:in|left) memory\b|\bunload(?:s|ed|ing)?\b(?! idle\b)/i, 'Loaded, or Eject'],
  [/\bcomfortabl[ey]\b|\bwill not fit\b/i, 'Fits, or Too large'],
  [/\bvision part\b|\bsees\b|\bcan(?:not|’t) see\b/i, 'doesn’t support images'],
  [/\bside by side\b|\bbeside\b/i, 'compare'],
  [/\bput back\b/i, 'Restore'],
  [/\bfor good\b/i, 'permanently'],
  [/\bleaves? this computer\b/i, 'Remote'],
  [/\bby itself\b|\bthemselves\b|\bthat one\b|\bsuch as\b|\bas usual\b|\banew\b|\bso many\b/i, 'a plain word'],
  [/\b(?:gets|takes|holds|stands|lies)\b|\bgo(?:es)? along\b|\bmay go\b|\bgoes on\b|\bgo on\b/i, 'a plain verb'],
  [/\bbroke off\b|\bin the middle\b|\blooked at\b|\bseen by\b/i, 'a plain verb'],
  [/\b(?:is|are) (?:there|here)\b/i, 'the thing first'],
  [/\bwhat\b(?!’s new)(?!.*\?$)/i, 'a noun'],
  [/licence|colour|\bgrey\b|centre\b|favour|behaviour|cancelled|catalogue/i, 'American English'],
  [/(?:summar|organ|recogn|quant|token|optim|custom|minim|maxim|author|normal|synchron)is(?:e|ed|es|ing)\b/i, '-ize'],
  [/ %/, '43%'],
  [/\{\} [kM]\b/, '128K'],
  [/;/, 'two sentences'],
  [/\b[A-Z][A-Z0-9]*_[A-Z0-9_]*/, 'no environment variable'],
  [/(?:^|[\s(])--[a-z]/, 'no option of a command'],
  [/\bos error\b/i, 'no words of the system'],
];

/** Phrases that have such a word for a good reason. */
const ALLOWED: readonly (readonly [RegExp, string])[] = [
  [/\bAnswer now\b/gi, 'known from other assistants'],
  [/\b(?:and|it) answers?\b|\bAnswer in\b/gi, 'the verb'],
  [/\bThought for\b/g, 'known from other assistants'],
];

/** Texts that may break a rule. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'appearance.density.comfortable': 'A density; other apps call it so.',
  'network.intro': '“what you start” is exact, and a list of all of it follows.',
  'settings.endpoints.intro': '“such as” introduces three names of programs.',
};

const LONGEST_SENTENCE = 22;

type Text = readonly [key: string, text: string];

function texts(value: unknown, key: string): Text[] {
  if (typeof value === 'string') return [[key, value]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => texts(inner, key === '' ? name : `${key}/${name}`));
}

/** The sentences of a text: a full stop, a question mark or an exclamation mark before a space ends one. */
function sentences(text: string): string[] {
  return text.split(/(?<=[.!?…:])\s+/);
}

/** The faults of a text, each as the words that are wrong and what to write. */
function faults(text: string): string[] {
  const read = ALLOWED.reduce((rest, [phrase]) => rest.replace(phrase, ''), text.replace(/\{\w+\}/g, '{}'));
  const refused = REFUSED.flatMap(([words, better]) => {
    const found = words.exec(read)?.[0];
    return found === undefined ? [] : [`“${found}”: ${better}`];
  });
  const long = sentences(text)
    .map((sentence) => sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length)
    .filter((length) => length > LONGEST_SENTENCE);
  return [...refused, ...long.map((length) => `a sentence of ${length} words: at most ${LONGEST_SENTENCE}`)];
}

const FILES: [string, Text[]][] = [
  ...Object.entries(TOPICS).map(([path, topics]): [string, Text[]] => [path, texts(Object.values(topics)[0], '')]),
  ['words/en.json', texts(WORDS, '')],
];

describe('the wording', () => {
  it.each(FILES)('of %s keeps to the rules', (_, file) => {
    expect(file.length).toBeGreaterThan(0);
    const found = file
      .filter(([key]) => !Object.hasOwn(EXCEPTIONS, key.split('/')[0] ?? ''))
      .flatMap(([key, text]) => faults(text).map((fault) => `${key}: ${fault}`));
    expect(found).toEqual([]);
  });

  it('is looked at by rules that find a fault and pass what is right', () => {
    expect(faults('The hub takes {percent} % of 4 bits; set PONDER_X or --x.')).toHaveLength(7);
    expect(faults(`${'word '.repeat(LONGEST_SENTENCE)}word. Short.`)).toEqual(['a sentence of 23 words: at most 22']);
    expect(faults('Stops thinking and answers. {percent}% of 4-bit, 128K. What’s new?')).toEqual([]);
    for (const [words] of REFUSED) expect(words.flags).not.toContain('g');
  });
});
