/** The fake host's data on disk. */

import type { DataKind } from '../../bindings/DataKind';
import type { HistoryBackup } from '../../bindings/HistoryBackup';
import type { Platform } from '../types';
import { imageBytes, type imageControls } from './images';
import { ask, chatsChanged, refusal, type Shared } from './shared';

export const dataControls = () => ({
  backups: [] as HistoryBackup[],
  /** Damaged files that were set aside, and the chats that each still has. */
  damagedFiles: [] as (HistoryBackup & { chats: number })[],
  /** The kinds of data whose folders were shown. */
  revealedData: [] as DataKind[],
});

export function data(host: Shared & ReturnType<typeof dataControls> & ReturnType<typeof imageControls>) {
  return {
    async dataUse() {
      const models = host.local.reduce((sum, model) => sum + model.bytes, 0);
      return { folder: '/Users/ada/Library/Application Support/Ponder', chats: host.kept.size, history: 1_200_000, attachments: imageBytes(host), models, backups: host.backups, set_aside: host.damagedFiles };
    },
    async backUpNow() {
      host.backups = [{ made_at: Date.now(), bytes: 900_000 }, ...host.backups].slice(0, 5);
    },
    async addFromSetAside(setAsideAt) {
      const file = host.damagedFiles.find(({ made_at }) => made_at === setAsideAt);
      if (!file) throw refusal('not_found', 'this damaged file is not here any more; nothing was changed');
      const chats = file.chats;
      file.chats = 0;
      return { chats, messages: chats * 2 };
    },
    async revealData(kind) {
      host.revealedData.push(kind);
    },
    async deleteAllChats() {
      const answer = ask(host, 'delete');
      if (answer === 'no') return false;
      host.kept.clear();
      if (answer === 'more') host.backups = [];
      chatsChanged(host);
      return true;
    },
  } satisfies Partial<Platform>;
}
