/** The texts of rows about models and downloads. */

import type { Download } from '../bindings/Download';
import type { HubModel } from '../bindings/HubModel';
import type { LocalModel } from '../bindings/LocalModel';
import type { ModelKind } from '../bindings/ModelKind';
import type { ThinkingControl } from '../bindings/ThinkingControl';
import { t } from '../locales';
import { bytes, context, duration, progress } from './format';
import { plainName } from '../shared/displayNames';
import { short, speed, timeLeft } from './quantities';

/** The tag of a model's reasoning; `null` if it has none. */
export function thinkingTag(control: ThinkingControl | null): string | null {
  switch (control?.kind) {
    case 'switch':
      return t('tag.thinks');
    case 'levels':
      return t('tag.effortLevels');
    case 'always':
      return t('tag.alwaysThinks');
    case 'by_request':
      return t('tag.thinksWhenAsked');
    default:
      return null;
  }
}

/** The bits of a weight, as a text of the window (`4-bit`); another format by its name (`mxfp4`). */
export function quantizationTag(quantization: string | null): string | null {
  const bits = /^(\d+) bit$/.exec(quantization ?? '')?.[1];
  return bits === undefined ? quantization : t('tag.bits', { bits });
}

/** The strength of a model that is recommended; `null` of any other. */
export function goodFor({ note }: HubModel): string | null {
  return note === null ? null : t(`firstModel.${note}`);
}

/** The tag of a model that writes no responses. */
function kindTag(kind: ModelKind): string | false {
  return kind !== 'chat' && t(`tag.${kind}`);
}

/** The tags of a model on the hub. */
export function hubTags(model: HubModel): string[] {
  return joined(
    quantizationTag(model.quantization),
    kindTag(model.kind),
    thinkingTag(model.thinking),
    model.gated && t('tag.licence'),
  );
}

/** `mlx-community · 4.2 GB · 128K context · 1.9M downloads` */
export function hubSummary(model: HubModel): string {
  return joined(
    model.author,
    model.bytes !== null && bytes(model.bytes),
    model.context !== null && context(model.context),
    model.downloads > 0 && t('discover.downloads', { count: short(model.downloads) }),
  ).join(' · ');
}

/** The tags of a model on this computer. */
export function localTags(model: LocalModel, loaded: boolean): string[] {
  return joined(
    quantizationTag(model.quantization),
    kindTag(model.kind),
    thinkingTag(model.thinking),
    model.built_in && t('tag.builtIn'),
    loaded && t('tag.loaded'),
  );
}

/** The state of a download now: `1.3 of 2.3 GB · 18 MB/s · 2 min left · file 1 of 2`. */
export function downloadStatus(download: Download, now: number): string {
  const far = download.total > 0 ? progress(download.done, download.total) : null;
  switch (download.state) {
    case 'queued':
      return joined(t('download.queued'), download.done > 0 && far).join(' · ');
    case 'listing':
      return t('download.listing');
    case 'running':
      return joined(
        far,
        download.bytes_per_second > 0 && speed(download.bytes_per_second),
        download.seconds_left !== null && timeLeft(download.seconds_left),
        download.files.length > 1 && t('download.file', { number: fileNumber(download), count: download.files.length }),
      ).join(' · ');
    case 'verifying':
      return joined(t('download.verifying'), far).join(' · ');
    case 'paused':
      return joined(t('download.paused'), far).join(' · ');
    case 'waiting':
      return joined(t('download.waiting'), download.retry_at !== null && triesAgain(download.retry_at - now), far).join(
        ' · ',
      );
    case 'done':
      return joined(t('download.done'), bytes(download.total)).join(' · ');
    case 'failed':
      return joined(t('download.failed'), far).join(' · ');
  }
}

/** `retrying in 12 s` */
function triesAgain(milliseconds: number): string {
  return milliseconds > 0
    ? t('download.triesAgain', { duration: duration(Math.ceil(milliseconds / 1000) * 1000) })
    : t('download.triesNow');
}

/** The file that is being downloaded, counted from 1. */
function fileNumber(download: Download): number {
  const done = download.files.filter((file) => file.state === 'done').length;
  return Math.min(done + 1, download.files.length);
}

/** The progress of a download, from 0 to 1; `null` until that is known. */
export function downloadShare(download: Download): number | null {
  if (download.state === 'done') return 1;
  return download.total > 0 ? download.done / download.total : null;
}

/** A short display name: the last part of an id, with spaces for hyphens. */
export function displayName(id: string): string {
  const last = id.split('/').findLast(Boolean) ?? id;
  return plainName(last).replace(/[-_]/g, ' ');
}

function joined(...parts: (string | false | null | undefined)[]): string[] {
  return parts.filter((part): part is string => typeof part === 'string' && part !== '');
}
