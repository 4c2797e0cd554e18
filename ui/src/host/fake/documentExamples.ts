/** Collections of documents for a browser during development, in every state, and a chat that cites them. */

import type { CollectionFile } from '../../bindings/CollectionFile';
import type { Coverage } from '../../bindings/Coverage';
import type { Part } from '../../bindings/Part';
import type { QuotedPassage } from '../../bindings/QuotedPassage';
import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import { emptyCollection } from './documents';
import type { FakeHost } from './index';
import { textPart } from './tree';

/** The text of a file that the chat of the examples cites. */
export const TIDES = `# The harbour

## Tides

The tide turns at noon. High water is at 12:40 and 5.2 m above the chart datum.
Boats that draw more than 2 m wait for it.

## Ferries

The last ferry leaves at 18:40. On Sundays it leaves at 17:10.
Dogs travel free of charge.

## Fees

A night at the guest pier costs 24 euros. Electricity is included.
`;

/** The pages of a PDF, of which the second is cited. */
export const RULES = ['Rules of the harbour', 'Dogs are kept on a leash.\nFires are not allowed.', 'The harbour master decides.'].join('\f');

const HASH = '9f2c51d07be4a6388f10c2de5b7741a0e9d3b6c8f4a1527380de94b7c6a1f035';

/** A passage of {@link TIDES} in a collection. */
export function tidePassage(collection: string, number: number, headings: string, first: number, last: number): QuotedPassage {
  const text = TIDES.split('\n').slice(first - 1, last).join('\n');
  return { number, collection, file: 'harbour/tides.md', file_hash: HASH, headings, page: null, first_line: first, last_line: last, text };
}

/** A passage on a page of {@link RULES}. */
export function rulesPassage(collection: string, number: number): QuotedPassage {
  const place = { file: 'harbour/rules.pdf', file_hash: HASH, headings: '', page: 2, first_line: 2, last_line: 2 };
  return { number, collection, ...place, text: 'Dogs are kept on a leash.' };
}

/** A part with these passages. */
export function passagesPart(passages: QuotedPassage[], coverage: Coverage): Part {
  return { kind: 'passages', passages, coverage, started_at: 0, ended_at: 0 };
}

const read = (path: string, passages: number): CollectionFile => ({ path, bytes: 18_000, state: { kind: 'read', passages } });

/** Adds collections in every state; returns the ids of them. */
export function addCollections(host: FakeHost): string[] {
  const synced_at = Date.now() - 240_000;
  const folder = (name: string) => ({ kind: 'folder' as const, path: `/home/ada/Documents/${name}` });
  const harbour = {
    ...emptyCollection('harbour', 'Harbour', folder('Harbour')),
    read: 38, failed: 2, skipped: 3, passages: 212, text_bytes: 840_000, synced_at,
    left_out: [{ reason: 'hidden' as const, count: 12 }, { reason: 'too_large' as const, count: 1 }, { reason: 'unreadable' as const, count: 2 }],
  };
  const files: CollectionFile[] = [
    { path: 'harbour/berths.pdf', bytes: 90_000, state: { kind: 'failed', error: { code: 'file_broken', reason: 'file_protected', arguments: { kind: 'PDF' }, message: 'this PDF file is protected; save it without protection' } } },
    { path: 'harbour/chart.dwg', bytes: 4_000_000, state: { kind: 'failed', error: { code: 'file_broken', reason: 'file_kind', arguments: { kind: 'this kind of file' }, message: 'this kind of file cannot be read' } } },
    { path: 'harbour/film.mov', bytes: 900_000_000, state: { kind: 'left_out', reason: 'too_large' } },
    { path: 'harbour/keys.txt', bytes: 200, state: { kind: 'left_out', reason: 'unreadable' } },
    read('harbour/rules.pdf', 3),
    read('harbour/tides.md', 4),
    ...Array.from({ length: 36 }, (_, at) => read(`harbour/log ${at + 1}.md`, 5 + (at % 3))),
  ];
  const thesis = {
    ...emptyCollection('thesis', 'Thesis sources', folder('Thesis sources')),
    read: 12, waiting: 328, passages: 96, activity: { kind: 'reading' as const, done: 12, of: 340 },
    unwatched: { kind: 'watch_limit' as const, setting: 'fs.inotify.max_user_watches' },
  };
  const paused = { ...emptyCollection('letters', 'Letters 1990 to 2010', folder('Letters')), read: 40, waiting: 60, passages: 310, synced_at, activity: { kind: 'paused' as const } };
  const gone = {
    ...emptyCollection('backup', 'Backup', { kind: 'folder', path: '/media/ada/Backup/Notes' }),
    read: 9, passages: 30, synced_at: synced_at - 9 * 86_400_000,
    activity: {
      kind: 'failed' as const,
      error: { code: 'not_found' as const, reason: 'folder_gone' as const, arguments: { path: '/media/ada/Backup/Notes' }, message: '/media/ada/Backup/Notes is not there' },
    },
  };
  host.keptCollections.push(
    { view: harbour, files, texts: new Map([['harbour/tides.md', TIDES], ['harbour/rules.pdf', RULES]]) },
    { view: thesis, files: [read('one.pdf', 8), { path: 'two.pdf', bytes: 1_000_000, state: { kind: 'waiting' } }], texts: new Map() },
    { view: paused, files: [], texts: new Map() },
    { view: gone, files: [], texts: new Map() },
  );
  return ['harbour', 'thesis', 'letters', 'backup'];
}

