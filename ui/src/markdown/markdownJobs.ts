/**
 * Long texts, colors and formulas are made in a worker, so that no text holds up the window. A text that takes too
 * long, whatever the reason, stays as it is written.
 */

import { catalogue, language, type Catalogue } from '../locales';
import { nextSlice } from '../shared/slices';
import { NONCE, withNewlines } from './markdown';
import MarkdownWorker from './markdown.worker?worker';
import { draftWhole, type Draft, type Reading } from './markdownDraft';

/** A text that takes longer than this, in milliseconds, stays as it is written. */
const PATIENCE = 10_000;
/** The time that a worker has to start before the page renders by itself. */
const START = 3000;

/** A request to the worker. */
export interface Job {
  id: number;
  text: string;
  reading: Reading;
  nonce: string;
  language: string;
  /** The texts of that language, if the worker does not have them. */
  texts?: Catalogue;
}

/** The worker's reply. */
export interface JobDone {
  id: number;
  drafts: Draft[];
}

let worker: Worker | null = null;
/** The texts that the worker has. */
let sent: Catalogue | null = null;
/** True after a worker has started; `false` once none can be created, and the page reads by itself. */
let works: boolean | null = null;
let late: ReturnType<typeof setTimeout> | undefined;
let next = 1;
/** The pending requests; the worker reads the first of them. */
const waiting = new Map<number, { job: Job; done: (drafts: Draft[] | null) => void }>();

/** Results that were made last, for their texts come into sight again. A result contains texts of the window. */
class Recent<Result> {
  readonly #results = new Map<string, Result>();

  constructor(private readonly most: number) {}

  before(text: string, reading: Reading = {}): Result | undefined {
    return this.#results.get(this.#name(text, reading));
  }

  keep(text: string, reading: Reading, result: Result): Result {
    const name = this.#name(text, reading);
    this.#results.delete(name);
    this.#results.set(name, result);
    const [oldest] = this.#results.keys();
    if (this.#results.size > this.most && oldest !== undefined) this.#results.delete(oldest);
    return result;
  }

  #name(text: string, reading: Reading): string {
    return `${language}:${JSON.stringify(reading)}:${text}`;
  }
}

const wholes = new Recent<Draft[] | null>(24);
const blocks = new Recent<Draft | null>(300);

/** The earlier result for a text; `undefined` if it was not read, or long ago. */
export function readBefore(text: string, reading: Reading = {}): Draft[] | null | undefined {
  return wholes.before(text, reading);
}

/** The blocks of a finished text; `null` if it stays as it is written. */
export async function readWhole(text: string, reading: Reading = {}): Promise<Draft[] | null> {
  return wholes.keep(text, reading, await readOnce(text, reading));
}

/** The earlier result for a block; `undefined` if there is none. */
export function blockBefore(source: string, reading: Reading): Draft | undefined {
  return blocks.before(source, reading) ?? undefined;
}

/** A block with all that it needs; `null` if it stays as it is. */
export async function readBlock(source: string, reading: Reading): Promise<Draft | null> {
  const drafts = await readOnce(source, reading);
  return blocks.keep(source, reading, drafts?.length === 1 ? (drafts[0] ?? null) : null);
}

function readOnce(text: string, reading: Reading): Promise<Draft[] | null> {
  const job: Job = { id: next++, text: withNewlines(text), reading, nonce: NONCE, language };
  return new Promise((done) => {
    if (typeof Worker === 'undefined' || works === false) return readHere(job, done);
    waiting.set(job.id, { job, done });
    if (waiting.size === 1) watch();
    worker ??= open();
    post(job);
  });
}

/** Reads a text without a worker, in slices of its own. */
function readHere({ text, reading }: Job, done: (drafts: Draft[] | null) => void): void {
  void draftWhole(text, reading, () => new Promise((go) => nextSlice(go))).then(done);
}

function post(job: Job): void {
  worker?.postMessage(sent === catalogue ? job : { ...job, texts: catalogue });
  sent = catalogue;
}

function open(): Worker | null {
  sent = null;
  try {
    const opened = new MarkdownWorker();
    opened.onmessage = ({ data }: MessageEvent<JobDone | null>) => {
      works = true;
      if (data) settle(data.id, data.drafts);
      else watch();
    };
    opened.onerror = giveUp;
    return opened;
  } catch {
    // The promise of the requested text exists first.
    queueMicrotask(giveUp);
    return null;
  }
}

function settle(id: number, drafts: Draft[] | null): void {
  waiting.get(id)?.done(drafts);
  waiting.delete(id);
  watch();
}

function watch(): void {
  clearTimeout(late);
  if (waiting.size > 0) late = setTimeout(giveUp, works === null ? START : PATIENCE);
}

/** Ends the worker with the text that it reads; another reads the texts after it. */
function giveUp(): void {
  worker?.terminate();
  worker = null;
  if (works === null) {
    works = false;
    for (const { job } of [...waiting.values()]) readHere(job, (drafts) => settle(job.id, drafts));
    return;
  }
  const [first] = waiting.keys();
  if (first !== undefined) settle(first, null);
  if (waiting.size === 0) return;
  worker = open();
  for (const { job } of waiting.values()) post(job);
}
