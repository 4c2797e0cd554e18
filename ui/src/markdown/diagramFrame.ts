/**
 * The frame in which mermaid draws: a page of the app in a sandbox, whose origin is nobody's. It reads nothing of this
 * page and calls no command: Tauri takes no call without a key, which it gives to the page of the window alone.
 */

import type { MermaidConfig } from 'mermaid';

/** A diagram to draw. The reply repeats the nonce. */
export interface DrawRequest {
  nonce: string;
  source: string;
  config: MermaidConfig;
}

/** A drawing as the library made it, or the reason why there is none. */
export type DrawReply = { nonce: string; svg: string } | { nonce: string; error: string };

/** The longest drawing that is looked at, in characters. */
const LONGEST_DRAWING = 4_000_000;
/** The longest wait for the frame's page and for a drawing, in milliseconds. */
const LONGEST_WAIT = 20_000;

/** The frame, once it is needed; one is enough, because drawings take turns. */
let frame: HTMLIFrameElement | null = null;
/** The end of the drawing that was asked for last. */
let last: Promise<unknown> = Promise.resolve();

/** The library's reason for drawing nothing. */
class DrawingError extends Error {}

/** Draws in the frame; rejects with the library's reason, or because the frame does not answer. */
export function drawInFrame(source: string, config: MermaidConfig): Promise<string> {
  const drawing = last.then(() => draw(source, config));
  last = drawing.catch(() => {});
  return drawing;
}

async function draw(source: string, config: MermaidConfig): Promise<string> {
  try {
    const page = (frame ?? (await open())).contentWindow;
    if (!page) throw new Error('the frame is gone');
    const nonce = crypto.getRandomValues(new Uint32Array(4)).join('-');
    const replied = replyOf(page, nonce);
    // The frame's origin is none, which no other target fits.
    page.postMessage({ nonce, source, config } satisfies DrawRequest, '*');
    const reply = await replied;
    if ('svg' in reply) return reply.svg;
    throw new DrawingError(reply.error);
  } catch (error) {
    // A frame that does not answer may be busy for ever; the next drawing gets another one.
    if (!(error instanceof DrawingError)) {
      frame?.remove();
      frame = null;
    }
    throw error;
  }
}

async function open(): Promise<HTMLIFrameElement> {
  const element = document.createElement('iframe');
  frame = element;
  // Without `allow-same-origin` its origin is nobody's.
  element.setAttribute('sandbox', 'allow-scripts');
  element.dataset.testid = 'diagram-frame';
  element.inert = true;
  // Invisible, but laid out: the library measures its texts.
  element.style.cssText =
    'position: fixed; left: 0; top: 0; width: 1280px; height: 800px; border: 0; visibility: hidden';
  element.src = '/diagram.html';
  const loaded = new Promise<void>((resolve) => {
    element.addEventListener('load', () => resolve(), { once: true });
  });
  document.body.append(element);
  await inTime(loaded);
  return element;
}

/** The reply with this nonce from this page. */
function replyOf(page: Window, nonce: string): Promise<DrawReply> {
  let listener = (_: MessageEvent<unknown>): void => {};
  const replied = new Promise<DrawReply>((resolve) => {
    listener = ({ source, data }) => {
      const reply = source === page ? asReply(data) : null;
      if (reply?.nonce === nonce) resolve(reply);
    };
    addEventListener('message', listener);
  });
  return inTime(replied).finally(() => removeEventListener('message', listener));
}

/** A reply of the frame's page, which is trusted in nothing; `null` for anything else. */
function asReply(data: unknown): DrawReply | null {
  if (typeof data !== 'object' || data === null || !('nonce' in data) || typeof data.nonce !== 'string') return null;
  const { nonce } = data;
  if ('svg' in data && typeof data.svg === 'string' && data.svg.length <= LONGEST_DRAWING) return { nonce, svg: data.svg };
  return { nonce, error: 'error' in data && typeof data.error === 'string' ? data.error : '' };
}

function inTime<T>(promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the frame does not answer')), LONGEST_WAIT);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
