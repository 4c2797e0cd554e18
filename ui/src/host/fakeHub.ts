/**
 * The models' part of the in-memory host: a small hub, downloads that make progress, models that can be checked and
 * removed. `?many=N` gives it N models and N / 7 downloads, `?hub=offline|failing|empty|slow` puts it into that state.
 */

import type { Download } from '../bindings/Download';
import type { DownloadState } from '../bindings/DownloadState';
import type { Error as HostError } from '../bindings/Error';
import type { MemoryFit } from '../bindings/MemoryFit';
import type { HubModel } from '../bindings/HubModel';
import type { LocalModel } from '../bindings/LocalModel';
import type { MachineMemory } from '../bindings/MachineMemory';
import type { ModelFolderEntry } from '../bindings/ModelFolderEntry';
import type { NetSettings } from '../bindings/NetSettings';
import type { OutboundRequest } from '../bindings/OutboundRequest';
import type { Removal } from '../bindings/Removal';
import type { SearchPage } from '../bindings/SearchPage';
import type { SearchQuery } from '../bindings/SearchQuery';
import type { Settings } from '../bindings/Settings';
import type { Update } from '../bindings/Update';
import type { Verification } from '../bindings/Verification';
import type { VerifyProgress } from '../bindings/VerifyProgress';
import { MODELS } from './fakeModels';
import { CARD, firstModels, fitAt, hubModels, manyModels, MEMORY, REQUESTS } from './fakeCatalog';
import type { HubPlatform } from './hub';
import { DEFAULT_APPEARANCE } from './types';

/** What the hub of this host is like. */
export type HubCondition = 'healthy' | 'offline' | 'failing' | 'empty' | 'slow';

const STEP = 200;
const PAGE = 30;
const BYTES_PER_STEP = 3_600_000;
const UNREACHABLE: HostError = { code: 'network', message: 'huggingface.co could not be reached: no route to the host. Nothing was changed; try again when the network is back.' };

/** The host of everything about models. */
export class FakeHub implements HubPlatform {
  condition: HubCondition = 'healthy';
  /** What the hub has. */
  catalog: HubModel[] = hubModels();
  local: LocalModel[] = [...MODELS];
  queue: Download[] = [];
  net: NetSettings = { offline: false, forced_by_env: false, endpoint: 'https://huggingface.co', token: 'none', keychain_problem: null };
  /** Models whose check finds a damaged file. */
  readonly damaged = new Set<string>();
  /** What was asked to be opened in the chat window. */
  readonly chatsWith: string[] = [];
  /** What was shown in the file manager. */
  readonly revealed: string[] = [];
  /** What is set for the whole app. */
  app: Settings = { default_model: 'pebble', model_folders: [], endpoints: [], thinking: null, thinking_budget: null, write_titles: true, language: null, image_detail: 'normal', server: { on: false, port: 8231, network: false, key_made_at: null }, keep_awake: false, snippets: [], presets: [], default_preset: null, appearance: DEFAULT_APPEARANCE, engine: { unload_after: null, prefix_cache: null }, notifications: true, tray: false, quick_entry: null };
  protected readonly modelListeners = new Set<() => void>();
  readonly #settingsListeners = new Set<(settings: Settings) => void>();
  readonly #networkListeners = new Set<() => void>();
  readonly #dropListeners = new Set<(paths: string[]) => void>();
  readonly #chatWithListeners = new Set<(reference: string) => void>();
  #watchers: ((downloads: Download[]) => void)[] = [];
  #folders: ModelFolderEntry[] = [{ path: '/Users/ada/.cache/huggingface/hub', own: false, models: 3, bytes: 20_200_000_000, problem: null }];
  #timer: ReturnType<typeof setTimeout> | undefined;

