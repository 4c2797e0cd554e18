/** What the windows can ask of their host about finding chats and keeping them. */

import type { ChatSettings } from '../bindings/ChatSettings';
import type { Content } from '../bindings/Content';
import type { ExportFormat } from '../bindings/ExportFormat';
import type { Folder } from '../bindings/Folder';
import type { HistoryHits } from '../bindings/HistoryHits';
import type { HistoryQuery } from '../bindings/HistoryQuery';
import type { HistoryState } from '../bindings/HistoryState';
import type { ImportReport } from '../bindings/ImportReport';
import type { TrashedChat } from '../bindings/TrashedChat';

export interface KeepingPlatform {
  /** Where words stand in titles, questions, answers and names of what is attached, in all chats outside the trash. */
  searchHistory(query: HistoryQuery): Promise<HistoryHits>;
  /** Puts a chat away, or takes it back. */
  archiveChat(id: string, archived: boolean): Promise<void>;
  /** The chats in the trash, the latest first. */
  trash(): Promise<TrashedChat[]>;
  /** Deletes a chat of the trash for good. */
  purgeChat(id: string): Promise<void>;
  /** All folders, by their names. */
  folders(): Promise<Folder[]>;
  createFolder(name: string): Promise<Folder>;
  changeFolder(id: string, name: string, systemPrompt: string): Promise<void>;
  /** Puts a file that was added into a folder, at the end; one whose text is in it, or was removed from it, gets this name and this part in its place. */
  putFolderFile(id: string, file: Content): Promise<void>;
  /** Takes a file out of a folder; {@link putFolderFile} brings it back. */
  removeFolderFile(id: string, attachment: string): Promise<void>;
  /** Deletes a folder; its chats stay, outside of it. */
  deleteFolder(id: string): Promise<void>;
  /** Takes back that a folder was deleted. */
  restoreFolder(id: string): Promise<void>;
  /** Puts a chat into a folder, or into none. */
  moveChat(id: string, folder: string | null): Promise<void>;
  /** Has the model read a folder's files, if it is loaded and idle, because a chat with these settings is about to begin there. */
  prefetchFolder(id: string, settings: ChatSettings): Promise<void>;

  /** Writes these chats, or all of them, to a new file in the person's folder for downloads; gives its path. */
  exportChats(ids: string[] | null, format: ExportFormat, name: string): Promise<string>;
  /** Shows an exported file in the system's file browser. */
  showExport(path: string): Promise<void>;
  /** Takes chats from a file that Ponder, ChatGPT, Claude or LM Studio wrote. */
  importChats(bytes: ArrayBuffer): Promise<ImportReport>;
  /** Writes code in this language to a file that the person chooses; the file's name, or `null` if they chose none. */
  saveCode(code: string, language: string): Promise<string | null>;

  /** How the history was opened. */
  historyState(): Promise<HistoryState>;

  /** Shows the folder of all data. Only for an app that could not be opened, as the next two. */
  showDataFolder(): Promise<void>;
  /** Moves the history out of the way, where it is kept, and starts the app again with an empty one. */
  beginAnew(): Promise<void>;
  /** Starts the app again with a copy of all that can be read. */
  openReadOnly(): Promise<void>;
}
