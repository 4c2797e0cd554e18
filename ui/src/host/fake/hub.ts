/**
 * The fake host's models: a small hub, and models that can be verified and removed. `?many=N` gives it N models and N / 7
 * downloads, `?hub=offline|failing|empty|slow` puts it into that state.
 */

import type { GgufModel } from '../../bindings/GgufModel';
import type { HubModel } from '../../bindings/HubModel';
import type { LocalModel } from '../../bindings/LocalModel';
import type { ModelFolderEntry } from '../../bindings/ModelFolderEntry';
import type { NetSettings } from '../../bindings/NetSettings';
import type { QuantizeChoice } from '../../bindings/QuantizeChoice';
import type { Removal } from '../../bindings/Removal';
import type { Verification } from '../../bindings/Verification';
import type { VerifyProgress } from '../../bindings/VerifyProgress';
import type { Platform } from '../types';
import { CARD, firstModels, fitAt, hubModels, manyModels, REQUESTS } from './catalog';
import type { downloadControls, downloads } from './downloads';
import { listen, localModel, modelsChanged, pause, refusal, storeSettings, type Shared } from './shared';

/** The condition of the hub. */
export type HubCondition = 'healthy' | 'offline' | 'failing' | 'empty' | 'slow';

/** Milliseconds between two steps of a check. */
const STEP = 200;
const PAGE = 30;
/** The formats of copies, and their bits per weight. */
const QUANTIZED = [['eight_bits', 8.5], ['four_and_six_bits', 4.7], ['four_bits', 4.5], ['mxfp4', 4.25]] as const;
const UNREACHABLE = refusal('network', 'huggingface.co could not be reached: no route to the host. Nothing was changed; try again when the network is back.');

export const hubControls = () => ({
  condition: 'healthy' as HubCondition,
  /** The models of the hub. */
  catalog: hubModels(),
  net: { offline: false, forced_by_env: false, endpoint: 'https://huggingface.co', token: 'none', keychain_problem: null } as NetSettings,
  /** Models whose check finds a damaged file. */
  damaged: new Set<string>(),
  /** Models of other programs. */
  gguf: [
    { reference: 'ollama:llama3.2:3b', name: 'llama3.2-3b', bytes: 2_000_000_000, imported: false, problem: null },
    { reference: 'ollama:nomic-embed:latest', name: 'nomic-embed', bytes: 274_000_000, imported: false, problem: 'GGUF files of the architecture nomic-bert are not imported yet' },
    { reference: 'lmstudio:lmstudio-community/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf', name: 'Qwen3-4B-Q4_K_M', bytes: 2_500_000_000, imported: false, problem: null },
  ] as GgufModel[],
  /** Files that the system's dialog answers with. */
  chosenFiles: [] as string[],
  /** Imports and copies that were stopped. */
  stoppedImports: new Set<string>(),
  /** Models with which a chat was started in the chat window. */
  chatsWith: [] as string[],
  /** Models that are loaded whatever memory they need. */
  loadedAnyway: [] as string[],
  /** Models that were shown in the file browser. */
  revealed: [] as string[],
  /** Removed models that are not freed yet. */
  setAside: new Map<string, LocalModel>(),
  /** The choice in the system's dialog; `null`: none. */
  chosenFolder: '/home/somebody/Models' as string | null,
});

