/** What the windows can ask of their host about what it keeps on the disk and in memory. */

import type { DataUse } from '../bindings/DataUse';

export interface DataPlatform {
  /** Where data lies and what it takes. */
  dataUse(): Promise<DataUse>;
  /** Makes a backup of the chats and checks it. */
  backUpNow(): Promise<void>;
  /** Shows the folder of all data in the system's file browser. */
  revealDataFolder(): Promise<void>;
  /** Deletes all chats for good, and the backups with them if that is asked for. */
  deleteAllChats(backups: boolean): Promise<void>;
  /** Frees the memory of a model; rejects with `busy` while it answers. */
  ejectModel(reference: string): Promise<void>;
}
