import type { Error as HostError } from '../bindings/Error';
import { t } from '../locales';
import { errorText } from '../locales/host';

/** The reason that a value was refused, for the line under its field. */
export function refusalText(error: HostError): string {
  const { low, high } = error.arguments ?? {};
  if (low !== undefined && high !== undefined) return t('chatSettings.range', { low, high });
  return low === undefined ? errorText(error) : t('chatSettings.least', { low });
}
