/** The fake host's notes about the user. */

import type { Note } from '../../bindings/Note';
import type { Platform } from '../types';
import type { libraryControls } from './library';
import { chatsChanged, refusal } from './shared';
import type { Store } from './store';
import { notFound } from './tree';

/** The most notes of a project, and the most characters of one. */
const MOST = 100;
const LONGEST = 500;

export const noteControls = () => ({
  keptNotes: [] as (Note & { project: string | null })[],
});

type Notes = Store & ReturnType<typeof libraryControls> & ReturnType<typeof noteControls>;

export function notes(host: Notes) {
  const checked = (text: string): string => {
    const words = text.trim().replace(/\s+/g, ' ');
    if (words === '' || words.length > LONGEST) throw refused('it has no words, or too many');
    return words;
  };
  const checkProject = (id: string | null): void => {
    if (id !== null && !host.keptProjects.some((project) => project.id === id && !project.deleted)) throw notFound('folder');
  };
  const find = (id: string): Note => {
    const found = host.keptNotes.find((note) => note.id === id);
    if (!found) throw notFound('note');
    return found;
  };
  return {
    async notes(project) {
      return host.keptNotes
        .filter((note) => note.project === project)
        .map(({ id, text, chat, created_at }) => ({ id, text, chat, created_at }));
    },
    async addNote(project, text) {
      const words = checked(text);
      checkProject(project);
      const own = host.keptNotes.filter((note) => note.project === project);
      const known = own.find((note) => note.text === words);
      if (!known && own.length >= MOST) throw refused(`there are ${MOST} already; delete one first`);
      const note = known ?? { id: `note-${host.next++}`, text: words, chat: null, created_at: Date.now(), project };
      if (!known) host.keptNotes.push(note);
      chatsChanged(host);
      return { id: note.id, text: note.text, chat: note.chat, created_at: note.created_at };
    },
    async changeNote(id, text) {
      const words = checked(text);
      find(id).text = words;
      chatsChanged(host);
    },
    async deleteNote(id) {
      const gone = find(id);
      host.keptNotes = host.keptNotes.filter((note) => note !== gone);
      chatsChanged(host);
    },
    async useProjectNotes(id, uses_notes) {
      checkProject(id);
      const project = host.keptProjects.find((known) => known.id === id);
      if (project) project.uses_notes = uses_notes;
      chatsChanged(host);
    },
  } satisfies Partial<Platform>;
}

function refused(why: string): unknown {
  return refusal('bad_request', `the note was not stored: ${why}. Nothing was changed`, {}, 'note_refused');
}
