/** The pictures of the fake host. It reads the sizes of PNG files alone, and draws a picture of its own for what it was never given. */

import type { AddedPicture } from '../bindings/AddedPicture';
import type { Error as HostError } from '../bindings/Error';
import type { ImageDetail } from '../bindings/ImageDetail';
import { FakeAppUpdate } from './fakeAppUpdate';
import type { PicturePlatform } from './pictures';

const PNG = [0x89, 0x50, 0x4e, 0x47];
const MOST: Record<ImageDetail, number> = { quick: 512, normal: 2048, full: 16_384 };

/** What is drawn for a picture that was never given: a hill, a sun, a sky of the colour of its name. */
function drawn(name: string): string {
  const hue = [...name].reduce((sum, letter) => sum + letter.charCodeAt(0) * 37, 0) % 360;
  return `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 90" preserveAspectRatio="xMidYMid slice" width="1280" height="720"><rect width="160" height="90" fill="hsl(${hue} 45% 78%)"/><circle cx="118" cy="26" r="11" fill="hsl(${(hue + 40) % 360} 80% 88%)"/><path d="M0 74 38 40l26 24 30-36 66 52v10H0z" fill="hsl(${hue} 35% 45%)"/><path d="M0 82 52 60l40 18 68-22v34H0z" fill="hsl(${hue} 38% 32%)"/></svg>`,
  )}`;
}

export class FakePictures extends FakeAppUpdate implements PicturePlatform {
  /** How long it takes to read a picture, in milliseconds. */
  readingTime = 0;
  /** Whether the pictures that are added move. */
  animated = false;
  /** The picture in the clipboard, of which the web view tells nothing. */
  clipboard = new Uint8Array();
  /** What was dragged out of the window. */
  readonly dragged: string[] = [];
  readonly #pictures = new Map<string, { bytes: number; url: string }>();

  async addPicture(bytes: Uint8Array): Promise<AddedPicture> {
    if (this.readingTime > 0) await new Promise((resolve) => setTimeout(resolve, this.readingTime));
    if (bytes.length < 24 || PNG.some((byte, index) => bytes[index] !== byte)) {
      throw { code: 'picture_broken', message: 'this file cannot be shown to a model; save it as PNG or JPEG' } satisfies HostError;
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const attachment = hashOf(bytes);
    // Not in the test's page, which has no addresses for what is in memory.
    const url = 'createObjectURL' in URL ? URL.createObjectURL(new Blob([new Uint8Array(bytes)], { type: 'image/png' })) : drawn(attachment);
    this.#pictures.set(attachment, { bytes: bytes.length, url });
    return { attachment, media_type: 'image/png', width: view.getUint32(16), height: view.getUint32(20), animated: this.animated };
  }

  /** The files in the clipboard, of which the web view tells nothing; a folder has no bytes. */
  copiedFiles: { name: string; bytes: Uint8Array<ArrayBuffer> | null }[] = [];

  /** Browsers of people who develop Ponder paste themselves. */
  async paste(): Promise<void> {}

  async clipboardFiles(): Promise<string[]> {
    return this.copiedFiles.map(({ name }) => name);
  }
  async clipboardFile(place: number): Promise<ArrayBuffer> {
    const file = this.copiedFiles[place];
    if (!file?.bytes) throw { code: 'bad_request', message: `${file?.name} is no file; open the folder and choose files in it` };
    return file.bytes.slice().buffer;
  }

  async clipboardPicture(): Promise<ArrayBuffer> {
    return this.clipboard.slice().buffer;
  }

  pictureUrl(attachment: string): string {
    return this.#pictures.get(attachment)?.url ?? drawn(attachment);
  }

  async pictureTokens(model: string | null, detail: ImageDetail, sizes: [number, number][]): Promise<number[] | null> {
    const found = this.local.find(({ reference }) => reference === (model ?? this.app.default_model));
    if (!found && !model?.startsWith('endpoint:')) throw { code: 'model_not_found', message: `There is no model ${model}.` } satisfies HostError;
    return found?.sees ? sizes.map(([width, height]) => Math.min(MOST[detail], Math.ceil(width / 32) * Math.ceil(height / 32))) : null;
  }

  async dragPicture(attachment: string, name: string): Promise<void> {
    this.dragged.push(`${attachment} ${name}`);
  }

  async pictureStorage(): Promise<number> {
    return [...this.#pictures.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }
}

/** A hash that is as long as the real one. */
export function hashOf(bytes: Uint8Array): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, '0').repeat(4);
}
