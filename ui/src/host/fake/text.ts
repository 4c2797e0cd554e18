/** The answers of the fake host's model. */

import type { Part } from '../../bindings/Part';

/** An answer in pieces. */
export type Script = { channel: 'thinking' | 'text'; text: string }[];

const SUM_THOUGHT = `Add the digits from the right.
7 + 9 = 16, write 6, carry 1
4 + 8 + 1 = 13, write 3, carry 1
3 + 5 + 1 = 9, write 9
So the sum is 936.`;

const SQUARES = `| n | square |
|---|---|
| 1 | 1 |
| 2 | 4 |
| 3 | 9 |
| 4 | 16 |

In Rust an iterator does it without a loop of your own:

\`\`\`rust
fn squares(n: u32) -> impl Iterator<Item = u32> {
    (1..=n).map(|x| x * x) // lazy, nothing is stored
}
\`\`\`

Their sum has a closed form, $\\sum_{i=1}^{n} i^2 = \\frac{n(n+1)(2n+1)}{6}$, so for $n = 4$:

$$
\\frac{4 \\cdot 5 \\cdot 9}{6} = 30
$$

- [x] table
- [x] code
- [ ] proof by induction, if you like
`;

const MIX = `## A short tour

Text with **weight**, *stress*, \`code\`, ~~a mistake~~ and [a link](https://example.org).

1. First, install it:
   \`\`\`bash
   cargo add serde --features derive
   \`\`\`
2. Then describe the data:
   - fields stay plain
   - names stay nouns

> Simple things should be simple, complex things should be possible.

\`\`\`python
def fib(n: int) -> list[int]:
    """The first n numbers."""
    a, b = 0, 1
    return [(a := b, b := a + b)[0] for _ in range(n)]
\`\`\`

![A boat](https://example.org/boat.png)

---

That is all.`;

const SENTENCES = [
  'The little boat left the harbour before the sun was up.',
  'Nobody had told the gulls, and so they came along.',
  'By noon the wind had turned, and with it the mood of the crew.',
  'An old map lay on the table, held down by two cups of tea.',
];

const BOATS = `Some names that sailors have liked:

1. **Windhover**, after the bird that hangs in the wind
2. **Halcyon**, for the calm it promises
3. **Marigold**, because she will be painted yellow anyway
`;

/** The rest of a script after these parts. */
export function restOf(script: Script, parts: readonly Part[]): Script {
  const rest = script.map(({ channel, text }) => {
    const said = parts.map((part) => (part.kind === channel ? part.text : '')).join('');
    return { channel, text: text.startsWith(said) ? text.slice(said.length) : text };
  });
  // After the first word of the answer there is no thinking.
  const answering = parts.some((part) => part.kind === 'text');
  return rest.filter(({ channel, text }) => text !== '' && !(answering && channel === 'thinking'));
}

/** The script for a question. */
export function scriptFor(question: string, thinks: boolean): Script {
  const thought = (text: string): Script => (thinks ? [{ channel: 'thinking', text }] : []);
  if (/square/i.test(question)) {
    return [...thought('The squares are 1, 4, 9 and 16.\nA table first, then code.'), { channel: 'text', text: SQUARES }];
  }
  if (/boat/i.test(question)) return [...thought('Names that sailors like: birds, calm, colours.'), { channel: 'text', text: BOATS }];
  if (/tour|markdown/i.test(question)) return [...thought('Show everything once.'), { channel: 'text', text: MIX }];
  // A page about tides, whose text is the question.
  if (/web page/i.test(question)) {
    const page = `<!doctype html>\n<title>Tides</title>\n<p>${question}</p>`;
    return [...thought('A small page.'), { channel: 'text', text: `Here it is.\n\n\`\`\`html\n${page}\n\`\`\`\n\nOpen it.` }];
  }
  if (/story|long|count/i.test(question)) {
    const paragraphs = Array.from({ length: 30 }, (_, i) => `${SENTENCES[i % 4]} ${SENTENCES[(i + 1) % 4]}`);
    return [...thought('A story in many parts.'), { channel: 'text', text: paragraphs.join('\n\n') }];
  }
  return [...thought(SUM_THOUGHT), { channel: 'text', text: '347 + 589 = **936**' }];
}

/** A text as a tokenizer would cut it, roughly. */
export function pieces(text: string): string[] {
  return text.match(/\s?\S{1,5}|\s+/g) ?? [];
}
