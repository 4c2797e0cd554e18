/** The fake host's library of chats: search, archive, trash, projects, import and export. */

import type { ChatSummary } from '../../bindings/ChatSummary';
import type { ExportFormat } from '../../bindings/ExportFormat';
import type { Project } from '../../bindings/Project';
import type { HistoryDamage } from '../../bindings/HistoryDamage';
import type { HistoryHit } from '../../bindings/HistoryHit';
import type { HistoryState } from '../../bindings/HistoryState';
import type { FileContent } from '../../shared/files';
import { matchesIn, searchTerms } from '../../shared/findText';
import { textOf } from '../../shared/messageParts';
import type { Platform } from '../types';
import { textOfFile, type fileControls } from './files';
import { chatsChanged, listen, refusal, type Shared } from './shared';
import { notFound } from './tree';

const TRASH_LASTS = 30 * 86_400_000;

/** A project with the files that were removed from it. */
type FakeProject = Omit<Project, 'files'> & { deleted: boolean; filed: { file: FileContent; removed: boolean }[] };

export const libraryControls = () => ({
  keptProjects: [] as FakeProject[],
  /** Projects that were read ahead, each time. */
  prefetched: [] as string[],
  /** The way the history was opened. */
  openedAs: { read_only: false } as HistoryState,
  /** A damaged history, and whether it turned out to be one. */
  damage: { known_chats: 0, readable: { chats: 0, messages: 0 }, backup: null, together: { chats: 0, messages: 0 } } as HistoryDamage,
  damageNotes: 0,
  /** The remedies that were chosen for an app that could not be opened. */
  remedies: [] as string[],
  exported: [] as { ids: string[] | null; format: ExportFormat; name: string }[],
  /** The code that was saved; `null`: the user closed the dialog. */
  savedCode: [] as ({ code: string; language: string } | null)[],
  /** True if the user closes the dialog for files. */
  closesDialogs: false,
});

type Library = Shared & ReturnType<typeof libraryControls>;

/** The project of a chat as the list shows it: none if it was deleted. */
export function inProject({ keptProjects }: Library, summary: ChatSummary): ChatSummary {
  const there = keptProjects.some(({ id, deleted }) => id === summary.project && !deleted);
  return there ? summary : { ...summary, project: null };
}

export function changeSummary(host: Shared, id: string, change: Partial<ChatSummary>): void {
  const chat = host.kept.get(id);
  if (!chat) throw notFound('chat');
  chat.summary = { ...chat.summary, ...change };
  chatsChanged(host);
}

export function library(host: Library & ReturnType<typeof fileControls>) {
  const project = (id: string): FakeProject => {
    const found = host.keptProjects.find((other) => other.id === id);
    if (!found) throw notFound('folder');
    return found;
  };
  const shownProject = (id: string): FakeProject => {
    const found = project(id);
    if (found.deleted) throw notFound('folder');
    return found;
  };
  return {
    async searchHistory({ text, model, since, until, without_titles }) {
      const words = searchTerms(text);
      const marksOf = (said: string): [number, number][] => words.flatMap((word) => matchesIn(said, word)).sort(([a], [b]) => a - b);
      const holds = (said: string): boolean => words.length > 0 && words.every((word) => matchesIn(said, word).length > 0);
      const hits: HistoryHit[] = [];
      for (const { summary, messages, trashed } of host.kept.values()) {
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
    },
    async archiveChat(id, archived) {
      changeSummary(host, id, { archived });
    },
    async trash() {
      const trashed = [...host.kept.values()].flatMap(({ summary, cut, trashed: at }) =>
        at === null ? [] : [{ chat: summary, messages: cut, deleted_for_good_at: at + TRASH_LASTS }],
      );
      return trashed.sort((a, b) => b.deleted_for_good_at - a.deleted_for_good_at);
    },
    async purgeChat(id) {
      if (host.kept.get(id)?.trashed == null) throw notFound('chat');
      host.kept.delete(id);
      chatsChanged(host);
    },

    async projects() {
      const left = host.keptProjects.filter(({ deleted }) => !deleted);
      return left
        .map(({ id, name, system_prompt, created_at, collections, uses_notes, filed }) => ({ id, name, system_prompt, created_at, collections, uses_notes, files: filed.flatMap(({ file, removed }) => (removed ? [] : [file])) }))
        .sort((a, b) => a.name.localeCompare(b.name));
    },
    async createProject(name) {
      const created = { id: `project-${host.keptProjects.length + 1}`, name, system_prompt: '', collections: [] as string[], uses_notes: false, created_at: Date.now() };
      host.keptProjects.push({ ...created, deleted: false, filed: [] });
      chatsChanged(host);
      return { ...created, files: [] };
    },
    async changeProject(id, name, system_prompt) {
      Object.assign(project(id), { name, system_prompt });
      chatsChanged(host);
    },
    async putProjectFile(id, file) {
      const { filed } = shownProject(id);
      if (file.kind !== 'file') throw refusal('bad_request', 'the file was not added to the folder: only documents can be in a folder. Nothing was changed', {}, 'project_file');
      textOfFile(host, file.attachment);
      const here = filed.find((other) => other.file.attachment === file.attachment);
      if (here) Object.assign(here, { file, removed: false });
      else filed.push({ file, removed: false });
      chatsChanged(host);
    },
    async removeProjectFile(id, attachment) {
      const here = project(id).filed.find(({ file, removed }) => file.attachment === attachment && !removed);
      if (!here) throw notFound('file');
      here.removed = true;
      chatsChanged(host);
    },
    async deleteProject(id) {
      project(id).deleted = true;
      chatsChanged(host);
    },
    async restoreProject(id) {
      project(id).deleted = false;
      chatsChanged(host);
    },
    async moveChat(id, target) {
      changeSummary(host, id, { project: target });
    },
    async prefetchProject(id) {
      host.prefetched.push(shownProject(id).id);
    },

    async exportChats(ids, format, name) {
      host.exported.push({ ids, format, name });
      return `/home/somebody/Downloads/${name}.${format}`;
    },
    async showExport() {},
    async importChats(bytes) {
      if (bytes.byteLength === 0) throw refusal('bad_request', 'the file could not be imported: it is no JSON. Nothing was changed', {}, 'import_failed');
      chatsChanged(host);
      return { chats: 2, messages: 9, already_here: 1, dropped_images: 2 };
    },
    async saveCode(code, language) {
      host.savedCode.push(host.closesDialogs ? null : { code, language });
      return host.closesDialogs ? null : `code.${language || 'txt'}`;
    },

    async historyState() {
      return host.openedAs;
    },
    async noteHistoryDamage() {
      host.damageNotes += 1;
    },
    async examineHistory() {
      return host.damage;
    },
    async repairHistory(remedy) {
      host.remedies.push(remedy);
      const contents = remedy === 'backup' ? host.damage.backup?.contents : host.damage.together;
      if (!contents || contents.chats === 0) throw refusal('history_damaged', 'nothing can be read');
      return { set_aside: '/home/ada/.local/share/ponder/history-damaged-1795600000000.sqlite', contents };
    },
    async openAgain() {
      host.remedies.push('open');
    },
    async showDataFolder() {
      host.remedies.push('folder');
    },
    async beginAnew() {
      host.remedies.push('anew');
    },
    async openReadOnly() {
      host.remedies.push('read');
    },
    onChatsChanged: (listener) => listen(host.chatListeners, listener),
  } satisfies Partial<Platform>;
}
