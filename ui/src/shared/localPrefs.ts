import type { Content } from '../bindings/Content';

/** The state of a window between two starts: the open chat, and the draft of a new chat. */
export interface LocalPrefs {
  /** Empty: a new one. */
  openChat: string;
  newDraft: readonly Content[];
}