  async models(): Promise<LocalModel[]> {
    return this.local;
  }
  async defaultModel(): Promise<string> {
    return this.app.default_model;
  }
  async setDefaultModel(reference: string): Promise<void> {
    await this.changeSettings({ default_model: reference });
  }
  async onModelsChanged(listener: () => void): Promise<() => void> {
    this.modelListeners.add(listener);
    return () => this.modelListeners.delete(listener);
  }

  async settings(): Promise<Settings> {
    return this.app;
  }
  async changeSettings(change: Partial<Settings>): Promise<Settings> {
    const strange = Object.keys(change).find((key) => !(key in this.app));
    if (strange) throw { code: 'bad_request', message: `There is no setting called ${strange}.` };
    if (change.default_model !== undefined) this.#model(change.default_model);
    this.app = { ...this.app, ...change };
    for (const listener of this.#settingsListeners) queueMicrotask(() => listener(this.app));
    this.modelsChanged();
    return this.app;
  }
  async onSettingsChanged(listener: (settings: Settings) => void): Promise<() => void> {
    this.#settingsListeners.add(listener);
    return () => this.#settingsListeners.delete(listener);
  }

  async searchModels(query: SearchQuery): Promise<SearchPage> {
    // Offline, what was found before is shown again.
    if (!this.net.offline) await this.#reach();
    const words = query.text.toLowerCase().replace('https://huggingface.co/', '').split(/\s+/).filter(Boolean);
    const found = (this.condition === 'empty' ? [] : this.catalog)
      .filter((model) => words.every((word) => model.id.toLowerCase().includes(word)))
      .filter((model) => !query.fits_only || (model.fit !== null && model.fit.word !== 'will_not_fit'))
      .filter((model) => !query.thinks_only || (model.thinking !== null && model.thinking.kind !== 'never'))
      .sort((a, b) => (query.sort === 'size' ? (a.bytes ?? 0) - (b.bytes ?? 0) : query.sort === 'likes' ? b.likes - a.likes : 0));
    const from = Number(query.cursor ?? 0);
    const models = found.slice(from, from + PAGE).map((model) => ({ ...model, here: this.local.some((other) => other.reference === model.id) }));
    const offline = this.condition === 'offline' || this.net.offline;
    return {
      models,
      cursor: from + PAGE < found.length ? String(from + PAGE) : null,
      left_out: 0,
      cached_at: offline ? Date.now() - 26 * 3_600_000 : null,
      cached_because: this.net.offline ? { code: 'offline', message: 'Ponder is offline.' } : offline ? UNREACHABLE : null,
    };
  }
  async describeModel(id: string): Promise<HubModel> {
    await this.#reach();
    const model = this.catalog.find((other) => other.id === id);
    if (!model) throw { code: 'not_found', message: `The hub has no model called ${id}.` };
    return { ...model, described: true };
  }
  async modelCard(id: string): Promise<string> {
    await this.#reach();
    return CARD.replace('NAME', id);
  }
  async firstModels(): Promise<HubModel[]> {
    return firstModels().map((model) => ({ ...model, here: this.local.some((other) => other.reference === model.id) }));
  }
  async fitOf(reference: string, context: number | null): Promise<MemoryFit> {
    const model = this.catalog.find((other) => other.id === reference);
    const bytes = model?.bytes ?? this.local.find((other) => other.reference === reference)?.bytes ?? 15_000_000;
    return fitAt(bytes, context ?? 16_384, model?.context ?? 131_072, reference === 'pebble' ? 71_000_000 : null);
  }

  async memory(): Promise<MachineMemory> {
    return MEMORY;
  }

  async download(id: string): Promise<void> {
    if (!this.queue.some((download) => download.id === id)) this.addDownload(id, 'queued');
    else await this.resumeDownload(id);
  }
  async pauseDownload(id: string): Promise<void> {
    this.#queued(id);
    this.#change(id, { state: 'paused', bytes_per_second: 0, seconds_left: null });
  }
  async resumeDownload(id: string): Promise<void> {
    this.#queued(id);
    this.#change(id, { state: 'queued', error: null });
    this.#tick();
  }
  async cancelDownload(id: string): Promise<void> {
    this.queue = this.queue.filter((download) => download.id !== id);
    this.#tell();
  }
  async moveDownload(id: string, place: number): Promise<void> {
    const moved = this.queue.find((download) => download.id === id);
    if (!moved) return;
    const others = this.queue.filter((download) => download.id !== id);
    this.queue = [...others.slice(0, place), moved, ...others.slice(place)];
    this.#tell();
  }
  async watchDownloads(onChange: (downloads: Download[]) => void): Promise<void> {
    this.#watchers.push(onChange);
    onChange(this.queue);
  }

  async verifyModel(reference: string, onProgress: (progress: VerifyProgress) => void): Promise<Verification> {
    const total = this.local.find((model) => model.reference === reference)?.bytes ?? 0;
    for (let step = 0; step <= 10; step++) {
      onProgress({ path: 'model.safetensors', done: (total * step) / 10, total });
      await new Promise((resolve) => setTimeout(resolve, STEP));
    }
    const wrong = this.damaged.has(reference) ? [{ path: 'model.safetensors', reason: 'its content is not what the hub has' }] : [];
    return { reference, commit: '4f1c', files: 7, bytes: total, wrong, unknown: [] };
  }
  async repairModel(reference: string, onProgress: (progress: VerifyProgress) => void): Promise<Verification> {
    this.damaged.delete(reference);
    return this.verifyModel(reference, onProgress);
  }
  async removalOf(reference: string): Promise<Removal> {
    const model = this.#model(reference);
    return {
      reference,
      bytes_freed: model.bytes,
      shared_bytes: 0,
      loaded: reference === 'pebble',
      downloading: this.queue.some((download) => download.id === reference && download.state !== 'done'),
      chats: model.last_used_at ? 14 : 0,
      chat_titles: model.last_used_at ? ['Names for a boat', 'Why the sky is blue'] : [],
      refused: model.built_in ? 'Pebble comes with Ponder and stays.' : null,
    };
  }
  /** Removed models that are not freed yet. */
  readonly setAside = new Map<string, LocalModel>();

  async removeModel(reference: string): Promise<boolean> {
    const { refused } = await this.removalOf(reference);
    if (refused !== null) throw { code: 'bad_request', message: refused };
    this.setAside.set(reference, this.#model(reference));
    this.local = this.local.filter((model) => model.reference !== reference);
    this.modelsChanged();
    return true;
  }
  async putBackModel(reference: string): Promise<void> {
    const model = this.setAside.get(reference);
    if (!model) throw { code: 'model_not_found', message: `There is no model ${reference}.` };
    this.setAside.delete(reference);
    this.local = [...this.local, model];
    this.modelsChanged();
  }
  async freeModel(reference: string): Promise<void> {
    this.setAside.delete(reference);
  }
  async updateOf(reference: string): Promise<Update | null> {
    await this.#reach();
    if (!reference.includes('gemma')) return null;
    return { reference, current: '4f1c', newest: '9b02', files: ['chat_template.jinja', 'model-00002-of-00002.safetensors'], bytes: 1_900_000_000 };
  }
  async revealModel(reference: string): Promise<void> {
    this.#model(reference);
    this.revealed.push(reference);
  }
  async modelFolders(): Promise<ModelFolderEntry[]> {
    return this.#folders;
  }
  async addModelFolder(path: string): Promise<void> {
    if (!path.startsWith('/')) throw { code: 'bad_request', message: `There is no folder ${path}. Nothing was changed.` };
    const problem = path.startsWith('/Volumes') ? 'The disk is not connected.' : null;
    this.#folders = [...this.#folders, { path, own: true, models: 0, bytes: 0, problem }];
    await this.changeSettings({ model_folders: [...this.app.model_folders, path] });
  }
  /** What the person chooses in the system's dialog; `null`: nothing. */
  chosenFolder: string | null = '/home/somebody/Models';

  async chooseModelFolder(): Promise<boolean> {
    if (this.chosenFolder === null) return false;
    await this.addModelFolder(this.chosenFolder);
    return true;
  }
  async forgetModelFolder(path: string): Promise<void> {
    this.#folders = this.#folders.filter((other) => other.path !== path);
    await this.changeSettings({ model_folders: this.app.model_folders.filter((other) => other !== path) });
  }
  async chatWith(reference: string): Promise<void> {
    this.#model(reference);
    this.chatsWith.push(reference);
    for (const listener of this.#chatWithListeners) listener(reference);
  }
  async onDropped(listener: (paths: string[]) => void): Promise<() => void> {
    this.#dropListeners.add(listener);
    return () => this.#dropListeners.delete(listener);
  }
  /** Drops a folder onto the window. */
  drop(path: string): void {
    for (const listener of this.#dropListeners) listener([path]);
  }
  async onChatWith(listener: (reference: string) => void): Promise<() => void> {
    this.#chatWithListeners.add(listener);
    return () => this.#chatWithListeners.delete(listener);
  }

  async netSettings(): Promise<NetSettings> {
    return this.net;
  }
  async setOffline(offline: boolean): Promise<NetSettings> {
    return this.#changeNet({ offline });
  }
  async setToken(token: string): Promise<NetSettings> {
    return this.#changeNet({ token: token ? 'keychain' : 'none' });
  }
  #changeNet(change: Partial<NetSettings>): NetSettings {
    this.net = { ...this.net, ...change };
    for (const listener of this.#networkListeners) queueMicrotask(listener);
    return this.net;
  }
  async onNetworkChanged(listener: () => void): Promise<() => void> {
    this.#networkListeners.add(listener);
    return () => this.#networkListeners.delete(listener);
  }
  async outboundRequests(): Promise<OutboundRequest[]> {
    return REQUESTS;
  }

  /** Puts a download into the queue. */
  addDownload(id: string, state: DownloadState, share = 0, error: Download['error'] = null): void {
    const total = this.catalog.find((model) => model.id === id)?.bytes ?? 2_300_000_000;
    const download: Download = {
      id, revision: 'main', commit: state === 'queued' && share === 0 ? null : '9b02', state, files: [], done: Math.round(total * share), total,
      bytes_per_second: state === 'running' ? 18_000_000 : 0, seconds_left: null, retry_at: state === 'waiting' ? Date.now() + 24_000 : null, error,
    };
    this.queue = [...this.queue, withFiles(download)];
    this.#tell();
    this.#tick();
  }

  protected modelsChanged(): void {
    for (const listener of this.modelListeners) queueMicrotask(listener);
  }

  /** One step of everything that runs; two at once, as the real one. */
  #tick(): void {
    clearTimeout(this.#timer);
    if (!this.queue.some((download) => download.state === 'queued' || download.state === 'running' || download.state === 'verifying')) return;
    this.#timer = setTimeout(() => {
      let running = 0;
      this.queue = this.queue.map((download) => {
        if (download.state === 'queued' && running < 2) download = { ...download, state: 'running', commit: '9b02' };
        if (download.state !== 'running' && download.state !== 'verifying') return download;
        running += 1;
        if (download.done >= download.total) return this.#arrived(download);
        const done = Math.min(download.total, download.done + BYTES_PER_STEP);
        return withFiles({ ...download, done, bytes_per_second: BYTES_PER_STEP * 5, seconds_left: (download.total - done) / (BYTES_PER_STEP * 5) });
      });
      this.#tell();
      this.#tick();
    }, STEP);
  }

  #arrived(download: Download): Download {
    const model = this.catalog.find((other) => other.id === download.id);
    if (model && !this.local.some((other) => other.reference === model.id)) {
      this.local = [...this.local, { reference: model.id, name: model.name, kind: 'chat', built_in: false, path: `/models/${model.id}`, revision: '9b02', family: model.family, quantization: model.quantization, bytes: download.total, context: model.context, thinking: model.thinking, thought: null, sampling: { temperature: 0 }, sees: false, vision_problem: null, problem: null, incomplete: false, place: 'cache', last_used_at: null, revisions: [] }];
    }
    this.modelsChanged();
    return withFiles({ ...download, state: 'done', bytes_per_second: 0, seconds_left: null });
  }

  #change(id: string, change: Partial<Download>): void {
    this.queue = this.queue.map((download) => (download.id === id ? withFiles({ ...download, ...change }) : download));
    this.#tell();
  }

