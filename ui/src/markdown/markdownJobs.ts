/**
 * Long texts are read in a worker, so that no text holds up the window. One that takes too long, whatever the reason,
 * stays as it is written.
 */

import { catalogue, language, type Catalogue } from '../locales';
import { NONCE, withNewlines } from './markdown';
import MarkdownWorker from './markdown.worker?worker';
import { draftWhole, type Draft } from './markdownDraft';

/** A text that takes longer than this, in milliseconds, stays as it is written. */
const PATIENCE = 10_000;
/** The time to wait for a worker's first answer before the page renders by itself. */
const START = 3000;

/** A request to the worker. */
export interface Job {
  id: number;
  text: string;
  nonce: string;
  language: string;
  texts: Catalogue;
}

/** The worker's reply. */
export interface JobDone {
  id: number;
  drafts: Draft[];
}

let worker: Worker | null = null;
/** True after a worker has replied; `false` once none can be created, and the page reads by itself. */
let works: boolean | null = null;
let late: ReturnType<typeof setTimeout> | undefined;
let next = 1;
/** The pending requests; the worker reads the first of them. */
const waiting = new Map<number, { job: Job; done: (drafts: Draft[] | null) => void }>();

/** Texts that were read last, for they come into sight again. */
const read = new Map<string, Draft[] | null>();
const KEPT = 24;

/** The result for a text contains texts of the window. */
const named = (text: string): string => `${language}:${text}`;

/** The earlier result for a text; `undefined` if it was not read, or long ago. */
export function readBefore(text: string): Draft[] | null | undefined {
  return read.get(named(text));
}

/** The blocks of a finished text; `null` if it stays as it is written. */
export async function readWhole(text: string): Promise<Draft[] | null> {
  const drafts = await readOnce(text);
  const name = named(text);
  read.delete(name);
  read.set(name, drafts);
  const [oldest] = read.keys();
  if (read.size > KEPT && oldest !== undefined) read.delete(oldest);
  return drafts;
}

function readOnce(text: string): Promise<Draft[] | null> {
  const job: Job = { id: next++, text: withNewlines(text), nonce: NONCE, language, texts: catalogue };
  if (typeof Worker === 'undefined' || works === false) return draftWhole(job.text);
  return new Promise((done) => {
    waiting.set(job.id, { job, done });
    if (waiting.size === 1) watch();
    worker ??= open();
    worker?.postMessage(job);
  });
}

function open(): Worker | null {
  try {
    const opened = new MarkdownWorker();
    opened.onmessage = ({ data }: MessageEvent<JobDone>) => {
      works = true;
      settle(data.id, data.drafts);
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
    for (const { job } of [...waiting.values()]) void draftWhole(job.text).then((drafts) => settle(job.id, drafts));
    return;
  }
  const [first] = waiting.keys();
  if (first !== undefined) settle(first, null);
  if (waiting.size === 0) return;
  worker = open();
  for (const { job } of waiting.values()) worker?.postMessage(job);
}
