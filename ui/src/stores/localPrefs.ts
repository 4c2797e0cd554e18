import type { Content } from '../bindings/Content';

/** What a window remembers between two starts: which chat was open, and the draft of a new chat. */
export interface LocalPrefs {
  /** Empty: a new one. */
  openChat: string;
  newDraft: readonly Content[];
}
