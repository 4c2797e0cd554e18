/** Files on their way into a project, and out of it. They are read by the host one after the other. */

import type { Project } from '../../bindings/Project';
import { isImage, LONGEST_FILE, type FileContent } from '../../shared/files';
import { t } from '../../locales';
import { errorText } from '../../locales/host';
import { asHostError, type Platform } from '../../host';
import type { Undo } from '../../stores/undo.svelte';

/** A file that is not in the project: it is being read, or it cannot be taken. */
export interface ComingFile {
  readonly key: number;
  readonly name: string;
  /** Why it cannot be taken; `null` while it is being read. */
  readonly problem: string | null;
}

let nextKey = 1;

export class ProjectFiles {
  /** Files that are being read, and those that cannot be taken. */
  coming = $state.raw<readonly ComingFile[]>([]);
  /** The file that was taken out last, until something else is done. */
  removed = $state.raw<FileContent | null>(null);
  /** The reason why the last change of a file in the project failed. */
  problem = $state('');

  #reading: Promise<void> = Promise.resolve();

  constructor(
    private readonly platform: Pick<Platform, 'addFile' | 'putProjectFile' | 'removeProjectFile'>,
    private readonly project: Pick<Project, 'id' | 'name'>,
    private readonly undo: Undo,
    /** Lists the projects again. */
    private readonly refresh: () => Promise<void>,
  ) {}

  /** Reads files; each is added to the project once that is done. */
  add(files: readonly File[]): void {
    this.#begin();
    for (const file of files) {
      const coming = { key: nextKey++, name: file.name, problem: null };
      this.coming = [...this.coming, coming];
      this.#reading = this.#reading.then(() => this.#read(coming, file));
    }
  }

  /** Removes the message about a file that cannot be added. */
  dismiss(key: number): void {
    this.coming = this.coming.filter((one) => one.key !== key);
  }

  /** Stores a file in the project, with the chosen part of it; an existing one keeps its place. */
  async put(file: FileContent): Promise<void> {
    this.#begin();
    if (await this.#change(() => this.platform.putProjectFile(this.project.id, file)))
      this.undo.settle(this.#removal(file));
  }

  /** Takes a file out, which can be taken back. */
  async remove(file: FileContent): Promise<void> {
    this.#begin();
    if (!(await this.#change(() => this.platform.removeProjectFile(this.project.id, file.attachment)))) return;
    this.removed = file;
    const text = t('project.fileRemoved', { name: file.name, project: this.project.name });
    this.undo.offer(text, () => this.put(file), this.#removal(file));
  }

  /** The name of a file's removal for its report. */
  #removal(file: FileContent): string {
    return `removed ${file.attachment} from ${this.project.id}`;
  }

  #begin(): void {
    this.removed = null;
    this.problem = '';
  }

  async #read(coming: ComingFile, file: File): Promise<void> {
    try {
      if (isImage(file)) throw { code: 'file_broken', message: t('project.noImages') };
      if (file.size > LONGEST_FILE) throw { code: 'file_broken', message: t('file.tooLarge') };
      const content = await this.platform.addFile(new Uint8Array(await file.arrayBuffer()), file.name, '');
      await this.platform.putProjectFile(this.project.id, content);
      this.dismiss(coming.key);
      await this.refresh();
    } catch (reason) {
      const problem = errorText(asHostError(reason));
      this.coming = this.coming.map((one) => (one.key === coming.key ? { ...one, problem } : one));
    }
  }

  async #change(call: () => Promise<void>): Promise<boolean> {
    try {
      await call();
    } catch (reason) {
      this.problem = errorText(asHostError(reason));
      return false;
    } finally {
      await this.refresh();
    }
    return true;
  }
}
