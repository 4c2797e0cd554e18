/** The script of the frame's page: it draws what the app's page asks for, and knows nothing of the app. */

import mermaid from 'mermaid';

import type { DrawReply, DrawRequest } from './diagramFrame';

let drawn = 0;

/** Draws a diagram. */
export async function draw({ nonce, source, config }: DrawRequest): Promise<DrawReply> {
  try {
    mermaid.initialize(config);
    const { svg } = await mermaid.render(`diagram-${++drawn}`, source);
    return { nonce, svg };
  } catch (error) {
    return { nonce, error: error instanceof Error ? error.message : String(error) };
  }
}

addEventListener('message', (event: MessageEvent<DrawRequest>) => {
  // In a page of its own, which is no frame, it would answer itself.
  if (event.source !== parent || parent === window) return;
  void draw(event.data).then((reply) => parent.postMessage(reply, '*'));
});
