/** Collections of documents: folders and files that chats ask. */

import { createContext } from 'svelte';

import type { CollectionFile } from '../bindings/CollectionFile';
import type { CollectionView } from '../bindings/CollectionView';
import type { EmbeddingProgress } from '../bindings/EmbeddingProgress';
import type { QuotedPassage } from '../bindings/QuotedPassage';
import type { PassagePage } from '../bindings/PassagePage';
import type { PassageText } from '../bindings/PassageText';
import type { RerankingView } from '../bindings/RerankingView';
import { asHostError, type HostError, type Platform, type Unsubscribe } from '../host';
import type { Toasts } from '../design/toasts.svelte';
import { t } from '../locales';
import { plainName } from '../shared/displayNames';
import type { Undo } from './undo.svelte';

/** The time between two readings of the list while files are read: each file announces a change. */
const REST = 250;

export class Collections {
  /** The oldest first; `null` until they were read. */
  list = $state.raw<readonly CollectionView[] | null>(null);
  /** The search by meaning; `null` until it was read. */
  embeddings = $state.raw<EmbeddingProgress | null>(null);
  /** The order of found passages; `null` until it was read. */
  reranking = $state.raw<RerankingView | null>(null);
  /** The reason why they could not be read the last time. */
  problem = $state.raw<HostError | null>(null);

  /** The number of the newest request for the list: an older one that ends later is not shown. */
  #asked = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
    private readonly undo: Undo,
  ) {}

  /** Lists the collections and keeps the list current. */
  async open(): Promise<Unsubscribe> {
    const unsubscribe = await this.platform.onCollectionsChanged(() => this.#refreshSoon());
    await this.refresh();
    return unsubscribe;
  }

  async refresh(): Promise<void> {
    const asked = (this.#asked += 1);
    try {
      const { collections, embeddings, reranking } = await this.platform.collections();
      if (asked !== this.#asked) return;
      this.list = collections;
      this.embeddings = embeddings;
      this.reranking = reranking;
      this.problem = null;
    } catch (reason) {
      if (asked === this.#asked) this.problem = asHostError(reason);
    }
  }

  find(id: string): CollectionView | null {
    return this.list?.find((collection) => collection.id === id) ?? null;
  }

  /** The display name of a collection; a general one if it is gone. */
  nameOf(id: string): string {
    const found = this.find(id);
    return found ? plainName(found.name) : t('documents.gone');
  }

  /** Lets the user choose a folder or files in the system's dialog; the new collection, `null` if they chose none. */
  async add(kind: 'folder' | 'files'): Promise<string | null> {
    let added: string | null = null;
    const choose = (): Promise<string | null> =>
      kind === 'folder' ? this.platform.chooseCollectionFolder() : this.platform.chooseCollectionFiles();
    await this.toasts.attempt(async () => void (added = await choose()), 'documents');
    if (added !== null) await this.refresh();
    return added;
  }

  /** Has the user's own chats read as a collection; true on success. */
  addOwnChats(): Promise<boolean> {
    return this.#change(() => this.platform.addOwnChats());
  }

  async rename(id: string, name: string): Promise<void> {
    const before = this.find(id)?.name;
    const wanted = plainName(name).trim();
    if (wanted === '' || before === undefined || wanted === before) return;
    const rename = (to: string) => this.#change(() => this.platform.renameCollection(id, to));
    if (await rename(wanted)) this.undo.push(async () => void (await rename(before)));
  }

  async pause(id: string, paused: boolean): Promise<void> {
    await this.#change(() => this.platform.pauseCollection(id, paused));
  }

  /** Looks through the folder of a collection once more. */
  async update(id: string): Promise<void> {
    await this.#change(() => this.platform.updateCollection(id));
  }

  /** Has a model of this computer read the images of a collection. */
  async readImages(id: string, model: string): Promise<void> {
    await this.#change(() => this.platform.readCollectionImages(id, model));
  }

  /** Stops reading images; those that were read stay. */
  async stopImages(id: string): Promise<void> {
    await this.#change(() => this.platform.stopCollectionImages(id));
  }

  /** Forgets a collection and all that was read of it; true on success. */
  remove(id: string): Promise<boolean> {
    return this.#change(() => this.platform.removeCollection(id));
  }

  /** The files of a collection, in the order of their paths. */
  files(id: string): Promise<CollectionFile[]> {
    return this.platform.collectionFiles(id);
  }

  /** The file of a passage with the passage in it. */
  openPassage(passage: QuotedPassage): Promise<PassageText> {
    return this.platform.openPassage(passage);
  }

  /** A page of the file of a passage as an image of this width, in pixels. */
  passagePage(passage: QuotedPassage, page: number, width: number): Promise<PassagePage> {
    return this.platform.passagePage(passage, page, width);
  }

  async #change(call: () => Promise<void>): Promise<boolean> {
    const done = await this.toasts.attempt(call, 'documents');
    await this.refresh();
    return done;
  }

  /** Reads the list at most so often; the last change is always seen. */
  #refreshSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.refresh();
    }, REST);
  }
}

/** The collections of documents. */
export const [useCollections, provideCollections] = createContext<Collections>();