  #tell(): void {
    for (const watcher of this.#watchers) watcher(this.queue);
  }

  #model(reference: string): LocalModel {
    const model = this.local.find((other) => other.reference === reference);
    if (!model) throw { code: 'model_not_found', message: `No model called ${reference} is on this computer. Nothing was changed.` };
    return model;
  }

  #queued(id: string): void {
    if (!this.queue.some((download) => download.id === id)) throw { code: 'model_not_found', message: `${id} is not being downloaded.` };
  }

  async #reach(): Promise<void> {
    if (this.net.offline) throw { code: 'offline', message: 'Ponder is offline. Nothing was asked of the network.' };
    if (this.condition === 'slow') await new Promise((resolve) => setTimeout(resolve, 60_000));
    if (this.condition === 'failing') {
      throw UNREACHABLE;
    }
  }
}

/** Files that together have what the download has. */
function withFiles(download: Download): Download {
  const sizes: [string, number][] = [['config.json', 2_100], ['tokenizer.json', 11_400_000]];
  const rest = Math.max(0, download.total - 11_402_100);
  sizes.push(['model-00001-of-00002.safetensors', Math.ceil(rest / 2)], ['model-00002-of-00002.safetensors', Math.floor(rest / 2)]);
  let left = download.done;
  const files = sizes.map(([path, bytes]) => {
    const done = Math.min(bytes, left);
    left -= done;
    const state: DownloadState = done === bytes && download.commit ? 'done' : done > 0 ? download.state : 'queued';
    return { path, bytes, done, state };
  });
  return { ...download, files: download.commit === null ? [] : files };
}

