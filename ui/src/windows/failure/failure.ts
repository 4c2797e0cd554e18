import type { Error as HostError } from '../../bindings/Error';

/** Why the app could not start, or cannot go on. */
export interface StartFailure {
  error: HostError;
  /** True if the chats cannot be opened, which the user can fix. */
  history: boolean;
  /** True if the app runs, and met the damage meanwhile. */
  running: boolean;
}
