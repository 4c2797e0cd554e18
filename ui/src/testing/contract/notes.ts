/** The rules of notes about the user. */

import { heard, MISSING, refused, same, type Case } from './checks';

export const noteCases: readonly Case[] = [
  {
    name: 'a note is one line, is noted once, and belongs to its project',
    async run(host) {
      const { id } = await host.createProject('With notes');
      const texts = async (project: string | null): Promise<string[]> => (await host.notes(project)).map(({ text }) => text);
      const before = await texts(null);
      await heard((listener) => host.onChatsChanged(listener), () => host.addNote(id, ' I sail.\n Often. '));
      const again = await host.addNote(id, 'I sail. Often.');
      same(await texts(id), ['I sail. Often.'], 'the notes of the project');
      same(await texts(null), before, 'the notes of other chats');
      same(again.chat, null, 'the chat of a note that nobody suggested');
      await host.changeNote(again.id, 'I row.');
      same(await texts(id), ['I row.'], 'the changed note');
      await host.deleteNote(again.id);
      same(await texts(id), [], 'the notes after it was deleted');
      await refused('not_found', () => host.changeNote(again.id, 'I fly.'));
      await refused('not_found', () => host.deleteNote(again.id));
      await refused('bad_request', () => host.addNote(id, '  \n '));
      await refused('bad_request', () => host.addNote(id, 'a'.repeat(501)));
      await refused('not_found', () => host.addNote(MISSING, 'I fly.'));
    },
  },
  {
    name: 'the chats of a project are told its notes only after somebody said so',
    async run(host) {
      const { id, uses_notes } = await host.createProject('Without notes');
      same(uses_notes, false, 'the switch of a new project');
      await heard((listener) => host.onChatsChanged(listener), () => host.useProjectNotes(id, true));
      same((await host.projects()).find((project) => project.id === id)?.uses_notes, true, 'the switch');
      await refused('not_found', () => host.useProjectNotes(MISSING, true));
    },
  },
];
