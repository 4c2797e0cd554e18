import { flushSync, mount, unmount } from 'svelte';
import { beforeAll, describe, expect, it, vi } from 'vitest';

import CodeBlock from './CodeBlock.svelte';
import { drawDiagram, isDiagram, LONGEST_DIAGRAM, type Drawing } from './diagram';
import { serveDiagramFrames } from '../testing/diagramFrames';

const KINDS: Record<string, string> = {
  flowchart: 'graph TD\n  A[Question] -->|asks| B{Model}\n  B --> C((Answer))',
  sequence: 'sequenceDiagram\n  A->>B: hello\n  Note over A: thinks',
  class: 'classDiagram\n  class Room {\n    +name\n  }\n  Room <|-- Kitchen',
  state: 'stateDiagram-v2\n  [*] --> A',
  entities: 'erDiagram\n  CHAT ||--o{ MESSAGE : has',
  pie: 'pie title Shares\n  "a" : 3\n  "b" : 4',
  git: 'gitGraph\n  commit\n  branch x\n  commit',
  journey: 'journey\n  title Day\n  section A\n    Do: 3: me',
};

/** Words that would run or load if anything that a diagram says were taken as it is written. */
const HOSTILE: readonly string[] = [
  'graph TD\n  A["<img src=http://example.org/x onerror=alert(1)>"] --> B["<script>alert(1)</script>"]',
  'graph TD\n  A --> B\n  click A href "javascript:alert(1)"\n  click B call alert(1)',
  'graph TD\n  A --> B\n  click A "http://example.org/x" _self',
  '%%{init: {"securityLevel": "loose", "htmlLabels": true, "flowchart": {"htmlLabels": true}}}%%\ngraph TD\n  A["<iframe src=http://example.org>"] --> B\n  click A call alert(1)',
  '%%{init: {"themeCSS": "@import url(http://example.org/x.css); * { background: url(http://example.org/y) }"}}%%\ngraph TD\n  A --> B',
  '%%{init: {"fontFamily": "x; } @import url(http://example.org/z)", "themeVariables": {"primaryColor": "url(http://example.org/c)"}}}%%\ngraph TD\n  A --> B',
  '---\nconfig:\n  securityLevel: loose\n  themeCSS: "svg { background: url(http://example.org) }"\n---\ngraph TD\n  A["<b onclick=alert(1)>x</b>"] --> B',
  'graph TD\n  A --> B\n  classDef bad fill:url(http://example.org/f),stroke:#f00\n  class A bad\n  style B fill:url(javascript:alert(1))',
  'sequenceDiagram\n  participant A as <img src=x onerror=alert(1)>\n  A->>B: <svg onload=alert(1)>\n  link A: Out @ http://example.org\n  links A: {"x": "javascript:alert(1)"}',
  'classDiagram\n  class A["<img src=x onerror=alert(1)>"]\n  click A href "javascript:alert(1)" "x"\n  callback A "alert"',
  'pie title <script>alert(1)</script>\n  "<img src=x onerror=alert(1)>" : 3',
  'gantt\n  title <img src=x onerror=alert(1)>\n  section <script>\n  A :a1, 2020-01-01, 3d\n  click a1 href "javascript:alert(1)"\n  click a1 call alert(1)',
  'stateDiagram-v2\n  [*] --> A\n  A: <img src=http://example.org/s onerror=alert(1)>',
  'graph TD\n  A@{ img: "http://example.org/i.png", label: "x", h: 60 } --> B@{ icon: "x:y" }',
];

beforeAll(() => {
  serveDiagramFrames();
  // jsdom lays nothing out, and has no colors of a system.
  Object.assign(SVGElement.prototype, {
    getBBox: () => ({ x: 0, y: 0, width: 80, height: 20 }),
    getComputedTextLength: () => 80,
  });
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener() {}, removeEventListener() {} }));
  document.documentElement.style.cssText =
    '--text: #111111; --soft: #666666; --accent: #3d6b5f; --accent-soft: #e3eee9; --sunk: #f5f5f4; --hover: #eae8e4; --side: #f4f3f1';
});