/** The text that a model wrote of an image. */
export const SIGN = 'FERRY 7:15 and 18:40\n\nA white sign of a ferry at the end of a pier.';

/** A passage of {@link SIGN}. */
export function signPassage(collection: string, number: number): QuotedPassage {
  const place = { file: 'sign.jpg', file_hash: HASH, headings: 'Described by Qwen3-VL 4B', page: null, first_line: 1, last_line: 3 };
  return { number, collection, ...place, text: SIGN };
}

/** Adds a collection with four images, three of which no model has read; returns its id. */
export function addPhotos(host: FakeHost): string {
  const unread = (path: string): CollectionFile => ({ path, bytes: 2_400_000, state: { kind: 'left_out', reason: 'image' } });
  const view = {
    ...emptyCollection('photos', 'Photos', { kind: 'folder', path: '/home/ada/Pictures/Harbour' }),
    read: 1, images: 3, passages: 1, text_bytes: SIGN.length, synced_at: Date.now() - 240_000,
  };
  const files = [unread('boat.jpg'), unread('broken.png'), unread('pier.jpg'), read('sign.jpg', 1)];
  host.keptCollections.push({ view, files, texts: new Map([['sign.jpg', SIGN]]) });
  return view.id;
}

/** Adds a chat whose answer cites passages of the first of these collections, rightly and wrongly. */
export function addCitingChat(host: FakeHost, collection: string, project: string | null): string {
  const chat = host.addChat('When does the tide turn?', Date.now() - 500, { ...DEFAULT_CHAT_SETTINGS, model: 'pebble', collections: [collection] });
  chat.summary = { ...chat.summary, project };
  const passages = [
    tidePassage(collection, 1, 'The harbour > Tides', 5, 6),
    tidePassage(collection, 2, 'The harbour > Ferries', 10, 11),
    { ...tidePassage(collection, 3, 'The harbour > Fees', 15, 15), text: 'A night at the guest pier costs 22 euros.' },
  ];
  const coverage = { passages: 3, of_passages: 212, files: 1, of_files: 38, unread: 2 };
  host.addRow(chat, { role: 'user', parts: [passagesPart(passages, coverage), textPart('When does the tide turn, and when does the last ferry leave?')] });
  host.addRow(chat, {
    role: 'assistant', model: 'pebble', finish_reason: 'stop', settings: chat.settings,
    parts: [textPart('The tide turns at noon, and high water is at **12:40** [1]. The last ferry leaves at 18:55 [2].\n\n- Boats of more than 2 m wait for the water [1, 2].\n- A night at the pier costs 22 euros [3].\n- There is a market on Mondays [7].\n\nIn code, `list[1]` stays as it is.')],
  });
  return chat.summary.id;
}

export async function fillDocuments(host: FakeHost, asked: URLSearchParams): Promise<void> {
  if (asked.get('documents') === 'none') return;
  const [first = '', second = ''] = addCollections(host);
  if (asked.get('documents') === 'photos') addPhotos(host);
  const { id } = await host.createProject('Sailing');
  await host.setProjectCollections(id, [first, second]);
  addCitingChat(host, first, id);
  if (asked.get('embeddings') === 'part') host.embeddings = { model: 'intfloat/multilingual-e5-small', searched: 'sentence-transformers/all-MiniLM-L6-v2', done: 120, of: 648, problem: null };
}
