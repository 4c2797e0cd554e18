/** An unsent question: words, images, files. The host reads the images one by one while the user types on. */

import type { Content } from '../../bindings/Content';
import type { Excerpt } from '../../bindings/Excerpt';
import { isImage, LONGEST_FILE } from '../../shared/files';
import { attachmentsOf, textOf, words, type AttachmentContent } from '../../shared/messageParts';
import { moved, nameOf } from '../../images/droppedFiles';
import { t } from '../../locales';
import { errorText } from '../../locales/host';
import { asHostError, type Platform } from '../../host';

/** An image or a file of a draft, or what is to become one. */
export interface DraftItem {
  readonly key: number;
  /** The attachment, or the file that becomes one. */
  readonly kind: AttachmentContent['kind'];
  /** Its name for the user; empty without one. */
  readonly name: string;
  /** `null` until it was read, and if it cannot be. */
  readonly content: AttachmentContent | null;
  /** True if it is animated; a model sees the first frame. */
  readonly animated: boolean;
  /** Why it cannot be read. */
  readonly problem: string | null;
}

/** The pause in typing before the draft is stored. */
const STORE_DELAY = 300;
/** The longest time of typing without a pause before it is stored all the same: the page may end at any time. */
const STORE_LATEST = 2000;

/** Keys are never given twice, because images go from one draft to another. */
let nextKey = 1;

export class Draft {
  text = $state('');
  items = $state.raw<readonly DraftItem[]>([]);

