/** Projects, the archive and the trash. */

import { createContext } from 'svelte';
import { SvelteSet } from 'svelte/reactivity';

import type { ChatSettings } from '../../bindings/ChatSettings';
import type { ExportFormat } from '../../bindings/ExportFormat';
import type { Project } from '../../bindings/Project';
import type { ImportReport } from '../../bindings/ImportReport';
import type { TrashedChat } from '../../bindings/TrashedChat';
import { chatTitle } from '../../format/format';
import { plainName } from '../../shared/displayNames';
import type { LocalPrefs } from '../../shared/localPrefs';
import { t } from '../../locales';
import type { Platform, Unsubscribe } from '../../host';
import type { Chats } from '../../stores/chats.svelte';
import type { Toasts } from '../../design/toasts.svelte';
import type { Undo } from '../../stores/undo.svelte';

/** The files that chats are taken from, for a chooser. */
export const IMPORTED_FILES = '.json,.zip,.ponderchat,application/json,application/zip';

/** The longest of them, in bytes; the host has the same limit. */
const LONGEST_IMPORT = 2 ** 30;

export class Library {
  projects = $state.raw<readonly Project[]>([]);
  trash = $state.raw<readonly TrashedChat[]>([]);
  /** The projects whose chats are not listed. */
  readonly folded: SvelteSet<string>;

  constructor(
    private readonly platform: Platform,
    private readonly chats: Chats,
    private readonly toasts: Toasts,
    private readonly undo: Undo,
    private readonly localPrefs: Pick<LocalPrefs, 'foldedProjects'>,
  ) {
    this.folded = new SvelteSet(localPrefs.foldedProjects);
  }

