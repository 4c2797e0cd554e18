/** The fake host's preview: its addresses hold the code themselves. */

import type { Platform } from '../types';
import { refusal } from './shared';

/** The longest code that the host takes, in characters. */
const LONGEST = 4 << 20;

export const previewControls = () => ({
  /** The code that the preview shows; `null` if it is closed. */
  preview: null as { code: string; drawing: boolean } | null,
  /** The number of previews so far. */
  previews: 0,
});

export function previews(host: ReturnType<typeof previewControls>) {
  return {
    async showPreview(code, drawing) {
      if (code.length > LONGEST) throw refusal('bad_request', 'this is too long for a preview');
      host.preview = { code, drawing };
      host.previews += 1;
      return `data:text/html;charset=utf-8,${encodeURIComponent(`<!doctype html><!-- ${host.previews} -->${code}`)}`;
    },
    async closePreview() {
      const was = host.preview !== null;
      host.preview = null;
      return was;
    },
  } satisfies Partial<Platform>;
}
