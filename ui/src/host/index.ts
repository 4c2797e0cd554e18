/** The only door to the host. */

export { asHostError } from './types';
export type { HostError, Platform, Unsubscribe } from './types';
