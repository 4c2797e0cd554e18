/** The fake host's downloads, which make progress: two at once, as the real ones. */

import type { Download } from '../../bindings/Download';
import type { DownloadState } from '../../bindings/DownloadState';
import type { Platform } from '../types';
import type { hubControls } from './hub';
import { modelsChanged, refusal, type Shared } from './shared';

/** Milliseconds between two steps. */
const STEP = 200;
const BYTES_PER_STEP = 3_600_000;

export const downloadControls = () => ({ queue: [] as Download[] });

export function downloads(host: Shared & ReturnType<typeof hubControls> & ReturnType<typeof downloadControls>) {
  const watchers: ((downloads: Download[]) => void)[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tell = (): void => {
    for (const watcher of watchers) watcher(host.queue);
  };
  const change = (id: string, changed: Partial<Download>): void => {
    if (!host.queue.some((download) => download.id === id)) throw refusal('model_not_found', `${id} is not being downloaded.`);
    host.queue = host.queue.map((download) => (download.id === id ? withFiles({ ...download, ...changed }) : download));
    tell();
  };
  const arrived = (download: Download): Download => {
    const model = host.catalog.find((other) => other.id === download.id);
    if (model && !host.local.some((other) => other.reference === model.id)) {
      const { id: reference, name, family, quantization, context, thinking } = model;
      host.local = [...host.local, { reference, name, kind: 'chat', built_in: false, path: `/models/${reference}`, revision: '9b02', family, quantization, bytes: download.total, context, thinking, thought: null, sampling: { temperature: 0.7, top_p: 0.95, repetition_penalty: 1.1 }, sampling_by_makers: false, supports_vision: false, vision_problem: null, problem: null, incomplete: false, place: 'cache', last_used_at: null, revisions: [], quantizable: false, adapter_of: null }];
    }
    modelsChanged(host);
    return withFiles({ ...download, state: 'done', bytes_per_second: 0, seconds_left: null });
  };
  /** Schedules one step of all downloads that run. */
  const tick = (): void => {
    clearTimeout(timer);
    if (!host.queue.some(({ state }) => state === 'queued' || state === 'running' || state === 'verifying')) return;
    timer = setTimeout(() => {
      let running = 0;
      host.queue = host.queue.map((download) => {
        if (download.state === 'queued' && running < 2) download = { ...download, state: 'running', commit: '9b02' };
        if (download.state !== 'running' && download.state !== 'verifying') return download;
        running += 1;
        if (download.done >= download.total) return arrived(download);
        const done = Math.min(download.total, download.done + BYTES_PER_STEP);
        return withFiles({ ...download, done, bytes_per_second: BYTES_PER_STEP * 5, seconds_left: (download.total - done) / (BYTES_PER_STEP * 5) });
      });
      tell();
      tick();
    }, STEP);
  };
  /** Puts a download into the queue. */
  const addDownload = (id: string, state: DownloadState, share = 0, error: Download['error'] = null): void => {
    const total = host.catalog.find((model) => model.id === id)?.bytes ?? 2_300_000_000;
    const download: Download = {
      id, revision: 'main', commit: state === 'queued' && share === 0 ? null : '9b02', state, files: [], done: Math.round(total * share), total,
      bytes_per_second: state === 'running' ? 18_000_000 : 0, seconds_left: null, retry_at: state === 'waiting' ? Date.now() + 24_000 : null, error,
    };
    host.queue = [...host.queue, withFiles(download)];
    tell();
    tick();
  };
  const resume = (id: string): void => {
    change(id, { state: 'queued', error: null });
    tick();
  };
  const calls = {
    async download(id) {
      if (host.queue.some((download) => download.id === id)) resume(id);
      else addDownload(id, 'queued');
    },
    async pauseDownload(id) {
      change(id, { state: 'paused', bytes_per_second: 0, seconds_left: null });
    },
    async resumeDownload(id) {
      resume(id);
    },
    async cancelDownload(id) {
      host.queue = host.queue.filter((download) => download.id !== id);
      tell();
    },
    async moveDownload(id, place) {
      const moved = host.queue.find((download) => download.id === id);
      if (!moved) return;
      const others = host.queue.filter((download) => download.id !== id);
      host.queue = [...others.slice(0, place), moved, ...others.slice(place)];
      tell();
    },
    async watchDownloads(onChange) {
      watchers.push(onChange);
      onChange(host.queue);
    },
  } satisfies Partial<Platform>;
  return { ...calls, addDownload };
}

/** A download with files that together have its bytes. */
function withFiles(download: Download): Download {
  const sizes: [string, number][] = [['config.json', 2_100], ['tokenizer.json', 11_400_000]];
  const rest = Math.max(0, download.total - 11_402_100);
  sizes.push(['model-00001-of-00002.safetensors', Math.ceil(rest / 2)], ['model-00002-of-00002.safetensors', Math.floor(rest / 2)]);
  let left = download.done;
  const files = sizes.map(([path, bytes]) => {
    const done = Math.min(bytes, left);
    left -= done;
    const state: DownloadState = done === bytes && download.commit ? 'done' : done > 0 ? download.state : 'queued';
    return { path, bytes, done, state };
  });
  return { ...download, files: download.commit === null ? [] : files };
}