  #reading: Promise<void> = Promise.resolve();
  #changed = false;
  /** Since when something is not stored. */
  #changedAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly platform: Pick<
      Platform,
      'addImage' | 'clipboardImage' | 'clipboardFiles' | 'clipboardFile' | 'addFile'
    >,
    parts: readonly Content[],
    /** The chat that its attachments are for; empty for a new one. */
    private readonly chat: () => string,
    /** Stores its content. */
    private readonly store: (parts: Content[]) => void,
  ) {
    this.text = textOf(parts);
    this.items = attachmentsOf(parts).map((content) =>
      this.#item(content.kind, content.kind === 'image' ? content.alt : content.name, content),
    );
  }

  /** Its images and files, as far as they were read. */
  get attachments(): AttachmentContent[] {
    return this.items.flatMap((item) => item.content ?? []);
  }

  /** True while an image is being read. */
  get reading(): boolean {
    return this.items.some((item) => item.content === null && item.problem === null);
  }

  /** True if an image could not be read. */
  get broken(): boolean {
    return this.items.some((item) => item.problem !== null);
  }

  get empty(): boolean {
    return this.text.trim() === '' && this.items.length === 0;
  }

  write(text: string): void {
    this.text = text;
    this.#storeLater();
  }

  /** Has files read into images and texts, which stand in the draft at once. */
  add(files: readonly File[]): void {
    for (const file of files) {
      const item = isImage(file) ? this.#item('image', nameOf(file), null) : this.#item('file', file.name, null);
      this.items = [...this.items, item];
      this.#reading = this.#reading.then(() => this.#read(item, file));
    }
  }

  /** Adds the image of the system's clipboard, if there is one of which the page was not told. */
  async addFromClipboard(): Promise<void> {
    // A clipboard that cannot be read has no image.
    const bytes = await this.platform.clipboardImage().catch(() => null);
    if (bytes && bytes.byteLength > 0) this.add([new File([bytes], 'image.png')]);
  }

  /** Adds the files that a file manager put into the system's clipboard and the page did not get. */
  async addCopiedFiles(): Promise<void> {
    const names = await this.platform.clipboardFiles().catch(() => []);
    for (const [place, name] of names.entries()) {
      try {
        this.add([new File([await this.platform.clipboardFile(place)], name)]);
      } catch (reason) {
        const item = this.#item('file', name, null);
        this.items = [...this.items, { ...item, problem: errorText(asHostError(reason)) }];
      }
    }
  }

  /** Has an attachment read by the host, which stands in the draft at once. */
  addFrom(
    kind: AttachmentContent['kind'],
    name: string,
    read: (chat: string) => Promise<AttachmentContent>,
  ): void {
    const item = this.#item(kind, name, null);
    this.items = [...this.items, item];
    this.#reading = this.#reading.then(() => this.#take(item, read));
  }

  /** Waits until every image was read. */
  async settled(): Promise<void> {
    while (this.reading) await this.#reading;
  }

  remove(key: number): void {
    this.items = this.items.filter((item) => item.key !== key);
    this.#storeLater();
  }

  /** Puts an image at another place among the others. */
  move(key: number, to: number): void {
    const from = this.items.findIndex((item) => item.key === key);
    if (from < 0 || from === to || to < 0 || to >= this.items.length) return;
    this.items = moved(this.items, from, to);
    this.#storeLater();
  }

  /** Says in words what an image shows. */
  describe(key: number, alt: string): void {
    this.#replace(key, (item) =>
      item.content?.kind === 'image' ? { ...item, name: alt, content: { ...item.content, alt } } : item,
    );
    this.#storeLater();
  }

  /** Chooses the part of a file that is meant. */
  choosePart(key: number, excerpt: Excerpt): void {
    this.#replace(key, (item) =>
      item.content?.kind === 'file' ? { ...item, content: { ...item.content, excerpt } } : item,
    );
    this.#storeLater();
  }

  /** Takes the images out and returns them. */
  takeImages(): readonly DraftItem[] {
    const items = this.items.filter((item) => item.kind === 'image');
    this.items = this.items.filter((item) => item.kind !== 'image');
    this.#storeLater();
    return items;
  }

  /** Puts words and images before what is there now. */
  putBack(text: string, items: readonly DraftItem[]): void {
    this.items = [...items, ...this.items];
    this.text = this.text && text ? `${text}\n${this.text}` : this.text || text;
    this.#storeLater();
  }

  /** Empties it without storing that: the caller has its content. */
  clear(): void {
    this.text = '';
    this.items = [];
    this.#changed = false;
    clearTimeout(this.#timer);
  }

  /** Stores it now, before the chat or the window is left. */
  flush(): void {
    clearTimeout(this.#timer);
    if (!this.#changed) return;
    this.#changed = false;
    this.store([...this.attachments, ...words(this.text)]);
  }

  #item(kind: AttachmentContent['kind'], name: string, content: AttachmentContent | null): DraftItem {
    return { key: nextKey++, kind, name, content, animated: false, problem: null };
  }

  async #read(item: DraftItem, file: File): Promise<void> {
    // It may have been removed meanwhile.
    if (!this.items.some((other) => other.key === item.key)) return;
    try {
      if (file.size > LONGEST_FILE)
        throw { code: 'image_broken', message: t(item.kind === 'image' ? 'image.tooLong' : 'file.tooLarge') };
      if (item.kind === 'file') {
        const content = await this.platform.addFile(new Uint8Array(await file.arrayBuffer()), file.name, this.chat());
        this.#replace(item.key, (now) => ({ ...now, content }));
        this.#storeLater();
        return;
      }
      const { animated, ...image } = await this.platform.addImage(new Uint8Array(await file.arrayBuffer()), this.chat());
      this.#replace(item.key, (now) => ({ ...now, animated, content: { kind: 'image', ...image, alt: now.name } }));
      this.#storeLater();
    } catch (reason) {
      this.#replace(item.key, (now) => ({ ...now, problem: errorText(asHostError(reason)) }));
    }
  }

  async #take(item: DraftItem, read: (chat: string) => Promise<AttachmentContent>): Promise<void> {
    if (!this.items.some((other) => other.key === item.key)) return;
    try {
      const content = await read(this.chat());
      const name = content.kind === 'image' ? content.alt : content.name;
      this.#replace(item.key, (now) => ({ ...now, kind: content.kind, name, content }));
      this.#storeLater();
    } catch (reason) {
      this.#replace(item.key, (now) => ({ ...now, problem: errorText(asHostError(reason)) }));
    }
  }

  #replace(key: number, change: (item: DraftItem) => DraftItem): void {
    this.items = this.items.map((item) => (item.key === key ? change(item) : item));
  }

  #storeLater(): void {
    if (!this.#changed) this.#changedAt = Date.now();
    this.#changed = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => this.flush(),
      Math.min(STORE_DELAY, Math.max(0, this.#changedAt + STORE_LATEST - Date.now())),
    );
  }
}
