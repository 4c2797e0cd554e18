/** The fake host's images. It reads the sizes of PNG files alone, and draws an image of its own for one it was never given. */

import type { ImageDetail } from '../../bindings/ImageDetail';
import type { Platform } from '../types';
import { modelOf, pause, refusal, type Shared } from './shared';

const PNG = [0x89, 0x50, 0x4e, 0x47];
const MOST: Record<ImageDetail, number> = { quick: 512, normal: 2048, full: 16_384 };

/** The image in place of one that was never given: a hill, a sun, a sky of the color of its name. */
function drawn(name: string): string {
  const hue = [...name].reduce((sum, letter) => sum + letter.charCodeAt(0) * 37, 0) % 360;
  return `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 90" preserveAspectRatio="xMidYMid slice" width="1280" height="720"><rect width="160" height="90" fill="hsl(${hue} 45% 78%)"/><circle cx="118" cy="26" r="11" fill="hsl(${(hue + 40) % 360} 80% 88%)"/><path d="M0 74 38 40l26 24 30-36 66 52v10H0z" fill="hsl(${hue} 35% 45%)"/><path d="M0 82 52 60l40 18 68-22v34H0z" fill="hsl(${hue} 38% 32%)"/></svg>`,
  )}`;
}

export const imageControls = () => ({
  /** True if the images that are added are animated. */
  animated: false,
  /** The image in the clipboard, which the web view does not show to pages. */
  clipboard: new Uint8Array(),
  /** The files in the clipboard, which the web view does not show to pages; a folder has no bytes. */
  copiedFiles: [] as { name: string; bytes: Uint8Array<ArrayBuffer> | null }[],
  /** The images that were dragged out of the window. */
  dragged: [] as string[],
  images: new Map<string, { bytes: number; url: string }>(),
});

export const imageBytes = ({ images }: ReturnType<typeof imageControls>): number =>
  [...images.values()].reduce((sum, { bytes }) => sum + bytes, 0);

export function images(host: Shared & ReturnType<typeof imageControls>) {
  return {
    async addImage(bytes) {
      if (host.readingTime > 0) await pause(host.readingTime);
      if (bytes.length < 24 || PNG.some((byte, index) => bytes[index] !== byte)) {
        throw refusal('image_broken', 'this file cannot be shown to a model; save it as PNG or JPEG', {}, 'image_kind');
      }
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      const attachment = hashOf(bytes);
      // The page of the tests has no addresses for bytes in memory.
      const url = 'createObjectURL' in URL ? URL.createObjectURL(new Blob([new Uint8Array(bytes)], { type: 'image/png' })) : drawn(attachment);
      host.images.set(attachment, { bytes: bytes.length, url });
      return { attachment, media_type: 'image/png', width: view.getUint32(16), height: view.getUint32(20), animated: host.animated };
    },
    /** A browser pastes by itself. */
    async paste() {},
    async clipboardFiles() {
      return host.copiedFiles.map(({ name }) => name);
    },
    async clipboardFile(place) {
      const file = host.copiedFiles[place];
      if (!file?.bytes) throw refusal('bad_request', `${file?.name} is no file; open the folder and choose files in it`, {}, 'file_not_opened');
      return file.bytes.slice().buffer;
    },
    async clipboardImage() {
      return host.clipboard.slice().buffer;
    },
    imageUrl: (attachment: string) => host.images.get(attachment)?.url ?? drawn(attachment),
    async imageTokens(reference, detail, sizes) {
      const model = modelOf(host, reference);
      return model?.supports_vision ? sizes.map(([width, height]) => Math.min(MOST[detail], Math.ceil(width / 32) * Math.ceil(height / 32))) : null;
    },
    async dragImage(attachment, name) {
      host.dragged.push(`${attachment} ${name}`);
    },
    async imageStorage() {
      return imageBytes(host);
    },
  } satisfies Partial<Platform>;
}

/** A hash that is as long as the real one. */
export function hashOf(bytes: Uint8Array): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, '0').repeat(4);
}
