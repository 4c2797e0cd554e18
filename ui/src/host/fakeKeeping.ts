/** The fake host's chats as they are kept: found, archived, in the trash, in folders. */

import type { ChatSummary } from '../bindings/ChatSummary';
import type { Content } from '../bindings/Content';
import type { Error as HostError } from '../bindings/Error';
import type { ExportFormat } from '../bindings/ExportFormat';
import type { Folder } from '../bindings/Folder';
import type { HistoryHit } from '../bindings/HistoryHit';
import type { HistoryHits } from '../bindings/HistoryHits';
import type { HistoryQuery } from '../bindings/HistoryQuery';
import type { HistoryState } from '../bindings/HistoryState';
import type { ImportReport } from '../bindings/ImportReport';
import type { TrashedChat } from '../bindings/TrashedChat';
import type { FileContent } from '../shared/files';
import { matchesIn, searchTerms } from '../shared/findText';
import { textOf } from '../shared/messageParts';
import { FakeDesktop } from './fakeDesktop';
import type { Chat as FakeChat } from './fakeTree';
import type { KeepingPlatform } from './keeping';

const TRASH_LASTS = 30 * 86_400_000;

const NO_FOLDER: HostError = { code: 'not_found', message: 'There is no such folder any more. Nothing was changed.' };

/** A folder with what was removed from it. */
type FakeFolder = Omit<Folder, 'files'> & { deleted: boolean; filed: { file: FileContent; removed: boolean }[] };

export class FakeKeeping extends FakeDesktop implements KeepingPlatform {
  protected readonly kept = new Map<string, FakeChat>();
  protected readonly chatListeners = new Set<() => void>();
  #folders: FakeFolder[] = [];

  async searchHistory({ text, model, since, until, without_titles }: HistoryQuery): Promise<HistoryHits> {
    const words = searchTerms(text);
    const marksOf = (said: string): [number, number][] => words.flatMap((word) => matchesIn(said, word)).sort(([a], [b]) => a - b);
    const holds = (said: string): boolean => words.length > 0 && words.every((word) => matchesIn(said, word).length > 0);
    const hits: HistoryHit[] = [];
    for (const { summary, messages, trashed } of this.kept.values()) {
      if (trashed !== null) continue;
      const { id: chat, title } = summary;
      if (model === null && !without_titles && holds(title)) hits.push({ chat, title, message: null, role: null, model: null, at: summary.updated_at, snippet: title, marks: marksOf(title) });
      for (const { id, role, parts, created_at: at, model: by } of messages) {
        const said = textOf(parts).replace(/\s+/g, ' ');
        const inTime = (since === null || at >= since) && (until === null || at < until);
        if (holds(said) && inTime && (model === null || by === model)) hits.push({ chat, title, message: id, role, model: by, at, snippet: said, marks: marksOf(said) });
      }
    }
    return { hits: hits.sort((a, b) => Number(a.message !== null) - Number(b.message !== null) || b.at - a.at), more: false, indexing: false };
  }

  async archiveChat(id: string, archived: boolean): Promise<void> {
    this.changeSummary(id, { archived });
  }
  async trash(): Promise<TrashedChat[]> {
    const trashed = [...this.kept.values()].flatMap(({ summary, trashed }) => (trashed === null ? [] : [{ chat: summary, deleted_for_good_at: trashed + TRASH_LASTS }]));
    return trashed.sort((a, b) => b.deleted_for_good_at - a.deleted_for_good_at);
  }
  async purgeChat(id: string): Promise<void> {
    if (this.kept.get(id)?.trashed == null) throw { code: 'not_found', message: 'There is no such chat any more. Nothing was changed.' };
    this.kept.delete(id);
    this.tell();
  }

