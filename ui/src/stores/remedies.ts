/** The buttons of errors. */

import type { Error as HostError } from '../bindings/Error';
import { remedyOf } from '../format/remedies';
import type { WindowPage } from '../bindings/WindowPage';
import type { Platform } from '../host';
import { t } from '../locales';

/** The button of an error, which shows a page of a window; `null` without a remedy, or if that page is `here`. */
export function remedyButton(
  error: HostError,
  platform: Platform,
  report: (reason: unknown) => void,
  here: WindowPage | null = null,
): { label: string; run: () => void } | null {
  const remedy = remedyOf(error);
  if (remedy === null || remedy.page === here) return null;
  return { label: t(remedy.labelKey), run: () => void platform.showPage(remedy.page, null).catch(report) };
}
