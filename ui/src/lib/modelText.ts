/** The texts of rows about models and downloads. */

import type { Download } from '../bindings/Download';
import type { HubModel } from '../bindings/HubModel';
import type { LocalModel } from '../bindings/LocalModel';
import type { ThinkingControl } from '../bindings/ThinkingControl';
import { bytes, context } from './format';
import { progress, short, speed, timeLeft } from './quantities';

/** What a model's reasoning is called in a small tag; `null` where it has none. */
export function thinkingTag(control: ThinkingControl | null): string | null {
  switch (control?.kind) {
    case 'switch':
      return 'thinks';
    case 'levels':
      return control.levels.length === 3 ? 'three levels' : 'effort levels';
    case 'always':
      return 'always thinks';
    case 'by_request':
      return 'thinks when asked';
    default:
      return null;
  }
}

/** The tags of a model on the hub. */
export function hubTags(model: HubModel): string[] {
  return words(model.quantization, thinkingTag(model.thinking), model.gated && 'licence to accept');
}

/** `mlx-community · 4.2 GB · 128 k context · 1.9 M downloads` */
export function hubSummary(model: HubModel): string {
  return words(
    model.author,
    model.bytes !== null && bytes(model.bytes),
    model.context !== null && context(model.context),
    model.downloads > 0 && `${short(model.downloads)} downloads`,
  ).join(' · ');
}

/** The tags of a model on this computer. */
export function localTags(model: LocalModel, loaded: boolean): string[] {
  return words(model.quantization, thinkingTag(model.thinking), model.built_in && 'built in', loaded && 'in memory');
}

/** How a download goes: `1.3 of 2.3 GB · 18 MB/s · 2 min left · file 1 of 2`. */
export function downloadStatus(download: Download): string {
  const far = download.total > 0 ? progress(download.done, download.total) : null;
  switch (download.state) {
    case 'queued':
      return words('Waiting for its turn', download.done > 0 && far).join(' · ');
    case 'listing':
      return 'Asking what there is to fetch';
    case 'running':
      return words(
        far,
        download.bytes_per_second > 0 && speed(download.bytes_per_second),
        download.seconds_left !== null && timeLeft(download.seconds_left),
        download.files.length > 1 && `file ${fileNumber(download)} of ${download.files.length}`,
      ).join(' · ');
    case 'verifying':
      return words('Checking every byte', far).join(' · ');
    case 'paused':
      return words('Paused', far).join(' · ');
    case 'waiting':
      return words('Waiting for the network', far).join(' · ');
    case 'done':
      return words('Here and checked', bytes(download.total)).join(' · ');
    case 'failed':
      return words('Stopped', far).join(' · ');
  }
}

/** The file that is being fetched, counted from 1. */
function fileNumber(download: Download): number {
  const done = download.files.filter((file) => file.state === 'done').length;
  return Math.min(done + 1, download.files.length);
}

/** How far a download is, from 0 to 1; `null` until that is known. */
export function downloadShare(download: Download): number | null {
  if (download.state === 'done') return 1;
  return download.total > 0 ? download.done / download.total : null;
}

/** A short name for people: the last part of an id, with blanks for hyphens. */
export function displayName(id: string): string {
  const last = id.split('/').findLast(Boolean) ?? id;
  return last.replace(/[-_]/g, ' ');
}

function words(...parts: (string | false | null | undefined)[]): string[] {
  return parts.filter((part): part is string => typeof part === 'string' && part !== '');
}
