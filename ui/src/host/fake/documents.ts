/** The fake host's collections of documents. It reads no file: examples and tests say what is in them. */

import type { CollectionFile } from '../../bindings/CollectionFile';
import type { CollectionSource } from '../../bindings/CollectionSource';
import type { CollectionView } from '../../bindings/CollectionView';
import type { CollectionsView } from '../../bindings/CollectionsView';
import type { EmbeddingProgress } from '../../bindings/EmbeddingProgress';
import type { RerankingView } from '../../bindings/RerankingView';
import type { Platform } from '../types';
import { checkCitations, passagesOf } from './citations';
import type { libraryControls } from './library';
import { chatsChanged, listen, pause, refusal } from './shared';
import { messageOf, type Store } from './store';
import { notFound, viewOf } from './tree';
import { textOf } from '../../shared/messageParts';
import { OWN_CHATS } from '../../shared/passages';

/** A PNG of one white pixel, which a page draws at any size. */
const WHITE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSuQmCC';

const isImage = (file: string): boolean => /\.(?:jpg|png)$/.test(file);

/** A collection with its files and, by their paths, the texts of those that can be opened. */
export interface FakeCollection {
  view: CollectionView;
  files: CollectionFile[];
  texts: Map<string, string>;
}

/** A collection of this source, of which nothing was read. */
export function emptyCollection(id: string, name: string, source: CollectionSource): CollectionView {
  return {
    id, name, source, read: 0, waiting: 0, failed: 0, skipped: 0, passages: 0, text_bytes: 0, images: 0, image_reading: null, left_out: [], synced_at: null, activity: { kind: 'idle' }, unwatched: null,
  };
}

export const documentControls = () => ({
  keptCollections: [] as FakeCollection[],
  embeddings: { model: null, searched: null, done: 0, of: 0, problem: null } as EmbeddingProgress,
  reranking: { model: null, problem: null } as RerankingView,
  /** The estimated time of reading all documents, in seconds; `null` for a model that was not measured. */
  readingSeconds: 310 as number | null,
  /** The number of files in a folder that a person chooses. */
  filesOfFolder: 12,
  /** The calls of `citations`, by their messages. */
  citationsAsked: [] as string[],
  collectionListeners: new Set<() => void>(),
});

type Documents = Store & ReturnType<typeof libraryControls> & ReturnType<typeof documentControls>;

