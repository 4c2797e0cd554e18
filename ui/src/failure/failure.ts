import type { Error as HostError } from '../bindings/Error';

/** Why the app could not start. */
export interface StartFailure {
  error: HostError;
  /** Whether it is the chats that cannot be opened, about which something can be done. */
  history: boolean;
}
