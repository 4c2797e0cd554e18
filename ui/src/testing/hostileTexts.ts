/**
 * Texts that try to run something, load something or look like a part of the window: those of `payloads.json`, in which
 * `ran` is a function that must not be called and `OUTSIDE` a server that must get no request, and mutations of them.
 * More can be given, which are then mutated as well.
 */

import payloads from './payloads.json';

/** The same numbers every time, from 0 to 1 (mulberry32). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

type Mutation = (text: string, at: number, other: string) => string;

const MUTATIONS: readonly Mutation[] = [
  (text) => [...text].map((letter, index) => (index % 2 === 0 ? letter.toUpperCase() : letter)).join(''),
  (text, at) => text.slice(0, at) + text.slice(at + 1),
  (text, at) => `${text.slice(0, at)}\u0000${text.slice(at)}`,
  (text, at) => `${text.slice(0, at)}\n${text.slice(at)}`,
  (text, at) => `${text.slice(0, at)}\t${text.slice(at)}`,
  (text, at) => `${text.slice(0, at)}/**/${text.slice(at)}`,
  (text) => text.replaceAll('"', "'"),
  (text) => text.replaceAll(' ', '/'),
  (text) => text.replaceAll(':', '&colon;'),
  (text) => text.replaceAll('<', '<<'),
  (text) => text.replaceAll('>', ''),
  (text) => text.replaceAll('<', '&lt;'),
  (text) => text.replaceAll('(', '&#40;').replaceAll(')', '&#41;'),
  (text, at, other) => text.slice(0, at) + other + text.slice(at),
  (text, at, other) => `${other.slice(0, at)}${text}`,
  (text) => `[${text}](https://example.org)`,
  (text) => `[x](https://example.org/"${text})`,
  (text) => `![${text}](${text})`,
  (text) => `> - 1. ${text}`,
  (text) => `| ${text} |\n|---|\n| ${text} |`,
  (text) => `**${text}**`,
  (text) => `<details><summary>${text}</summary>${text}</details>`,
  (text) => `<p title="${text}">${text}</p>`,
  (text) => `<div><p>${text}`,
  (text) => `$${text}$`,
  (text) => `\`\`\`${text}\n${text}\n\`\`\``,
  (text) => `${text}\n\n${text}\n===`,
  (text) => `<!-- ${text}`,
  (text) => `<svg><style>${text}</style></svg>`,
  (text) => `<math><mi>${text}</mi></math>`,
];

/** The given texts first, then generated ones up to `count`; the same for the same seed. */
export function hostileTexts(count: number, seed: number, more: readonly string[] = []): string[] {
  const originals = [...payloads, ...more];
  const next = numbers(seed);
  const one = <T>(list: readonly T[]): T | undefined => list[Math.floor(next() * list.length)];
  const texts = [...originals];
  while (texts.length < count) {
    let text = one(originals) ?? '';
    for (let times = 1 + Math.floor(next() * 3); times > 0; times--)
      text = one(MUTATIONS)?.(text, Math.floor(next() * text.length), one(originals) ?? '') ?? text;
    texts.push(text.slice(0, 4000));
  }
  return texts;
}
