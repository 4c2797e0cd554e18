/** The fake host's chats: listed, opened, branched, compacted. */

import type { Content } from '../../bindings/Content';
import { textOf } from '../../shared/messageParts';
import type { SummaryProgress } from '../../bindings/SummaryProgress';
import type { Platform } from '../types';
import { changeSummary, inProject, type libraryControls } from './library';
import { checkSettings, newChatSettings } from './settings';
import { chatsChanged, pause, refusal } from './shared';
import { addChat, addMessage, changed, chatOf, contextOf, isRunning, messageOf, questionOf, refuse, replace, shown, type Store } from './store';
import { below, busy, EARLIER, ListSnapshots, leafBelow, relink, SUMMARY, textPart, viewOf, type Chat } from './tree';

export function chats(host: Store & ReturnType<typeof libraryControls>) {
  const snapshots = new ListSnapshots();
  /** Chats whose summary is to be given up. */
  const stopped = new Set<string>();

  const list = () =>
    [...host.kept.values()].filter((chat) => chat.trashed === null && chat.summary.id !== host.temporary).map((chat) => ({ ...inProject(host, chat.summary), running: isRunning(host, chat), has_draft: chat.draft.length > 0 }));
  const cut = (id: string, compaction_mark: { summary: string | null } | null) => {
    const { chat, message } = messageOf(host, id);
    replace(chat, { ...message, compaction_mark });
    changed(host, chat);
    return shown(chat);
  };
  /** The message up to which the context is dropped, so that the question has half of it. */
  const cutFor = (chat: Chat, question: Content[]): string => {
    const { messages } = viewOf(chat);
    const start = messages.findLastIndex((message) => message.compaction_mark !== null) + 1;
    const ends = messages.filter((_, at) => at >= start && (messages[at + 1]?.role ?? 'user') === 'user');
    const fits = ends.find((end) => {
      const { tokens, context } = contextOf(host, chat, messages.slice(messages.indexOf(end) + 1), question);
      return tokens <= (context ?? 4096) / 2;
    });
    const end = fits ?? ends.at(-1);
    if (!end) throw refusal('bad_request', 'There is nothing to forget.', {}, 'nothing_to_drop');
    return end.id;
  };
  const summarise = async (id: string, tell: (progress: SummaryProgress) => void): Promise<void> => {
    refuse(host, 'summarizeOldestTurns');
    for (let step = 0; step < 20; step++) {
      tell({ read: Math.min(step, 10) * 100, total: 1000, written: Math.max(0, step - 10) });
      await pause(host.pace);
      if (stopped.delete(id)) throw refusal('stopped', 'The summary was stopped.');
    }
  };

  return {
    async chats() {
      return list();
    },
    async chatsSince(snapshot) {
      return snapshots.list(list(), snapshot);
    },
    async chat(id) {
      return shown(chatOf(host, id));
    },
    async earlierMessages(id) {
      const { chat, message } = messageOf(host, id);
      return message.parent === null ? [] : viewOf({ ...chat, leaf: message.parent }).messages.slice(-EARLIER);
    },
    async createChat(settings) {
      refuse(host, 'createChat');
      const begun = settings ?? newChatSettings(host);
      checkSettings(begun);
      return viewOf(addChat(host, '', Date.now(), begun));
    },
    async beginTemporaryChat(settings) {
      refuse(host, 'beginTemporaryChat');
      checkSettings(settings);
      if (host.temporary !== null) host.kept.delete(host.temporary);
      const chat = addChat(host, '', Date.now(), settings);
      host.temporary = chat.summary.id;
      return viewOf(chat);
    },
    async temporaryChat() {
      return host.temporary === null ? null : shown(chatOf(host, host.temporary));
    },
    async keepTemporaryChat() {
      refuse(host, 'keepTemporaryChat');
      if (host.temporary !== null && isRunning(host, chatOf(host, host.temporary))) throw busy();
      host.temporary = null;
      chatsChanged(host);
    },
    async closeTemporaryChat() {
      if (host.temporary !== null) host.kept.delete(host.temporary);
      host.temporary = null;
    },
    async renameChat(id, title) {
      refuse(host, 'renameChat');
      changeSummary(host, id, { title });
    },
    async pinChat(id, pinned) {
      changeSummary(host, id, { pinned });
    },
    async deleteChat(id) {
      chatOf(host, id, true).trashed = Date.now();
      chatsChanged(host);
    },
    async restoreChat(id) {
      let chat = chatOf(host, id, true);
      if (chat.putBack) {
        host.kept.delete(id);
        chat = chat.putBack();
      }
      chat.trashed = null;
      changed(host, chat);
      return chat.summary;
    },
    async setChatSettings(id, settings) {
      checkSettings(settings);
      chatOf(host, id).settings = settings;
    },
    async setDraft(id, draft) {
      const chat = chatOf(host, id);
      const toggled = chat.draft.length > 0 !== draft.length > 0;
      chat.draft = draft;
      if (toggled) chatsChanged(host);
    },
    async markRead(id) {
      if (chatOf(host, id).summary.unread) changeSummary(host, id, { unread: false });
    },
    async setScrollPlace(id, place) {
      chatOf(host, id).place = place;
    },

    async showBranch(id) {
      const { chat, message } = messageOf(host, id);
      chat.leaf = leafBelow(chat, message.id);
      changed(host, chat);
      return shown(chat);
    },
    async editAnswer(id, text) {
      const { chat, message } = messageOf(host, id);
      if (text.trim() === '' || message.role !== 'assistant' || message.state === 'streaming' || message.parts.some((part) => part.kind === 'tool_call')) throw refusal('bad_request', 'This cannot be written over.');
      if (isRunning(host, chat)) throw busy();
      const { model, parts, parent } = message;
      addMessage(host, chat, { role: 'assistant', parent, state: 'complete', model, finish_reason: 'stop', edited: true, parts: [...parts.filter(({ kind }) => kind !== 'text'), textPart(text.trim())] });
      changed(host, chat);
      return shown(chat);
    },
    async deleteMessage(id, scope) {
      const { chat, message } = messageOf(host, id);
      if (isRunning(host, chat)) throw busy();
      const branch = viewOf(chat).messages;
      const root = scope === 'branch' ? message : questionOf(chat, message);
      const next = scope === 'branch' ? undefined : branch.slice(branch.indexOf(root) + 1).find(({ role }) => role === 'user');
      const before = { leaf: chat.leaf, messages: chat.messages };
      const gone = below(chat, root.id, next?.parent ?? null);
      const place = root.siblings.indexOf(root.id);
      const beside = root.siblings[place - 1] ?? root.siblings[place + 1];
      const mark = chat.messages.find(({ id: end }) => end === next?.parent)?.compaction_mark ?? null;
      chat.messages = chat.messages
        .filter((other) => !gone.has(other.id))
        .map((other) => (next && other.parent === next.parent ? { ...other, parent: root.parent } : other))
        .map((other) => (other.id === root.parent ? { ...other, compaction_mark: other.compaction_mark ?? mark } : other));
      if (chat.leaf !== null && gone.has(chat.leaf)) chat.leaf = beside === undefined ? root.parent : leafBelow(chat, beside);
      relink(chat);
      const trash = addChat(host, chat.summary.title, Date.now());
      trash.trashed = Date.now();
      trash.putBack = () => Object.assign(chat, before);
      trash.cut = { role: root.role, excerpt: textOf(root.parts).slice(0, 80), alone: gone.size === 1 };
      changed(host, chat);
      return trash.summary.id;
    },
    async forkChat(id, title) {
      const { chat, message } = messageOf(host, id);
      const copy = addChat(host, title, Date.now(), chat.settings);
      copy.summary = { ...copy.summary, project: chat.summary.project };
      for (const row of viewOf({ ...chat, leaf: message.id }).messages) {
        addMessage(host, copy, { ...row, id: `message-${host.next++}`, chat: copy.summary.id, parent: copy.leaf });
      }
      relink(copy);
      changed(host, copy);
      return copy.summary;
    },

    async contextUse(id, question) {
      const chat = chatOf(host, id);
      return contextOf(host, chat, viewOf(chat).messages, question);
    },
    async setCompactionMark(id, mark) {
      return cut(id, mark);
    },
    async dropOldestTurns(id, question) {
      return cut(cutFor(chatOf(host, id), question), { summary: null });
    },
    async summarizeOldestTurns(id, question, onProgress) {
      const message = cutFor(chatOf(host, id), question);
      await summarise(id, onProgress);
      return cut(message, { summary: SUMMARY });
    },
    async stopSummary(id) {
      stopped.add(id);
    },
    async forkWithSummary(id, title, onProgress) {
      await summarise(id, onProgress);
      const { settings, summary } = chatOf(host, id);
      const made = addChat(host, title, Date.now(), { ...settings, carried_summary: SUMMARY });
      made.summary = { ...made.summary, project: summary.project };
      changed(host, made);
      return viewOf(made);
    },
  } satisfies Partial<Platform>;
}
