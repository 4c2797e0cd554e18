import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { DrawReply, DrawRequest } from './diagramFrame';
import { sendFrom, serveDiagramFrames } from '../testing/diagramFrames';

const frames = (): HTMLIFrameElement[] => [...document.querySelectorAll<HTMLIFrameElement>('iframe')];

/** A window's page that has not drawn yet. */
async function fresh(): Promise<(source: string) => Promise<string>> {
  vi.resetModules();
  const { drawInFrame } = await import('./diagramFrame');
  return (source) => drawInFrame(source, { theme: 'base' });
}

/** Requests that frames got, which reply as a test says. */
let asked: DrawRequest[] = [];
let reply: (request: DrawRequest) => Promise<DrawReply | null>;
let stop = (): void => {};

beforeEach(() => {
  asked = [];
  reply = async ({ nonce, source }) => ({ nonce, svg: `<svg>${source}</svg>` });
  stop = serveDiagramFrames(async (request) => {
    asked.push(request);
    return reply(request);
  });
});

afterEach(() => {
  stop();
  vi.useRealTimers();
  document.body.replaceChildren();
});

describe('the frame of diagrams', () => {
  it('is one for all, has no origin, and is not seen', async () => {
    const draw = await fresh();
    expect(await Promise.all(['a', 'b'].map(draw))).toEqual(['<svg>a</svg>', '<svg>b</svg>']);
    const [frame, ...others] = frames();
    expect(others).toEqual([]);
    expect(frame?.getAttribute('sandbox')).toBe('allow-scripts');
    expect(frame?.getAttribute('src')).toBe('/diagram.html');
    expect([frame?.style.visibility, frame?.inert]).toEqual(['hidden', true]);
  });

  it('gets the diagram and its look alone, with a nonce of its own', async () => {
    const draw = await fresh();
    for (const source of ['a', 'b']) await draw(source);
    expect(asked.map(({ nonce: _, ...rest }) => rest)).toEqual([
      { source: 'a', config: { theme: 'base' } },
      { source: 'b', config: { theme: 'base' } },
    ]);
    const [first, second] = asked.map(({ nonce }) => nonce);
    expect(first).toMatch(/^\d+(-\d+){3}$/);
    expect(first).not.toBe(second);
  });

  it('draws one after the other', async () => {
    const draw = await fresh();
    let free = (): void => {};
    reply = async ({ nonce }) => {
      await new Promise<void>((resolve) => (free = resolve));
      return { nonce, svg: '<svg/>' };
    };
    const drawings = [draw('a'), draw('b')];
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    free();
    await drawings[0];
    await vi.waitFor(() => expect(asked).toHaveLength(2));
    free();
    await drawings[1];
  });

  it('is heard alone, and with the nonce of the request alone', async () => {
    const draw = await fresh();
    reply = async () => null;
    const drawing = draw('a');
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    const nonce = asked[0]?.nonce ?? '';
    const [frame] = frames();
    if (!frame) throw new Error('there is no frame');
    dispatchEvent(new MessageEvent('message', { data: { nonce, svg: '<svg>of this page</svg>' }, source: window }));
    dispatchEvent(new MessageEvent('message', { data: { nonce, svg: '<svg>of nobody</svg>' } }));
    for (const data of [null, 'x', {}, { nonce: 1, svg: '' }, { nonce: 'other', svg: '<svg>late</svg>' }]) sendFrom(frame, data);
    sendFrom(frame, { nonce, svg: '<svg>right</svg>' });
    expect(await drawing).toBe('<svg>right</svg>');
  });

  it('passes on the reason of the library, and draws on', async () => {
    const draw = await fresh();
    reply = async ({ nonce }) => ({ nonce, error: 'Parse error on line 2' });
    await expect(draw('a')).rejects.toThrow('Parse error on line 2');
    reply = async ({ nonce }) => ({ nonce, svg: 'x'.repeat(4_000_001) });
    await expect(draw('b')).rejects.toThrow();
    const [frame] = frames();
    reply = async ({ nonce }) => ({ nonce, svg: '<svg/>' });
    expect(await draw('c')).toBe('<svg/>');
    expect(frames()).toEqual([frame]);
  });

  it('is replaced if it does not answer in time', async () => {
    vi.useFakeTimers();
    const draw = await fresh();
    reply = async () => null;
    const late = expect(draw('a')).rejects.toThrow('does not answer');
    await vi.advanceTimersByTimeAsync(19_000);
    const [before] = frames();
    expect(before).toBeDefined();
    await vi.advanceTimersByTimeAsync(1_001);
    await late;
    expect(frames()).toEqual([]);
    reply = async ({ nonce }) => ({ nonce, svg: '<svg/>' });
    const drawing = draw('b');
    await vi.advanceTimersByTimeAsync(100);
    expect(await drawing).toBe('<svg/>');
    expect(frames()[0]).not.toBe(before);
  });
});
