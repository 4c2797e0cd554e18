/** The checks of a case of the contract; a broken promise is named. */

import type { ErrorCode } from '../bindings/ErrorCode';
import { asHostError } from './types';

/** The call is to be refused with this code. */
export async function refused(code: ErrorCode, call: () => Promise<unknown>): Promise<void> {
  const error = await call().then(
    () => null,
    (reason: unknown) => asHostError(reason),
  );
  if (error?.code !== code) throw new Error(`${call.toString()} was to be refused with ${code}, not ${JSON.stringify(error)}`);
}

/** The promise, put into words by `what`, is to hold. */
export function holds(value: boolean, what: string): void {
  if (!value) throw new Error(`it does not hold that ${what}`);
}

/** Two values are to be the same; the order of keys does not count. */
export function same(found: unknown, wanted: unknown, what: string): void {
  const [a, b] = [sorted(found), sorted(wanted)];
  if (a !== b) throw new Error(`${what}: ${a} instead of ${b}`);
}

/** JSON with the keys in order. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