  /** Lists the projects and keeps the list current. */
  async open(): Promise<Unsubscribe> {
    const unsubscribe = await this.platform.onChatsChanged(() => void this.refresh());
    await this.refresh();
    await this.#try(async () => {
      const { read_only } = await this.platform.historyState();
      if (read_only) this.toasts.say(t('history.readOnly'));
    }, 'history');
    return unsubscribe;
  }

  async refresh(): Promise<void> {
    await this.#try(async () => {
      const projects = await this.platform.projects();
      this.projects = projects.map((project) => ({ ...project, name: plainName(project.name) }));
    }, 'projects');
  }

  project(id: string | null): Project | null {
    return this.projects.find((project) => project.id === id) ?? null;
  }

  /** The project of the open chat, or the one in which a new chat begins. */
  projectOf({ id, project }: { readonly id: string | null; readonly project: string | null }): Project | null {
    return this.project(id === null ? project : (this.chats.find(id)?.project ?? null));
  }

  /** Hides the chats of a project in the list, or shows them, also after the next start. */
  fold(project: string, folded: boolean): void {
    if (folded === this.folded.has(project)) return;
    if (folded) this.folded.add(project);
    else this.folded.delete(project);
    this.localPrefs.foldedProjects = [...this.folded].filter((id) => this.project(id) !== null);
  }

  /** Prefetches a project's files before the first question of a chat in it. That question reports any error. */
  prefetch(project: string, settings: ChatSettings): void {
    this.platform.prefetchProject(project, settings).catch(() => {});
  }

  async listTrash(): Promise<void> {
    await this.#try(async () => void (this.trash = await this.platform.trash()), 'trash');
  }

  /** Puts a chat away, or takes it back. */
  async archive(id: string, archived: boolean): Promise<void> {
    const title = chatTitle(this.chats.find(id)?.title ?? '');
    const archive = (away: boolean) => this.#change(() => this.platform.archiveChat(id, away), `chat ${id}`);
    if (!(await archive(archived))) return;
    const text = t(archived ? 'library.archived' : 'library.unarchived', { title });
    this.undo.offer(text, async () => void (await archive(!archived)), `archived ${id}`);
  }

  /** Puts a chat into a project, or into none. */
  async move(id: string, project: string | null): Promise<void> {
    const before = this.chats.find(id)?.project ?? null;
    const move = (to: string | null) => this.#change(() => this.platform.moveChat(id, to), `chat ${id}`);
    if (before === project || !(await move(project))) return;
    const name = this.project(project)?.name;
    const text = name === undefined ? t('library.movedOut') : t('library.moved', { name });
    this.undo.offer(text, async () => void (await move(before)), `moved ${id}`);
  }

  /** Makes a project; `null` if that failed. */
  async create(name: string): Promise<Project | null> {
    let made: Project | null = null;
    await this.#change(async () => void (made = await this.platform.createProject(plainName(name).trim())), 'project');
    return made;
  }

  async change(project: Project, name: string, systemPrompt: string): Promise<void> {
    const change = (to: string, prompt: string) =>
      this.#change(() => this.platform.changeProject(project.id, to, prompt), 'project');
    if (!(await change(name.trim() || project.name, systemPrompt))) return;
    this.undo.push(async () => void (await change(project.name, project.system_prompt)));
  }

  async deleteProject({ id, name }: Project): Promise<void> {
    if (!(await this.#change(() => this.platform.deleteProject(id), 'project'))) return;
    const restore = async (): Promise<void> =>
      void (await this.#change(() => this.platform.restoreProject(id), 'project'));
    this.undo.offer(t('library.projectDeleted', { name }), restore, `deleted ${id}`);
  }

  /** Has the chats of a project ask this collection, too. */
  async addCollection(id: string, collection: string): Promise<void> {
    await this.#setCollections(id, (chosen) => [...chosen.filter((other) => other !== collection), collection]);
    this.undo.settle(`removed ${collection} from ${id}`);
  }

  /** Has them no longer ask it; returns true on success. With its name, that can be undone. */
  async removeCollection(id: string, collection: string, name: string | null): Promise<boolean> {
    const project = this.project(id)?.name ?? '';
    if (!(await this.#setCollections(id, (chosen) => chosen.filter((other) => other !== collection)))) return false;
    if (name === null) return true;
    const text = t('documents.removed', { name, project });
    this.undo.offer(text, () => this.addCollection(id, collection), `removed ${collection} from ${id}`);
    return true;
  }

  /** Has the chats of a project told its notes, or not. */
  async useNotes(id: string, uses: boolean): Promise<void> {
    await this.#change(() => this.platform.useProjectNotes(id, uses), 'notes');
  }

  #setCollections(id: string, change: (chosen: readonly string[]) => string[]): Promise<boolean> {
    const chosen = this.project(id)?.collections ?? [];
    return this.#change(() => this.platform.setProjectCollections(id, change(chosen)), 'documents');
  }

  /** Takes a chat out of the trash. */
  async restore(id: string): Promise<void> {
    const restored = await this.#change(async () => void (await this.platform.restoreChat(id)), 'restore');
    if (restored) this.undo.settle(`deleted ${id}`);
    await this.listTrash();
  }

  /** Deletes chats of the trash for good. */
  async purge(ids: readonly string[]): Promise<void> {
    await this.#try(async () => {
      for (const id of ids) {
        await this.platform.purgeChat(id);
        this.undo.settle(`deleted ${id}`);
      }
    }, 'purge');
    await this.listTrash();
  }

  /** Exports these chats, or all of them, to a file, and reports its place. */
  async export(ids: string[] | null, format: ExportFormat, name: string): Promise<void> {
    await this.#try(async () => {
      const path = await this.platform.exportChats(ids, format, name);
      const show = (): void => void this.#try(() => this.platform.showExport(path), 'export');
      this.toasts.say(t('export.done', { path }), { label: t('export.show'), run: show });
    }, 'export');
  }

  /** Takes chats from a file; returns true on success. */
  import(file: File): Promise<boolean> {
    return this.#import(async () => {
      // The page would load the whole file before the host could refuse it.
      if (file.size > LONGEST_IMPORT) throw { code: 'bad_request', message: t('import.tooLong') };
      return this.platform.importChats(new Uint8Array(await file.arrayBuffer()));
    });
  }

  /** Takes chats from a file that was brought to the app. */
  async importOpened(key: string): Promise<void> {
    await this.#import(() => this.platform.importOpened(key));
  }

  async #import(call: () => Promise<ImportReport>): Promise<boolean> {
    this.toasts.settle('import');
    return this.#change(async () => {
      const { chats, already_here, dropped_images } = await call();
      const said = [t('import.done', { count: chats })];
      if (already_here > 0) said.push(t('import.known', { count: already_here }));
      if (dropped_images > 0) said.push(t('import.dropped', { count: dropped_images }));
      this.toasts.say(said.join(' '));
    }, 'import');
  }

  /** Makes a change and lists everything again; returns true on success. */
  async #change(call: () => Promise<void>, cause: string): Promise<boolean> {
    const done = await this.#try(call, cause);
    await Promise.all([this.refresh(), this.chats.refresh()]);
    return done;
  }

  async #try(call: () => Promise<void>, cause: string): Promise<boolean> {
    return this.toasts.attempt(call, cause);
  }
}

/** Projects, archive and trash. */
export const [useLibrary, provideLibrary] = createContext<Library>();