/** Downloads in every state, or many models, or a hub in a bad condition, as an address asks for it. */
export function fillHub(host: FakeHub, asked: URLSearchParams): void {
  const condition = asked.get('hub');
  if (condition === 'offline' || condition === 'failing' || condition === 'empty' || condition === 'slow') host.condition = condition;
  const many = Number(asked.get('many') ?? 0);
  if (many > 0) {
    host.catalog = manyModels(many);
    for (const model of host.catalog.slice(0, many / 7)) host.addDownload(model.id, 'running', 0.2);
    return;
  }
  if (asked.get('downloads') === 'none') return;
  host.damaged.add('mlx-community/gpt-oss-20b');
  host.addDownload('mlx-community/Qwen3-4B-4bit', 'running', 0.56);
  if (asked.get('downloads') !== 'all') return;
  host.addDownload('mlx-community/SmolLM3-3B-4bit', 'queued');
  host.addDownload('mlx-community/gpt-oss-20b-MXFP4', 'paused', 0.31);
  host.addDownload('mlx-community/gemma-4-26b-a4b-it-4bit', 'waiting', 0.72, { code: 'network', message: 'The network is gone. What has come is kept.' });
  host.addDownload('meta-llama/Llama-3.2-3B-Instruct-4bit', 'failed', 0.1, { code: 'disk_full', message: 'The disk is full: 1.6 GB more are needed, 0.4 GB are free. What has come is kept; make room and try again.' });
  host.addDownload('mlx-community/gemma-4-e4b-it-4bit', 'done', 1);
}
