/** What the windows can ask of their host about pictures. */

import type { AddedPicture } from '../bindings/AddedPicture';
import type { ImageDetail } from '../bindings/ImageDetail';

export interface PicturePlatform {
  /** Stores a picture, the same one once. It belongs to no message yet. Rejects what is no picture, and says why. */
  addPicture(bytes: Uint8Array): Promise<AddedPicture>;
  /** The file of the picture in the system's clipboard, where a web view tells pages of texts alone; empty if there is none. */
  clipboardPicture(): Promise<ArrayBuffer>;
  /** Where a page finds a stored picture: small, for a list, or whole. Always a format that web views show. */
  pictureUrl(attachment: string, size: 'preview' | 'whole'): string;
  /** The tokens that a picture of each of these sizes (width, height) takes; `null` if the model cannot see or nobody can say. */
  pictureTokens(model: string | null, detail: ImageDetail, sizes: [number, number][]): Promise<number[] | null>;
  /** Begins to drag a picture out of the window, as a file of this name, while a button of the mouse is pressed. */
  dragPicture(attachment: string, name: string): Promise<void>;
  /** What the pictures of all chats take on the disk, in bytes. */
  pictureStorage(): Promise<number>;
}