  async folders(): Promise<Folder[]> {
    const left = this.#folders.filter((folder) => !folder.deleted);
    return left
      .map(({ id, name, system_prompt, created_at, filed }) => ({ id, name, system_prompt, created_at, files: filed.flatMap(({ file, removed }) => (removed ? [] : [file])) }))
      .sort((a, b) => a.name.localeCompare(b.name));
  }
  async createFolder(name: string): Promise<Folder> {
    const folder = { id: `folder-${this.#folders.length + 1}`, name, system_prompt: '', created_at: Date.now() };
    this.#folders.push({ ...folder, deleted: false, filed: [] });
    this.tell();
    return { ...folder, files: [] };
  }
  async changeFolder(id: string, name: string, systemPrompt: string): Promise<void> {
    Object.assign(this.#folder(id), { name, system_prompt: systemPrompt });
    this.tell();
  }
  async putFolderFile(id: string, file: Content): Promise<void> {
    const { filed, deleted } = this.#folder(id);
    if (deleted) throw NO_FOLDER;
    if (file.kind !== 'file') throw { code: 'bad_request', message: 'the file was not added to the folder: only documents can be in a folder. Nothing was changed' } satisfies HostError;
    await this.fileText(file.attachment);
    const here = filed.find((other) => other.file.attachment === file.attachment);
    if (here) Object.assign(here, { file, removed: false });
    else filed.push({ file, removed: false });
    this.tell();
  }
  async removeFolderFile(id: string, attachment: string): Promise<void> {
    const here = this.#folder(id).filed.find(({ file, removed }) => file.attachment === attachment && !removed);
    if (!here) throw { code: 'not_found', message: 'there is no such file; it may have been deleted' } satisfies HostError;
    here.removed = true;
    this.tell();
  }
  async deleteFolder(id: string): Promise<void> {
    this.#folder(id).deleted = true;
    this.tell();
  }
  async restoreFolder(id: string): Promise<void> {
    this.#folder(id).deleted = false;
    this.tell();
  }
  async moveChat(id: string, folder: string | null): Promise<void> {
    this.changeSummary(id, { folder });
  }
  /** Folders whose files were to be read ahead, each time, for the tests of that. */
  readonly prefetched: string[] = [];
  async prefetchFolder(id: string): Promise<void> {
    if (this.#folder(id).deleted) throw NO_FOLDER;
    this.prefetched.push(id);
  }

  /** How the history was opened, for the tests of that. */
  openedAs: HistoryState = { read_only: false, repaired: null };
  /** What a person did about an app that could not be opened. */
  readonly remedies: string[] = [];

  /** What was exported. */
  readonly exported: { ids: string[] | null; format: ExportFormat; name: string }[] = [];

  async exportChats(ids: string[] | null, format: ExportFormat, name: string): Promise<string> {
    this.exported.push({ ids, format, name });
    return `/home/somebody/Downloads/${name}.${format}`;
  }
  async showExport(): Promise<void> {}
  async importChats(bytes: ArrayBuffer): Promise<ImportReport> {
    if (bytes.byteLength === 0) throw { code: 'bad_request', message: 'the file could not be imported: it is no JSON. Nothing was changed' };
    this.tell();
    return { chats: 2, messages: 9, already_here: 1 };
  }

  /** What code was saved; where `null` stands, the person closed the dialog. */
  readonly savedCode: ({ code: string; language: string } | null)[] = [];
  /** Whether the person closes the dialog for files. */
  closesDialogs = false;

  async saveCode(code: string, language: string): Promise<string | null> {
    this.savedCode.push(this.closesDialogs ? null : { code, language });
    return this.closesDialogs ? null : `code.${language || 'txt'}`;
  }

  async historyState(): Promise<HistoryState> {
    return this.openedAs;
  }
  async showDataFolder(): Promise<void> {
    this.remedies.push('folder');
  }
  async beginAnew(): Promise<void> {
    this.remedies.push('anew');
  }
  async openReadOnly(): Promise<void> {
    this.remedies.push('read');
  }

  /** A chat as the list shows it: in no folder that was deleted. */
  protected summaryOf({ summary }: FakeChat): ChatSummary {
    const inFolder = this.#folders.some(({ id, deleted }) => id === summary.folder && !deleted);
    return inFolder ? summary : { ...summary, folder: null };
  }

  protected changeSummary(id: string, change: Partial<ChatSummary>): void {
    const chat = this.kept.get(id);
    if (!chat) throw { code: 'not_found', message: 'There is no such chat any more. Nothing was changed.' };
    chat.summary = { ...chat.summary, ...change };
    this.tell();
  }

  protected tell(): void {
    for (const listener of this.chatListeners) queueMicrotask(listener);
  }

  #folder(id: string): FakeFolder {
    const folder = this.#folders.find((other) => other.id === id);
    if (!folder) throw NO_FOLDER;
    return folder;
  }
}
