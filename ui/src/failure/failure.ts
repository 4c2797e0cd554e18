/** Why the app could not start. */
export interface StartFailure {
  message: string;
  /** Whether it is the chats that cannot be opened, about which something can be done. */
  history: boolean;
}
