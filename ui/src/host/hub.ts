/** What the windows can ask of their host about models: finding, fetching, keeping them, and the network they come through. */

import type { Download } from '../bindings/Download';
import type { MemoryFit } from '../bindings/MemoryFit';
import type { HubModel } from '../bindings/HubModel';
import type { MachineMemory } from '../bindings/MachineMemory';
import type { ModelFolderEntry } from '../bindings/ModelFolderEntry';
import type { NetSettings } from '../bindings/NetSettings';
import type { OutboundRequest } from '../bindings/OutboundRequest';
import type { Removal } from '../bindings/Removal';
import type { SearchPage } from '../bindings/SearchPage';
import type { SearchQuery } from '../bindings/SearchQuery';
import type { Update } from '../bindings/Update';
import type { Verification } from '../bindings/Verification';
import type { VerifyProgress } from '../bindings/VerifyProgress';

export interface HubPlatform {
  /** One page of what the hub has. */
  searchModels(query: SearchQuery): Promise<SearchPage>;
  /** All that can be known of a model without fetching it. */
  describeModel(id: string): Promise<HubModel>;
  /** The model's card, Markdown. */
  modelCard(id: string): Promise<string>;
  /** Good models to begin with on this computer; asks nobody. */
  firstModels(): Promise<HubModel[]>;
  /** What a model needs at this context, `null`: the one it is offered with. */
  fitOf(reference: string, context: number | null): Promise<MemoryFit>;

  /** The memory that models may use on this computer, in bytes, and how much of it is free now. */
  memory(): Promise<MachineMemory>;

  /** Puts a model into the queue, or goes on with it. `null`: its main branch. */
  download(id: string, revision: string | null): Promise<void>;
  pauseDownload(id: string): Promise<void>;
  resumeDownload(id: string): Promise<void>;
  /** Ends a download and deletes what has come, or takes an ended one off the list. */
  cancelDownload(id: string): Promise<void>;
  /** Moves a download to this place in the queue, counted from 0. */
  moveDownload(id: string, place: number): Promise<void>;
  /** Tells all downloads at once and again whenever one changed, a few times a second at most. */
  watchDownloads(onChange: (downloads: Download[]) => void): Promise<void>;

  /** Reads every file again and compares. */
  verifyModel(reference: string, onProgress: (progress: VerifyProgress) => void): Promise<Verification>;
  /** Reads every file again, fetches what is wrong or missing as a download, and resolves with what is wrong then. */
  repairModel(reference: string, onProgress: (progress: VerifyProgress) => void): Promise<Verification>;
  /** What removing would do; nothing is removed yet. */
  removalOf(reference: string): Promise<Removal>;
  /** Removes a model; true if it can be put back until it is freed. */
  removeModel(reference: string): Promise<boolean>;
  putBackModel(reference: string): Promise<void>;
  freeModel(reference: string): Promise<void>;
  /** What is newer on the hub; `null` if nothing is. */
  updateOf(reference: string): Promise<Update | null>;
  /** Shows the model's folder in the file manager. */
  revealModel(reference: string): Promise<void>;
  /** Where models are looked for. */
  modelFolders(): Promise<ModelFolderEntry[]>;
  addModelFolder(path: string): Promise<void>;
  /** Asks for a folder in the system's dialog and adds it; false if the person chose none. */
  chooseModelFolder(): Promise<boolean>;
  /** Forgets a folder; its files stay. */
  forgetModelFolder(path: string): Promise<void>;
  /** Opens a new chat with this model in the chat window. */
  chatWith(reference: string): Promise<void>;

  netSettings(): Promise<NetSettings>;
  setOffline(offline: boolean): Promise<NetSettings>;
  /** Keeps a token in the system's keychain; an empty one is taken out of it. */
  setToken(token: string): Promise<NetSettings>;
  /** What left this computer, newest first. */
  outboundRequests(): Promise<OutboundRequest[]>;

  /** Called when the offline switch or the token is no longer what `netSettings` gave. */
  onNetworkChanged(listener: () => void): Promise<() => void>;
  /** Called when folders or files are dropped onto the window. */
  onDropped(listener: (paths: string[]) => void): Promise<() => void>;
  /** Called in the chat window when a new chat with a model is asked for. */
  onChatWith(listener: (reference: string) => void): Promise<() => void>;
}
