import type { Content } from '../bindings/Content';

/** The state of a window between two starts: the open chat, the draft of a new chat, the folded projects. */
export interface LocalPrefs {
  /** Empty: a new one. */
  openChat: string;
  newDraft: readonly Content[];
  foldedProjects: readonly string[];
}
