/**
 * The dialog over the chat window: the palette, the archive and the trash, a project, the documents, an export, an
 * import. One at a time.
 */

import { createContext } from 'svelte';

import type { ChatSummary } from '../../bindings/ChatSummary';
import type { Project } from '../../bindings/Project';

export type Dialog =
  | { kind: 'palette' }
  | { kind: 'kept' }
  | { kind: 'move'; chat: ChatSummary }
  | { kind: 'project'; project: Project }
  | { kind: 'documents' }
  | { kind: 'export'; chats: readonly ChatSummary[] }
  | { kind: 'import' };

export class Dialogs {
  shown = $state.raw<Dialog | null>(null);

  show(dialog: Dialog): void {
    this.shown = dialog;
  }
}

/** The dialogs of the chat window. */
export const [useDialogs, provideDialogs] = createContext<Dialogs>();
