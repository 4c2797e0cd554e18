/** What the windows can ask of their host about documents. */

import type { Content } from '../bindings/Content';
import type { FileText } from '../bindings/FileText';
import type { TokenCount } from '../bindings/TokenCount';

export interface FilePlatform {
  /** Reads the text of a file and stores it, the same one once. It belongs to no message yet. Rejects what has no text, and says why. */
  addFile(bytes: Uint8Array, name: string): Promise<Extract<Content, { kind: 'file' }>>;
  /** Pastes what the system's clipboard holds where the focus is, where a web view lets no page do it. */
  paste(): Promise<void>;
  /** The names of the files in the system's clipboard, where a web view keeps them from pages. */
  clipboardFiles(): Promise<string[]>;
  /** The bytes of one of them, by its place in that list. Rejects what is no file. */
  clipboardFile(place: number): Promise<ArrayBuffer>;
  /** The stored text of a file, in its pages or lines. */
  fileText(attachment: string): Promise<FileText>;
  /** The tokens that this would take in a question to a model, or to the default model; pictures left out. */
  contentTokens(model: string | null, content: Content[]): Promise<TokenCount>;
}