function svgOf(drawing: Drawing): SVGSVGElement | null {
  if (drawing.kind === 'failed') return null;
  const text = decodeURIComponent(drawing.url.replace('data:image/svg+xml;charset=utf-8,', ''));
  const { documentElement } = new DOMParser().parseFromString(text, 'image/svg+xml');
  return documentElement instanceof SVGSVGElement ? documentElement : null;
}

describe('a diagram', () => {
  it('is a code block called mermaid', () => {
    expect([isDiagram('mermaid'), isDiagram('Mermaid'), isDiagram('text'), isDiagram('')]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it.each(Object.entries(KINDS))('is drawn as an image: %s', async (_, source) => {
    const drawing = await drawDiagram(source);
    expect(drawing).toMatchObject({ kind: 'drawn' });
    const svg = svgOf(drawing);
    expect(svg?.querySelectorAll('path, rect, line, circle').length).toBeGreaterThan(0);
    expect(svg?.querySelector('parsererror, foreignObject')).toBeNull();
    expect(svg?.querySelectorAll('text').length).toBeGreaterThan(0);
  });

  it.each(HOSTILE)('holds nothing that runs or loads: %#', async (source) => {
    const fetched = vi.fn();
    vi.stubGlobal('alert', fetched);
    const svg = svgOf(await drawDiagram(source));
    expect(fetched).not.toHaveBeenCalled();
    // The library's draft is gone from the page.
    expect(document.querySelectorAll('svg, [id^=ddiagram]')).toHaveLength(0);
    if (!svg) return;
    for (const element of svg.querySelectorAll('*')) {
      expect(['script', 'foreignobject', 'iframe', 'a', 'use', 'set', 'animate', 'feimage']).not.toContain(
        element.localName.toLowerCase(),
      );
      for (const { name, value } of element.attributes) {
        expect(name).not.toMatch(/^on/i);
        if (/href|src/i.test(name)) expect(value).toMatch(/^(?:#|data:image\/)/);
      }
    }
  });

  it('says in a sentence why it is not drawn', async () => {
    expect(await drawDiagram('graph TD\n  A[')).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('line 2'),
    });
    expect(await drawDiagram('not a diagram')).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('isn’t supported'),
    });
    const many = `graph TD\n${Array.from({ length: 400 }, (_, n) => `n${n} --> m${n}`).join('\n')}`;
    expect(await drawDiagram(many)).toMatchObject({ kind: 'failed', reason: expect.stringContaining('too large') });
    expect(await drawDiagram(`graph TD\n${'A --> B\n'.repeat(LONGEST_DIAGRAM / 8)}`)).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('too large'),
    });
  });

  it('is drawn when it is asked for, and its source comes back', async () => {
    const block = mount(CodeBlock, {
      target: document.body,
      props: { label: 'mermaid', code: KINDS.pie ?? '', html: null },
    });
    const the = (id: string) => document.querySelector<HTMLElement>(`[data-testid="${id}"]`);
    const press = () => {
      the('draw-diagram')?.click();
      flushSync();
    };
    expect(the('diagram')).toBeNull();
    press();
    await vi.waitFor(() => expect(the('diagram')?.getAttribute('src')).toMatch(/^data:image\/svg/));
    expect(document.querySelector('pre')).toBeNull();
    press();
    expect(the('diagram')).toBeNull();
    expect(document.querySelector('pre')?.textContent).toBe(KINDS.pie);
    await unmount(block);

    const broken = mount(CodeBlock, {
      target: document.body,
      props: { label: 'mermaid', code: 'graph TD\n  A[', html: null },
    });
    press();
    await vi.waitFor(() => expect(the('diagram-failed')?.textContent).toContain('line 2'));
    expect(document.querySelector('pre')?.textContent).toContain('A[');
    await unmount(broken);
  });
});
