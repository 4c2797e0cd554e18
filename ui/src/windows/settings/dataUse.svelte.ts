/** The data that Ponder stores on the disk. */

import { createContext } from 'svelte';

import type { DataKind } from '../../bindings/DataKind';
import type { DataUse } from '../../bindings/DataUse';
import { t } from '../../locales';
import type { Platform } from '../../host';
import type { Toasts } from '../../design/toasts.svelte';

export class DataStore {
  /** `null` until it was read. */
  use = $state.raw<DataUse | null>(null);
  /** Bytes of the images among the attachments; `null` until it was read. */
  images = $state<number | null>(null);
  /** True while a long operation runs. */
  busy = $state(false);

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  async refresh(): Promise<void> {
    await this.toasts.attempt(async () => {
      [this.use, this.images] = await Promise.all([this.platform.dataUse(), this.platform.imageStorage()]);
    }, 'data');
  }

  async backUp(): Promise<void> {
    await this.#do(async () => {
      await this.platform.backUpNow();
      this.toasts.say(t('data.backedUp'));
    });
  }

  /** Adds what can be read of a damaged file that a repair set aside, and is not here. */
  async tryAgain(setAsideAt: number): Promise<void> {
    await this.#do(async () => {
      const { chats, messages } = await this.platform.addFromSetAside(setAsideAt);
      const added = chats > 0 ? t('data.added', { count: chats }) : t('data.addedMessages', { count: messages });
      this.toasts.say(chats + messages === 0 ? t('data.addedNone') : added);
    });
  }

  async show(kind: DataKind): Promise<void> {
    await this.toasts.attempt(() => this.platform.revealData(kind), 'reveal');
  }

  /** Deletes all chats, if the person agrees in the system's dialog. */
  async deleteAll(): Promise<void> {
    await this.#do(async () => {
      if (!(await this.platform.deleteAllChats())) return;
      const count = (await this.platform.dataUse()).backups.length;
      this.toasts.say(count === 0 ? t('data.deletedAll') : t('data.deletedAllButBackups', { count }));
    });
  }

  async #do(work: () => Promise<void>): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    await this.toasts.attempt(work, 'data change');
    this.busy = false;
    await this.refresh();
  }
}

/** The size of the stored data, and its backups. */
export const [useData, provideData] = createContext<DataStore>();
