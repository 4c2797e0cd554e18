/** The fake host's data on disk. */

import type { HistoryBackup } from '../../bindings/HistoryBackup';
import type { Platform } from '../types';
import { imageBytes, type imageControls } from './images';
import { chatsChanged, type Shared } from './shared';

export const dataControls = () => ({
  backups: [] as HistoryBackup[],
  /** The number of times that the folder of all data was shown. */
  revealedData: 0,
});

export function data(host: Shared & ReturnType<typeof dataControls> & ReturnType<typeof imageControls>) {
  return {
    async dataUse() {
      const models = host.local.reduce((sum, model) => sum + model.bytes, 0);
      return { folder: '/Users/ada/Library/Application Support/Ponder', chats: host.kept.size, history: 1_200_000, attachments: imageBytes(host), models, backups: host.backups };
    },
    async backUpNow() {
      host.backups = [{ made_at: Date.now(), bytes: 900_000 }, ...host.backups].slice(0, 5);
    },
    async revealDataFolder() {
      host.revealedData += 1;
    },
    async deleteAllChats(backups) {
      host.kept.clear();
      if (backups) host.backups = [];
      chatsChanged(host);
    },
  } satisfies Partial<Platform>;
}
