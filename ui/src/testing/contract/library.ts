/** The rules of search, projects and the trash. */

import type { ChatSummary } from '../../bindings/ChatSummary';
import type { HistoryQuery } from '../../bindings/HistoryQuery';
import { plain, refused, same, within, type Case } from './checks';
import type { Platform } from '../../host/types';

/** The hits of a search, once everything is indexed. */
async function search(host: Platform, query: HistoryQuery): Promise<string[]> {
  for (;;) {
    const { hits, indexing } = await host.searchHistory(query);
    if (!indexing) return hits.map(({ chat }) => chat);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function listed(host: Platform, id: string): Promise<ChatSummary | undefined> {
  return (await host.chats()).find((chat) => chat.id === id);
}

export const libraryCases: readonly Case[] = [
  {
    name: 'a chat is found by the words of its title, outside the trash',
    async run(host) {
      const { summary } = await host.createChat(plain);
      await host.renameChat(summary.id, 'Xylophones in Quito');
      const text = 'quito xyloph';
      const query = { text, model: null, since: null, until: null, without_titles: false };
      const found = (more: Partial<HistoryQuery> = {}): Promise<string[]> =>
        within('the index', search(host, { ...query, ...more }));
      same(await found(), [summary.id], 'the hits');
      same(await found({ without_titles: true }), [], 'the hits without titles');
      await host.deleteChat(summary.id);
      same(await found(), [], 'the hits in the trash');
    },
  },
  {
    name: 'a deleted project keeps its chats, and takes them back',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const { id } = await host.createProject('Contract');
      await host.moveChat(summary.id, id);
      same((await listed(host, summary.id))?.project, id, 'its project');
      await host.changeProject(id, 'Contracts', 'Be brief.');
      await host.deleteProject(id);
      same((await listed(host, summary.id))?.project, null, 'its project while that is deleted');
      same((await host.projects()).some((project) => project.id === id), false, 'whether the project is listed');
      await host.restoreProject(id);
      same((await listed(host, summary.id))?.project, id, 'its project again');
      const back = (await host.projects()).find((project) => project.id === id);
      same([back?.name, back?.system_prompt], ['Contracts', 'Be brief.'], 'the project');
      await host.deleteProject(id);
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'an archived chat stays listed, and a purged one is gone for good',
    async run(host) {
      const { summary } = await host.createChat(plain);
      await host.archiveChat(summary.id, true);
      same((await listed(host, summary.id))?.archived, true, 'whether it is archived');
      await refused('not_found', () => host.purgeChat(summary.id));
      await host.deleteChat(summary.id);
      const trashed = (await host.trash()).find(({ chat }) => chat.id === summary.id);
      same((trashed?.deleted_for_good_at ?? 0) > Date.now(), true, 'whether it is kept for a while');
      await host.purgeChat(summary.id);
      await refused('not_found', () => host.restoreChat(summary.id));
    },
  },
];
