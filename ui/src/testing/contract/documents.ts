/** The rules of collections of documents and of citations. Only a dialog of the system adds a collection, so no case does. */

import type { QuotedPassage } from '../../bindings/QuotedPassage';
import { words } from '../../shared/messageParts';
import { type Case, finished, follow, heard, MISSING, plain, refused, same, SHORT } from './checks';

const PASSAGE: QuotedPassage = {
  number: 1,
  collection: MISSING,
  file: 'tides.md',
  file_hash: '0'.repeat(64),
  headings: '',
  page: null,
  first_line: 1,
  last_line: 1,
  text: SHORT,
};

export const documentCases: readonly Case[] = [
  {
    name: 'a collection that is not there is not_found, and none is there before one was chosen',
    async run(host) {
      const { collections, embeddings } = await host.collections();
      same([collections, embeddings.done, embeddings.of], [[], 0, 0], 'the collections');
      (await host.onCollectionsChanged(() => {}))();
      await refused('not_found', () => host.collectionFiles(MISSING));
      await refused('not_found', () => host.renameCollection(MISSING, 'Notes'));
      await refused('not_found', () => host.pauseCollection(MISSING, true));
      await refused('not_found', () => host.removeCollection(MISSING));
      await refused('not_found', () => host.readCollectionImages(MISSING, 'pebble'));
      await host.stopCollectionImages(MISSING);
      await refused('not_found', () => host.openPassage(PASSAGE));
      await refused('not_found', () => host.passagePage({ ...PASSAGE, page: 1 }, 1, 800));
    },
  },
  {
    name: 'a project keeps the collections that its chats ask, also those that are gone',
    async run(host) {
      const { id } = await host.createProject('With documents');
      const asked = async (): Promise<string[] | undefined> =>
        (await host.projects()).find((project) => project.id === id)?.collections;
      same(await asked(), [], 'the collections of a new project');
      await heard((listener) => host.onChatsChanged(listener), () => host.setProjectCollections(id, [MISSING]));
      same(await asked(), [MISSING], 'its collections');
      await host.setProjectCollections(id, []);
      same(await asked(), [], 'its collections after they were taken out');
      await refused('not_found', () => host.setProjectCollections(MISSING, []));
      await host.deleteProject(id);
      await refused('not_found', () => host.setProjectCollections(id, []));
    },
  },
  {
    name: 'an answer without passages has none to hold it against, and nobody sends passages',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const content = words(SHORT);
      const coverage = { passages: 1, of_passages: 1, files: 1, of_files: 1, unread: 0 };
      const passages = { kind: 'passages' as const, passages: [PASSAGE], coverage };
      await refused('bad_request', () => host.send(summary.id, [passages, ...content], 'end'));
      const { answer } = await host.send(summary.id, content, 'end');
      const { id } = finished(await follow(host, answer.id));
      const { citations } = await host.citations(id);
      same(citations.every(({ verdict }) => verdict.kind === 'dangling'), true, 'no mark of it has a passage');
      await refused('not_found', () => host.citations(MISSING));
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'a chat without documents has none to be read, and nothing is stored',
    async run(host) {
      const { summary } = await host.createChat(plain);
      await refused('not_found', () => host.readingCost(summary.id, null, plain));
      await refused('not_found', () => host.readingCost(null, null, plain));
      const content = words(SHORT);
      await refused('not_found', () => host.sendAfterReading(summary.id, content, 'end', () => {}));
      await refused('bad_request', () => host.sendAfterReading(summary.id, words(' '), 'end', () => {}));
      await refused('not_found', () => host.sendAfterReading(MISSING, content, 'end', () => {}));
      await host.stopReading(summary.id);
      same((await host.chat(summary.id)).messages, [], 'its messages');
      await host.deleteChat(summary.id);
    },
  },
];