export function documents(host: Documents) {
  const changed = (): void => {
    for (const listener of host.collectionListeners) queueMicrotask(listener);
  };
  const collection = (id: string): FakeCollection => {
    const found = host.keptCollections.find(({ view }) => view.id === id);
    if (!found) throw notFound('collection');
    return found;
  };
  const change = (kept: FakeCollection, more: Partial<CollectionView>): void => {
    kept.view = { ...kept.view, ...more };
    changed();
  };
  /** Looks through a collection and reads what waits, a file in each step. */
  const follow = async (kept: FakeCollection): Promise<void> => {
    const { activity } = kept.view;
    if (activity.kind !== 'idle' && activity.kind !== 'paused') return;
    change(kept, { activity: { kind: 'looking' } });
    await pause(10 * host.pace);
    const waiting = kept.files.filter(({ state }) => state.kind === 'waiting');
    for (const [done, file] of waiting.entries()) {
      if (kept.view.activity.kind === 'paused') return;
      change(kept, { activity: { kind: 'reading', done, of: waiting.length } });
      await pause(10 * host.pace);
      kept.files = kept.files.map((other) => (other === file ? { ...file, state: { kind: 'read', passages: 4 } } : other));
      const { read, waiting: left, passages } = kept.view;
      change(kept, { read: read + 1, waiting: left - 1, passages: passages + 4 });
    }
    if (kept.view.activity.kind !== 'paused') change(kept, { activity: { kind: 'idle' }, synced_at: Date.now() });
  };
  /** Reads the images that no model has read, one in each step; those that are called broken fail. */
  const readImages = async (kept: FakeCollection, model: string): Promise<void> => {
    const images = kept.files.filter(({ state }) => state.kind === 'left_out' && state.reason === 'image');
    const reading = { model, of: images.length, is_running: true, problem: null };
    let failed = 0;
    for (const [done, file] of images.entries()) {
      change(kept, { image_reading: { ...reading, done, failed } });
      await pause(10 * host.pace);
      if (!kept.view.image_reading?.is_running) return;
      const { read, images: unread, passages, failed: unreadable } = kept.view;
      const broken = file.path.includes('broken');
      const state: CollectionFile['state'] = broken
        ? { kind: 'failed', error: { code: 'image_broken', message: 'this PNG file cannot be read' } }
        : { kind: 'read', passages: 1 };
      kept.files = kept.files.map((other) => (other === file ? { ...file, state } : other));
      if (broken) failed += 1;
      const counts = broken ? { failed: unreadable + 1 } : { read: read + 1, passages: passages + 1 };
      change(kept, { images: unread - 1, ...counts });
    }
    change(kept, { image_reading: failed > 0 ? { ...reading, done: images.length, failed, is_running: false } : null });
  };
  const add = (name: string, source: CollectionSource, paths: readonly string[]): string => {
    const view = { ...emptyCollection(`collection-${host.next++}`, name, source), waiting: paths.length };
    const files = paths.map((path): CollectionFile => ({ path, bytes: 24_000, state: { kind: 'waiting' } }));
    const kept: FakeCollection = { view, files, texts: new Map() };
    host.keptCollections.push(kept);
    void follow(kept);
    return view.id;
  };

  return {
    async collections(): Promise<CollectionsView> {
      const collections = host.keptCollections.map(({ view }) => view);
      const passages = collections.reduce((sum, view) => sum + view.passages, 0);
      return {
        collections,
        embeddings: { ...host.embeddings, of: Math.max(passages, host.embeddings.of) },
        reranking: host.reranking,
      };
    },
    async chooseCollectionFolder() {
      if (host.closesDialogs) return null;
      const paths = Array.from({ length: host.filesOfFolder }, (_, at) => `letter ${String(at + 1).padStart(2, '0')}.md`);
      return add('Letters', { kind: 'folder', path: '/home/ada/Documents/Letters' }, paths);
    },
    async chooseCollectionFiles() {
      if (host.closesDialogs) return null;
      const paths = ['/home/ada/Downloads/lease.pdf', '/home/ada/Downloads/house rules.pdf'];
      return add('lease.pdf', { kind: 'files', paths }, paths);
    },
    async addOwnChats() {
      if (host.keptCollections.some(({ view }) => view.id === OWN_CHATS)) return;
      const chats = [...host.kept.values()].filter(({ trashed }) => trashed === null);
      const files = chats.map(({ summary }): CollectionFile => ({ path: summary.id, bytes: 1, state: { kind: 'waiting' } }));
      const view = { ...emptyCollection(OWN_CHATS, 'My chats', { kind: 'chats' }), waiting: files.length };
      const kept: FakeCollection = { view, files, texts: new Map() };
      host.keptCollections.push(kept);
      void follow(kept);
    },
    async collectionFiles(id) {
      return collection(id).files;
    },
    async renameCollection(id, name) {
      change(collection(id), { name });
    },
    async pauseCollection(id, paused) {
      const kept = collection(id);
      if (paused) return change(kept, { activity: { kind: 'paused' } });
      void follow(kept);
    },
    async updateCollection(id) {
      // As the app does, which looks in the background: nobody hears of one that is gone.
      const kept = host.keptCollections.find(({ view }) => view.id === id);
      if (kept) void follow(kept);
    },
    async readCollectionImages(id, model) {
      const kept = collection(id);
      if (!host.local.find(({ reference }) => reference === model)?.supports_vision)
        throw refusal('image_not_seen', `${model} doesn't support images; no image was read`);
      if (kept.view.image_reading?.is_running) throw refusal('busy', 'the images of these documents are being read already');
      void readImages(kept, model);
    },
    async stopCollectionImages(id) {
      const kept = host.keptCollections.find(({ view }) => view.id === id);
      if (kept?.view.image_reading?.is_running) change(kept, { image_reading: null });
    },
    async removeCollection(id) {
      const gone = collection(id);
      host.keptCollections = host.keptCollections.filter((kept) => kept !== gone);
      changed();
    },
    async setProjectCollections(id, collections) {
      const project = host.keptProjects.find((other) => other.id === id && !other.deleted);
      if (!project) throw notFound('folder');
      project.collections = [...collections];
      chatsChanged(host);
    },
    async citations(id) {
      host.citationsAsked.push(id);
      const { chat, message } = messageOf(host, id);
      return checkCitations(textOf(message.parts), passagesOf(viewOf({ ...chat, leaf: message.id }).messages));
    },
    async openPassage(quoted) {
      const { view, texts } = collection(quoted.collection);
      const text = texts.get(quoted.file);
      if (text === undefined) throw notFound('file');
      const folder = view.source.kind === 'folder' ? `${view.source.path}/` : '';
      const shown = { path: `${folder}${quoted.file}`, passage: quoted.text, page: quoted.page, is_image: isImage(quoted.file) };
      const at = text.indexOf(quoted.text);
      if (at < 0) return { ...shown, before: '', after: '', first_line: quoted.first_line, is_changed: true };
      const first_line = text.slice(0, at).split('\n').length;
      return { ...shown, before: text.slice(0, at), after: text.slice(at + quoted.text.length), first_line, is_changed: false };
    },
    async passagePage(quoted, page, width) {
      await pause(10 * host.pace);
      const pages = collection(quoted.collection).texts.get(quoted.file)?.split('\f');
      if (!pages) throw notFound('file');
      const text = pages[page - 1];
      if (text === undefined || !(quoted.file.endsWith('.pdf') || isImage(quoted.file))) throw refusal('file_broken', 'this document has no such page');
      const marks = !isImage(quoted.file) && text.includes(quoted.text) ? [{ left: 0.12, top: 0.1, width: 0.6, height: 0.02 }] : [];
      return { pages: pages.length, width, height: Math.round(width * 1.414), image: `data:image/png;base64,${WHITE}`, marks };
    },
    onCollectionsChanged: (listener) => listen(host.collectionListeners, listener),
  } satisfies Partial<Platform>;
}
