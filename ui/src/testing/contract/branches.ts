/** The rules of the tree of a chat. */

import { words } from '../../shared/messageParts';
import { follow, plain, refused, same, SHORT, textOf, type Case } from './checks';

export const branchCases: readonly Case[] = [
  {
    name: 'an answer that is written over is a sibling',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const { answer } = await host.send(summary.id, words(SHORT), 'end');
      await follow(host, answer.id);
      await refused('bad_request', () => host.editAnswer(answer.id, '  '));
      const edited = (await host.editAnswer(answer.id, ' Five. ')).messages.at(-1);
      same([edited?.edited, edited?.state, textOf(edited)], [true, 'complete', 'Five.'], 'the answer that is shown');
      same(edited?.siblings, [answer.id, edited?.id], 'its siblings');
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'a deleted turn leaves the next one in its place, and comes back',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const ids = async (): Promise<string[]> => (await host.chat(summary.id)).messages.map(({ id }) => id);
      const first = await host.send(summary.id, words(SHORT), 'end');
      await follow(host, first.answer.id);
      const second = await host.send(summary.id, words(SHORT), 'end');
      await follow(host, second.answer.id);
      const all = await ids();
      const trash = await host.deleteMessage(first.answer.id, 'turn');
      same(await ids(), [second.question.id, second.answer.id], 'the branch without the first turn');
      const deleted = (await host.trash()).find(({ chat }) => chat.id === trash)?.messages;
      same(deleted, { role: 'user', excerpt: SHORT, alone: false }, 'the deleted messages');
      await host.restoreChat(trash);
      same(await ids(), all, 'the branch, as before');
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'a fork has the messages up to its end',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const { question, answer } = await host.send(summary.id, words(SHORT), 'end');
      await follow(host, answer.id);
      const fork = await host.forkChat(question.id, 'A fork');
      const { messages, settings } = await host.chat(fork.id);
      same([fork.title, messages.map(textOf)], ['A fork', [SHORT]], 'its title and texts');
      same(settings, plain, 'its settings');
      for (const { id } of [summary, fork]) await host.deleteChat(id);
    },
  },
  {
    name: 'two answers to one question are siblings, and the chat shows the first',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const { question, answers } = await host.sendToTwo(summary.id, words(SHORT), 'end', [plain, { ...plain, max_tokens: 8 }]);
      for (const { id } of answers) await follow(host, id);
      const shown = (await host.chat(summary.id)).messages;
      same(shown.map(({ id }) => id), [question.id, answers[0].id], 'the branch that is shown');
      same(shown.at(-1)?.siblings.toSorted(), answers.map(({ id }) => id).toSorted(), 'the siblings');
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'a compacted chat takes less of the context',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const { answer } = await host.send(summary.id, words(SHORT), 'end');
      await follow(host, answer.id);
      const tokens = async (): Promise<number> => (await host.contextUse(summary.id, words(SHORT))).tokens;
      const before = await tokens();
      const compacted = (await host.setCompactionMark(answer.id, { summary: null })).messages.at(-1);
      same(compacted?.compaction_mark, { summary: null }, 'the mark');
      same((await tokens()) < before, true, 'whether it takes less');
      await host.setCompactionMark(answer.id, null);
      same(await tokens(), before, 'its tokens, as before');
      await host.deleteChat(summary.id);
    },
  },
];
