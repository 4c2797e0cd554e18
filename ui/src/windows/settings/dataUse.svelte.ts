/** The data that Ponder stores on the disk. */

import { createContext } from 'svelte';

import type { DataUse } from '../../bindings/DataUse';
import { t } from '../../locales';
import type { Platform } from '../../host';
import type { Toasts } from '../../design/toasts.svelte';

export class DataStore {
  /** `null` until it was read. */
  use = $state.raw<DataUse | null>(null);
  /** True while a long operation runs. */
  busy = $state(false);

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  async refresh(): Promise<void> {
    try {
      this.use = await this.platform.dataUse();
      this.toasts.settle('data');
    } catch (reason) {
      this.toasts.report(reason, 'data');
    }
  }

  async backUp(): Promise<void> {
    await this.#do(async () => {
      await this.platform.backUpNow();
      this.toasts.say(t('data.backedUp'));
    });
  }

  async showFolder(): Promise<void> {
    try {
      await this.platform.revealDataFolder();
    } catch (reason) {
      this.toasts.report(reason);
    }
  }

  /** Deletes all chats, with the backups or without. */
  async deleteAll(backups: boolean): Promise<void> {
    await this.#do(async () => {
      await this.platform.deleteAllChats(backups);
      const count = (await this.platform.dataUse()).backups.length;
      this.toasts.say(count === 0 ? t('data.deletedAll') : t('data.deletedAllButBackups', { count }));
    });
  }

  async #do(work: () => Promise<void>): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    try {
      await work();
    } catch (reason) {
      this.toasts.report(reason);
    } finally {
      this.busy = false;
    }
    await this.refresh();
  }
}

/** The size of the stored data, and its backups. */
export const [useData, provideData] = createContext<DataStore>();
