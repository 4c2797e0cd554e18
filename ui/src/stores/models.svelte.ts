/** The models on this computer. */

import { createContext } from 'svelte';
import { SvelteMap, SvelteSet } from 'svelte/reactivity';

import type { Capabilities } from '../bindings/Capabilities';
import type { EndpointModels } from '../bindings/EndpointModels';
import type { EngineStatus } from '../bindings/EngineStatus';
import type { MemoryFit } from '../bindings/MemoryFit';
import type { LocalModel } from '../bindings/LocalModel';
import { t } from '../locales';
import { asHostError, type Platform, type Unsubscribe } from '../host';
import type { EmbeddingRow } from '../shared/embeddingModels';
import type { Toasts } from '../design/toasts.svelte';

export class Models {
  /** `null` until they were listed for the first time. */
  list = $state.raw<readonly LocalModel[] | null>(null);
  /** The reference that new chats use. */
  defaultReference = $state<string | null>(null);
  /** The state of the engine, read by {@link refreshStatus}. */
  status = $state.raw<EngineStatus | null>(null);

  /** The endpoints with their models, as they last answered; asked for by {@link refreshRemote}. */
  remote = $state.raw<readonly EndpointModels[]>([]);
  readonly #capabilities = new SvelteMap<string | null, Capabilities>();
  /** References that the host said it has no model for. */
  readonly #missing = new SvelteSet<string>();

  /** The memory of this computer, in bytes, and how much of it is free; asked for by {@link refreshStatus}. */
  memory = $state.raw<{ total: number; free: number } | null>(null);

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** Lists the models and keeps the list current. */
  async open(): Promise<Unsubscribe> {
    const unsubscribe = await this.platform.onModelsChanged(() => void this.refresh());
    await this.refresh();
    return unsubscribe;
  }

  /** True if the built-in model is the only one of this computer that writes. */
  get onlyBuiltIn(): boolean {
    return this.list !== null && this.list.every(({ built_in, kind }) => built_in || kind !== 'chat');
  }

  /** The model of this reference, or the default one. */
  find(reference: string | null): LocalModel | null {
    const wanted = reference ?? this.defaultReference;
    return this.list?.find((model) => model.reference === wanted) ?? null;
  }

  /** The model of exactly this reference. */
  findLocal(reference: string | null): LocalModel | null {
    return this.list?.find((model) => model.reference === reference) ?? null;
  }

  /** The display name of a model: of one that is not listed, the last part of its reference. */
  nameOf(reference: string): string {
    return this.findLocal(reference)?.name ?? reference.split('/').findLast(Boolean) ?? reference;
  }

  /** The memory that a model needs at a context, `null`: the offered one. Rejected calls are shown. */
  async fitAt(reference: string, context: number | null): Promise<MemoryFit> {
    const fit = this.platform.fitOf(reference, context);
    void this.toasts.attempt(() => fit, `fit of ${reference}`);
    return fit;
  }

  /** The models that can draft the answers of this one. Rejected calls are shown. */
  async draftModels(reference: string): Promise<readonly string[]> {
    let found: readonly string[] = [];
    await this.toasts.attempt(async () => {
      found = await this.platform.draftModels(reference);
    }, `draft models of ${reference}`);
    return found;
  }

  async refresh(): Promise<void> {
    await this.toasts.attempt(async () => {
      [this.list, this.defaultReference] = await Promise.all([this.platform.models(), this.platform.defaultModel()]);
    }, 'models');
  }

  /** The capabilities of the model of this reference, as far as {@link refreshCapabilities} has read them. */
  capabilitiesOf(reference: string | null): Capabilities | null {
    return this.#capabilities.get(reference) ?? null;
  }

  /** True if a chat's model, or the default one, is neither listed nor known to the host otherwise. */
  isGone(reference: string | null): boolean {
    const meant = reference ?? this.defaultReference;
    return meant !== null && this.list !== null && this.findLocal(meant) === null && this.#missing.has(meant);
  }

  async refreshCapabilities(reference: string | null): Promise<void> {
    const meant = reference ?? this.defaultReference;
    try {
      this.#capabilities.set(reference, await this.platform.capabilities(reference));
      if (meant !== null) this.#missing.delete(meant);
    } catch (reason) {
      // A model that is gone has no capabilities.
      this.#capabilities.delete(reference);
      if (meant === null || this.#missing.has(meant) || asHostError(reason).code !== 'model_not_found') return;
      this.#missing.add(meant);
      // Its files were removed without the list's knowledge.
      if (this.findLocal(meant)) await this.refresh();
    }
  }

  /** Asks every endpoint for its models. Called only by user action, because it opens connections. */
  async refreshRemote(): Promise<void> {
    await this.toasts.attempt(async () => (this.remote = await this.platform.endpointModels()), 'endpoints');
  }

  async refreshStatus(): Promise<void> {
    await this.toasts.attempt(async () => {
      [this.status, this.memory] = await Promise.all([this.platform.engineStatus(), this.platform.memory()]);
    }, 'status');
  }

  /** Reads the status whenever other models are loaded, until the returned function is called. */
  followEngine(): Unsubscribe {
    const subscribed = this.platform.onEngineChanged(() => void this.refreshStatus());
    return () =>
      void subscribed.then(
        (unsubscribe) => unsubscribe(),
        () => {},
      );
  }

  /** Frees the memory of a model now. */
  async unload(reference: string, name: string): Promise<void> {
    if (await this.toasts.attempt(() => this.platform.unloadModel(reference), 'unload'))
      this.toasts.say(t('engine.unloaded', { name }));
    await this.refreshStatus();
  }

  async makeDefault(reference: string): Promise<void> {
    const before = this.defaultReference;
    this.defaultReference = reference;
    if (!(await this.toasts.attempt(() => this.platform.setDefaultModel(reference), 'default model')))
      this.defaultReference = before;
  }

  async openWindow(): Promise<void> {
    await this.toasts.attempt(() => this.platform.openWindow('models'), 'window');
  }

  /** Opens the Models window where models are searched, or where they arrive. */
  async openPage(page: 'discover' | 'downloads'): Promise<void> {
    await this.toasts.attempt(() => this.platform.showPage(page, null), 'window');
  }

  /** Opens the Models window at the search for an embedding model. */
  async findEmbeddings(row: EmbeddingRow): Promise<void> {
    await this.toasts.attempt(() => this.platform.showPage('discover', row), 'window');
  }
}

/** The models that can be asked. */
export const [useModels, provideModels] = createContext<Models>();
