import { describe, expect, inject, it, vi } from 'vitest';

import { textPart } from '../host/fake';
import { hostileTexts } from '../testing/hostileTexts';
import { all, host, open, pass, the, useWindow } from '../testing/window';

useWindow();

declare module 'vitest' {
  interface ProvidedContext {
    /** Texts from the tests of other sanitizers, which `tests/hostile/collect.py` fetches; see vite.config.ts. */
    payloads: string[];
    seed: number;
  }
}

const more = inject('payloads');
const COUNT = 500 + more.length;
const SEED = inject('seed');
/** Turns of a chat that are drawn at once. */
const TURNS = 5;

const FORBIDDEN =
  'script, iframe, frame, object, embed, base, meta, link, video, audio, source, track, applet, portal, template, style, form:not(.composer), animate, set, use, foreignObject, math a, svg a';
/** Addresses that a page of Ponder may hold. */
// A link to nothing leads nowhere.
const ADDRESS = /^(?:$|https?:|mailto:|data:image\/|#|attachment:)/i;

/** Elements of the page that could run, load or dress up; no part of the window itself is one. */
function faults(root: ParentNode): string[] {
  const found: string[] = [];
  for (const element of root.querySelectorAll('*')) {
    if (element.matches(FORBIDDEN)) found.push(element.outerHTML.slice(0, 200));
    for (const { name, value } of element.attributes) {
      if (name.startsWith('on')) found.push(`${element.localName} ${name}=${value}`);
      if (
        [
          'href',
          'src',
          'srcset',
          'action',
          'formaction',
          'poster',
          'background',
          'xlink:href',
          'ping',
          'data',
          'srcdoc',
        ].includes(name) &&
        !ADDRESS.test(value.trim())
      )
        found.push(`${element.localName} ${name}=${value}`);
      if (name === 'src' && !/^(?:data:image\/|attachment:)/.test(value))
        found.push(`${element.localName} loads ${value}`);
    }
  }
  return found;
}

/** Attributes that an answer may not give its elements: they would look or behave like parts of the window. */
function disguises(markdown: Element): string[] {
  const ours =
    '.code, .code *, .katex-display, .katex, .katex *, .katex-error, .tick, .image, .tex, .raw, svg, svg *, .markdown, .block, .plain, .footnotes, .footnotes *';
  return [
    ...markdown.querySelectorAll('[class], [id], [style], [data-testid], [tabindex], [contenteditable], [autofocus]'),
  ]
    .filter((element) => !element.matches(ours) && [...element.classList].every((name) => !name.startsWith('svelte-')))
    .map((element) => element.outerHTML.slice(0, 200));
}

describe('hostile texts', () => {
  const texts = hostileTexts(COUNT, SEED, more);

  it('are at least five hundred, the same for the same seed', () => {
    expect(texts.length).toBeGreaterThanOrEqual(500);
    expect(new Set(texts).size).toBeGreaterThan(450);
    expect(hostileTexts(COUNT, SEED, more)).toEqual(texts);
  });

  it.each(Array.from({ length: Math.ceil(texts.length / TURNS) }, (_, part) => part))(
    'run and load nothing as question, thought, answer and title: part %i',
    async (part) => {
      const ran = vi.fn();
      vi.stubGlobal('ran', ran);
      vi.stubGlobal('alert', ran);
      const here = texts.slice(part * TURNS, (part + 1) * TURNS);
      const chat = host.addChat(here[0] ?? '', Date.now());
      for (const text of here) {
        host.addTurn(chat, text, { parts: [{ kind: 'thinking', text, started_at: 0, ended_at: 1 }, textPart(text)] });
      }
      await open('chat', chat.summary.id);
      for (const toggle of all('thought-toggle')) toggle.click();
      // Grammars and KaTeX load at first use, and long texts take a step of their own.
      await pass(200);
      await vi.dynamicImportSettled();
      await pass(200);
      expect(all('answer-text').length).toBe(here.length);
      expect(faults(document.body)).toEqual([]);
      expect([...document.querySelectorAll('.markdown')].flatMap(disguises)).toEqual([]);
      expect(the('chat-title').querySelectorAll('img, b, svg, a')).toHaveLength(0);
      for (const link of document.querySelectorAll<HTMLElement>('.markdown a, .markdown svg, .markdown summary'))
        link.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }));
      await pass(0);
      expect(ran).not.toHaveBeenCalled();
    },
  );
});
