/** The documents of the fake host: it reads plain text alone, of which four letters are a token. */

import type { Content } from '../bindings/Content';
import type { Error as HostError } from '../bindings/Error';
import type { FileText } from '../bindings/FileText';
import type { TokenCount } from '../bindings/TokenCount';
import type { FilePlatform } from './files';
import { FakePictures, hashOf } from './fakePictures';

const PAGE_BREAK = '\f';
const TYPES: Record<string, string> = { md: 'text/markdown', csv: 'text/csv', html: 'text/html', pdf: 'application/pdf' };

export class FakeFiles extends FakePictures implements FilePlatform {
  readonly #texts = new Map<string, FileText>();
  /** How often tokens were counted. */
  counted = 0;

  async addFile(bytes: Uint8Array, name: string): Promise<Extract<Content, { kind: 'file' }>> {
    if (this.readingTime > 0) await new Promise((resolve) => setTimeout(resolve, this.readingTime));
    if (bytes.length === 0 || bytes.includes(0)) {
      throw { code: 'file_broken', message: 'this kind of file cannot be read; save it as PDF or text' } satisfies HostError;
    }
    const text = new TextDecoder().decode(bytes);
    const unit = text.includes(PAGE_BREAK) ? 'pages' : 'lines';
    const pieces = unit === 'pages' ? text.split(PAGE_BREAK) : (text.match(/[^\n]*\n|[^\n]+/g) ?? []);
    const attachment = hashOf(bytes);
    this.#texts.set(attachment, { unit, pieces });
    const media_type = TYPES[name.split('.').at(-1) ?? ''] ?? 'text/plain';
    return { kind: 'file', attachment, media_type, name, bytes: bytes.length, excerpt: { unit, first: 1, last: pieces.length, of: pieces.length } };
  }

  async fileText(attachment: string): Promise<FileText> {
    const found = this.#texts.get(attachment);
    if (!found) throw { code: 'not_found', message: 'the file is gone' } satisfies HostError;
    return found;
  }

  async contentTokens(model: string | null, content: Content[]): Promise<TokenCount> {
    this.counted += 1;
    const found = this.local.find(({ reference }) => reference === (model ?? this.app.default_model));
    if (!found && !model?.startsWith('endpoint:')) throw { code: 'model_not_found', message: `There is no model ${model}.` } satisfies HostError;
    const letters = content.reduce((sum, part) => sum + (part.kind === 'text' ? part.text.length : part.kind === 'file' ? this.#letters(part) : 0), 0);
    return { tokens: Math.ceil(letters / 4), estimated: !found };
  }

  #letters({ attachment, excerpt }: Extract<Content, { kind: 'file' }>): number {
    const pieces = this.#texts.get(attachment)?.pieces ?? [];
    return pieces.slice(excerpt ? excerpt.first - 1 : 0, excerpt?.last).reduce((sum, piece) => sum + piece.length, 0);
  }
}