export function hub(host: Shared & ReturnType<typeof hubControls> & ReturnType<typeof downloadControls>) {
  const networkListeners = new Set<() => void>();
  const dropListeners = new Set<(paths: string[]) => void>();
  const chatWithListeners = new Set<(reference: string) => void>();
  let folders: ModelFolderEntry[] = [{ path: '/Users/ada/.cache/huggingface/hub', own: false, models: 3, bytes: 20_200_000_000, problem: null }];

  const reach = async (): Promise<void> => {
    if (host.net.offline) throw refusal('offline', 'Ponder is offline. Nothing was asked of the network.');
    if (host.condition === 'slow') await pause(60_000);
    if (host.condition === 'failing') throw UNREACHABLE;
  };
  const listed = (model: HubModel): HubModel => ({ ...model, here: host.local.some(({ reference }) => reference === model.id) });
  const changeNet = (change: Partial<NetSettings>): NetSettings => {
    host.net = { ...host.net, ...change };
    for (const listener of networkListeners) queueMicrotask(listener);
    return host.net;
  };
  const verify = async (reference: string, onProgress: (progress: VerifyProgress) => void): Promise<Verification> => {
    const total = host.local.find((model) => model.reference === reference)?.bytes ?? 0;
    for (let step = 0; step <= 10; step++) {
      onProgress({ path: 'model.safetensors', done: (total * step) / 10, total });
      await pause(STEP);
    }
    const wrong = host.damaged.has(reference) ? [{ path: 'model.safetensors', fault: 'changed' as const, message: 'its content is not what the hub has' }] : [];
    return { reference, commit: '4f1c', files: 7, bytes: total, wrong, unknown: [] };
  };
  const removal = (reference: string): Removal => {
    const model = localModel(host, reference);
    return {
      reference,
      bytes_freed: model.bytes,
      shared_bytes: 0,
      loaded: reference === 'pebble',
      downloading: host.queue.some((download) => download.id === reference && download.state !== 'done'),
      chats: model.last_used_at ? 14 : 0,
      chat_titles: model.last_used_at ? ['Names for a boat', 'Why the sky is blue'] : [],
      refused: model.built_in ? refusal('bad_request', 'pebble stays: it comes with the app', { reference }, 'model_built_in') : null,
    };
  };
  const addFolder = (path: string): void => {
    if (!path.startsWith('/')) throw refusal('bad_request', `There is no folder ${path}. Nothing was changed.`, { path }, 'no_model_folder');
    const problem = path.startsWith('/Volumes') ? refusal('not_found', `${path} is not there; connect its disk`, { path }, 'folder_gone') : null;
    folders = [...folders, { path, own: true, models: 0, bytes: 0, problem }];
    storeSettings(host, { model_folders: [...host.app.model_folders, path] });
  };

  const calls = {
    async models() {
      return host.local;
    },
    async defaultModel() {
      return host.app.default_model;
    },
    async setDefaultModel(reference) {
      storeSettings(host, { default_model: localModel(host, reference).reference, new_chats_use_last_model: false });
    },
    onModelsChanged: (listener) => listen(host.modelListeners, listener),

    async searchModels(query) {
      // Offline, the results of an earlier search are shown.
      if (!host.net.offline) await reach();
      const words = query.text.toLowerCase().replace('https://huggingface.co/', '').split(/\s+/).filter(Boolean);
      const found = (host.condition === 'empty' ? [] : host.catalog)
        .filter((model) => words.every((word) => model.id.toLowerCase().includes(word)))
        .filter((model) => !query.fits_only || (model.fit !== null && model.fit.word !== 'will_not_fit'))
        .filter((model) => !query.thinks_only || (model.thinking !== null && model.thinking.kind !== 'never'))
        .sort((a, b) => (query.sort === 'size' ? (a.bytes ?? 0) - (b.bytes ?? 0) : query.sort === 'likes' ? b.likes - a.likes : 0));
      const from = Number(query.cursor ?? 0);
      const offline = host.condition === 'offline' || host.net.offline;
      return {
        models: found.slice(from, from + PAGE).map(listed),
        cursor: from + PAGE < found.length ? String(from + PAGE) : null,
        left_out: 0,
        cached_at: offline ? Date.now() - 26 * 3_600_000 : null,
        cached_because: host.net.offline ? refusal('offline', 'Ponder is offline.') : offline ? UNREACHABLE : null,
      };
    },
    async describeModel(id) {
      await reach();
      const model = host.catalog.find((other) => other.id === id);
      if (!model) throw refusal('not_found', `The hub has no model called ${id}.`, { id }, 'not_on_hugging_face');
      return { ...model, described: true };
    },
    async modelCard(id) {
      await reach();
      return CARD.replace('NAME', id);
    },
    async firstModels() {
      return firstModels().map(listed);
    },
    async fitOf(reference, context) {
      const model = host.catalog.find((other) => other.id === reference);
      const bytes = model?.bytes ?? host.local.find((other) => other.reference === reference)?.bytes ?? 15_000_000;
      return fitAt(bytes, context ?? 16_384, model?.context ?? 131_072, reference === 'pebble' ? 71_000_000 : null);
    },

    async ggufModels() {
      return host.gguf.map((model) => ({ ...model, imported: host.local.some(({ path }) => path === `/data/models/${model.name}`) }));
    },
    async chooseGgufFiles() {
      return host.chosenFiles;
    },
    async importGguf(reference, onProgress) {
      const listed = host.gguf.find((model) => model.reference === reference);
      const name = listed?.name ?? reference.split('/').at(-1)?.replace(/\.gguf$/i, '') ?? '';
      const total = listed?.bytes ?? 1_000_000_000;
      host.stoppedImports.delete(reference);
      for (let step = 0; step <= 10; step++) {
        if (host.stoppedImports.has(reference)) throw refusal('stopped', 'the import was stopped');
        onProgress({ path: 'blk.0.attn_q.weight', done: (total * step) / 10, total });
        await pause(STEP);
      }
      if (name.includes('broken')) throw refusal('model_broken', `${name} is cut short; nothing new is left`);
      const path = `/data/models/${name}`;
      const pebble = localModel(host, 'pebble');
      host.local = [...host.local, { ...pebble, reference: path, name, path, built_in: false, place: 'imported', bytes: total }];
      modelsChanged(host);
      return { reference: path, bytes: total, loss: name.includes('Q4_K_M') ? 0.000_21 : 0, text_only: name.includes('vl') };
    },
    async stopGgufImport(reference) {
      host.stoppedImports.add(reference);
    },
    async quantizeChoices(reference) {
      const { bytes, name } = localModel(host, reference);
      if (name.includes('mystery')) throw refusal('model_unsupported', `quantizing models of type \`mystery\` is not supported`);
      return QUANTIZED.map(([format, bits]): QuantizeChoice => ({
        format,
        bytes: Math.round((bytes * bits) / 16),
        bits_per_weight: bits,
        exists: host.local.some(({ path }) => path === `/data/models/${name}-${format}`),
      }));
    },
    async quantizeModel(reference, format, compare, onProgress) {
      const original = localModel(host, reference);
      const total = original.bytes;
      host.stoppedImports.delete(reference);
      for (let step = 0; step <= 10; step++) {
        if (host.stoppedImports.has(reference)) throw refusal('stopped', 'the quantization was stopped');
        onProgress({ path: 'model.layers.0.mlp.up_proj.weight', done: (total * step) / 10, total });
        await pause(STEP);
      }
      if (original.name.includes('Huge')) throw refusal('disk_full', 'there is no room for the copy; nothing new is left');
      const bits = QUANTIZED.find(([known]) => known === format)?.[1] ?? 16;
      const path = `/data/models/${original.name}-${format}`;
      const bytes = Math.round((total * bits) / 16);
      host.local = [...host.local, { ...original, reference: path, name: `${original.name}-${format}`, path, place: 'imported', quantization: '4 bit', quantizable: false, bytes }];
      modelsChanged(host);
      await pause(STEP);
      return { reference: path, bytes, bits_per_weight: bits, perplexity: compare ? [12.91, 13.4] : null, not_compared: null };
    },
    async stopQuantizing(reference) {
      host.stoppedImports.add(reference);
    },
    verifyModel: verify,
    async repairModel(reference, onProgress) {
      host.damaged.delete(reference);
      return verify(reference, onProgress);
    },
    async removalOf(reference) {
      return removal(reference);
    },
    async removeModel(reference) {
      const { refused } = removal(reference);
      if (refused !== null) throw refused;
      host.setAside.set(reference, localModel(host, reference));
      host.local = host.local.filter((model) => model.reference !== reference);
      modelsChanged(host);
      return true;
    },
    async putBackModel(reference) {
      const model = host.setAside.get(reference);
      if (!model) throw refusal('model_not_found', `There is no model ${reference}.`, { reference }, 'model_missing');
      host.setAside.delete(reference);
      host.local = [...host.local, model];
      modelsChanged(host);
    },
    async freeModel(reference) {
      host.setAside.delete(reference);
    },
    async updateOf(reference) {
      await reach();
      if (!reference.includes('gemma')) return null;
      return { reference, current: '4f1c', newest: '9b02', files: ['chat_template.jinja', 'model-00002-of-00002.safetensors'], bytes: 1_900_000_000 };
    },
    async draftModels(reference) {
      const { bytes, family } = localModel(host, reference);
      const small = host.local.filter((other) => other.kind === 'chat' && !other.problem && other.bytes < bytes / 2);
      return small.filter((other) => other.family === family).map((other) => other.reference);
    },
    async revealModel(reference) {
      host.revealed.push(localModel(host, reference).reference);
    },
    async modelFolders() {
      return folders;
    },
    async addModelFolder(path) {
      addFolder(path);
    },
    async chooseModelFolder() {
      if (host.chosenFolder === null) return false;
      addFolder(host.chosenFolder);
      return true;
    },
    async forgetModelFolder(path) {
      folders = folders.filter((other) => other.path !== path);
      storeSettings(host, { model_folders: host.app.model_folders.filter((other) => other !== path) });
    },
    async loadAnyway(reference) {
      host.loadedAnyway.push(localModel(host, reference).reference);
    },
    async chatWith(reference) {
      host.chatsWith.push(localModel(host, reference).reference);
      for (const listener of chatWithListeners) listener(reference);
    },
    onDropped: (listener) => listen(dropListeners, listener),
    onChatWith: (listener) => listen(chatWithListeners, listener),

    async netSettings() {
      return host.net;
    },
    async setOffline(offline) {
      return changeNet({ offline });
    },
    async setToken(token) {
      return changeNet({ token: token ? 'keychain' : 'none' });
    },
    onNetworkChanged: (listener) => listen(networkListeners, listener),
    async outboundRequests() {
      return REQUESTS;
    },
  } satisfies Partial<Platform>;
  return {
    ...calls,
    /** Drops a folder onto the window. */
    drop(path: string): void {
      for (const listener of dropListeners) listener([path]);
    },
  };
}

/** Gives the host downloads in every state, many models, or a hub in a bad condition, as an address asks for it. */
export function fillHub(host: ReturnType<typeof hubControls> & Pick<ReturnType<typeof downloads>, 'addDownload'>, asked: URLSearchParams): void {
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
