/** The fake host's documents: it reads plain text alone, of which four letters are a token. */

import type { Content } from '../../bindings/Content';
import type { FileText } from '../../bindings/FileText';
import type { Platform } from '../types';
import { hashOf } from './images';
import { modelOf, pause, refusal, type Shared } from './shared';

const PAGE_BREAK = '\f';
const TYPES: Record<string, string> = { md: 'text/markdown', csv: 'text/csv', html: 'text/html', pdf: 'application/pdf' };

export const fileControls = () => ({
  texts: new Map<string, FileText>(),
  /** The number of calls of `contentTokens`. */
  counted: 0,
});

export function textOfFile({ texts }: ReturnType<typeof fileControls>, attachment: string): FileText {
  const found = texts.get(attachment);
  if (!found) throw refusal('not_found', 'the file is gone', {}, 'file_gone');
  return found;
}

export function files(host: Shared & ReturnType<typeof fileControls>) {
  const letters = (part: Content): number => {
    if (part.kind === 'text') return part.text.length;
    if (part.kind !== 'file') return 0;
    const { attachment, excerpt } = part;
    const pieces = host.texts.get(attachment)?.pieces ?? [];
    return pieces.slice(excerpt ? excerpt.first - 1 : 0, excerpt?.last).reduce((sum, piece) => sum + piece.length, 0);
  };
  return {
    async addFile(bytes, name) {
      if (host.readingTime > 0) await pause(host.readingTime);
      if (bytes.length === 0 || bytes.includes(0)) {
        throw refusal('file_broken', 'this kind of file cannot be read; save it as PDF or text', {}, 'file_kind');
      }
      const text = new TextDecoder().decode(bytes);
      const unit = text.includes(PAGE_BREAK) ? 'pages' : 'lines';
      const pieces = unit === 'pages' ? text.split(PAGE_BREAK) : (text.match(/[^\n]*\n|[^\n]+/g) ?? []);
      const attachment = hashOf(bytes);
      host.texts.set(attachment, { unit, pieces });
      const media_type = TYPES[name.split('.').at(-1) ?? ''] ?? 'text/plain';
      return { kind: 'file', attachment, media_type, name, bytes: bytes.length, excerpt: { unit, first: 1, last: pieces.length, of: pieces.length } };
    },
    async fileText(attachment) {
      return textOfFile(host, attachment);
    },
    async contentTokens(reference, content) {
      host.counted += 1;
      const model = modelOf(host, reference);
      return { tokens: Math.ceil(content.reduce((sum, part) => sum + letters(part), 0) / 4), estimated: model === null };
    },
  } satisfies Partial<Platform>;
}
