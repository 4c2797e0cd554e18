/** Notes about the user, of one project or for chats outside of projects. */

import type { Note } from '../../bindings/Note';
import { asHostError, type HostError, type Platform } from '../../host';
import type { Toasts } from '../../design/toasts.svelte';
import { t } from '../../locales';

export class Notes {
  /** The oldest first; `null` until they were read. */
  list = $state.raw<readonly Note[] | null>(null);
  /** The reason why they could not be read. */
  problem = $state.raw<HostError | null>(null);

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
    private readonly project: string | null,
  ) {}

  async refresh(): Promise<void> {
    try {
      this.list = await this.platform.notes(this.project);
      this.problem = null;
    } catch (reason) {
      this.problem = asHostError(reason);
    }
  }

  /** Adds a note. Says why it could not be added; `null` if it was. */
  async add(text: string): Promise<HostError | null> {
    try {
      await this.platform.addNote(this.project, text);
    } catch (reason) {
      return asHostError(reason);
    }
    await this.refresh();
    return null;
  }

  async change(note: Note, text: string): Promise<void> {
    if (text.trim() === note.text || text.trim() === '') return this.refresh();
    await this.toasts.attempt(() => this.platform.changeNote(note.id, text), 'notes');
    await this.refresh();
  }

  /** Deletes a note, which can be undone. */
  async remove(note: Note): Promise<void> {
    const done = await this.toasts.attempt(() => this.platform.deleteNote(note.id), 'notes');
    await this.refresh();
    if (!done) return;
    this.toasts.say(t('notes.removed'), { label: t('common.undo'), run: () => void this.#putBack(note) });
  }

  async #putBack({ text }: Note): Promise<void> {
    await this.toasts.attempt(async () => void (await this.platform.addNote(this.project, text)), 'notes');
    await this.refresh();
  }
}
