/** The page of the frame that draws diagrams, for jsdom, which loads no page into a frame. */

import type { DrawReply, DrawRequest } from '../markdown/diagramFrame';
import { draw } from '../markdown/diagramPage';

const isRequest = (data: unknown): data is DrawRequest => typeof data === 'object' && data !== null && 'nonce' in data;

/** Sends a message to the window's page, as the page of this frame does. */
export function sendFrom(frame: HTMLIFrameElement, data: unknown): void {
  dispatchEvent(new MessageEvent('message', { data, source: frame.contentWindow }));
}

/** Every frame that is added from now on replies like this, until the returned function is called. */
export function serveDiagramFrames(
  reply: (request: DrawRequest) => Promise<DrawReply | null> = draw,
): () => void {
  const observer = new MutationObserver((records) => {
    for (const frame of records.flatMap(({ addedNodes }) => [...addedNodes])) {
      if (!(frame instanceof HTMLIFrameElement)) continue;
      frame.contentWindow?.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
        if (!isRequest(data)) return;
        void reply(data).then((drawn) => drawn && sendFrom(frame, drawn));
      });
      frame.dispatchEvent(new Event('load'));
    }
  });
  observer.observe(document.body, { childList: true });
  return () => observer.disconnect();
}
