/** The downloads of this computer, as the host reports them. */

import { createContext } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';

import type { Download } from '../bindings/Download';
import { displayName } from '../format/modelText';
import { t } from '../locales';
import { errorText } from '../locales/host';
import type { Platform } from '../host';
import type { Toasts } from '../design/toasts.svelte';

/** True if a download still has work to do, now or later. */
export function isUnfinished(download: Download): boolean {
  return download.state !== 'done';
}

/** True if it runs or waits for its turn. */
export function isActive(download: Download): boolean {
  return download.state !== 'done' && download.state !== 'failed' && download.state !== 'paused';
}

export class Downloads {
  /** The order of the queue. */
  order = $state.raw<readonly string[]>([]);
  /** True after the host has listed them once. */
  listed = $state(false);
  /** The announcement for a screen reader: a model that is ready, or the reason that one is not. */
  announcement = $state('');
  /** The model that became ready last; another object each time. */
  ready = $state.raw<{ reference: string } | null>(null);
  /** Kept by name, so that a step of one download draws one row again. */
  readonly #byId = new SvelteMap<string, Download>();

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** Follows them from here on. */
  async open(): Promise<void> {
    await this.#call(() => this.platform.watchDownloads((downloads) => this.#apply(downloads)));
  }

  /** A model's download; `null` if there is none. */
  find(id: string): Download | null {
    return this.#byId.get(id) ?? null;
  }

  /** A model's download that still has work to do. */
  unfinishedOf(id: string): Download | null {
    const download = this.find(id);
    return download && isUnfinished(download) ? download : null;
  }

  get list(): Download[] {
    return this.order.flatMap((id) => this.#byId.get(id) ?? []);
  }

  /** The number of unfinished downloads. */
  get unfinished(): number {
    return this.list.filter(isUnfinished).length;
  }

  /** Fetches a model; `null`: its main branch. */
  async get(id: string, revision: string | null = null): Promise<void> {
    await this.#call(() => this.platform.download(id, revision));
  }

  async pause(id: string): Promise<void> {
    await this.#call(() => this.platform.pauseDownload(id));
  }

  async resume(id: string): Promise<void> {
    await this.#call(() => this.platform.resumeDownload(id));
  }

  async cancel(id: string): Promise<void> {
    await this.#call(() => this.platform.cancelDownload(id));
  }

  /** Moves a download up or down by one place. */
  async move(id: string, by: -1 | 1): Promise<void> {
    const place = this.order.indexOf(id) + by;
    if (place < 0 || place >= this.order.length) return;
    await this.#call(() => this.platform.moveDownload(id, place));
  }

  #apply(downloads: readonly Download[]): void {
    const first = !this.listed;
    this.listed = true;
    for (const download of downloads) {
      const before = this.#byId.get(download.id);
      if (!first && before?.state !== download.state) this.#announce(download);
      if (before === undefined || !same(before, download)) this.#byId.set(download.id, download);
    }
    const order = downloads.map((download) => download.id);
    for (const id of [...this.#byId.keys()]) if (!order.includes(id)) this.#byId.delete(id);
    if (order.join('\n') !== this.order.join('\n')) this.order = order;
  }

  #announce(download: Download): void {
    if (download.state === 'done') {
      this.ready = { reference: download.id };
      this.announcement = t('download.ready', { name: displayName(download.id) });
    } else if (download.error !== null) {
      this.announcement = t('download.problem', { name: displayName(download.id), problem: errorText(download.error) });
    }
  }

  async #call(call: () => Promise<void>): Promise<void> {
    await this.toasts.attempt(call, 'downloads');
  }
}

/** True if nothing changed that a row shows. */
function same(a: Download, b: Download): boolean {
  return (
    a.state === b.state &&
    a.done === b.done &&
    a.total === b.total &&
    a.bytes_per_second === b.bytes_per_second &&
    a.seconds_left === b.seconds_left &&
    a.retry_at === b.retry_at &&
    a.error?.message === b.error?.message &&
    a.files.length === b.files.length &&
    a.files.every((file, index) => file.state === b.files[index]?.state && file.done === b.files[index]?.done)
  );
}

/** The downloads of models. */
export const [useDownloads, provideDownloads] = createContext<Downloads>();
