/** The buttons of errors. */

import type { Error as HostError } from '../bindings/Error';
import { remedyOf } from '../format/remedies';
import type { Platform } from '../host';
import { t } from '../locales';

/** The button of an error, which shows a page of a window; `null` without a remedy. */
export function remedyButton(
  error: HostError,
  platform: Platform,
  report: (reason: unknown) => void,
): { label: string; run: () => void } | null {
  const remedy = remedyOf(error);
  if (remedy === null) return null;
  return { label: t(remedy.labelKey), run: () => void platform.showPage(remedy.page).catch(report) };
}
