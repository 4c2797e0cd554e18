/** The models on this computer. */

import type { EngineStatus } from '../bindings/EngineStatus';
import type { LocalModel } from '../bindings/LocalModel';
import type { Platform, Unsubscribe } from '../platform';
import type { Toasts } from './toasts.svelte';

export class Models {
  /** `null` until they were listed for the first time. */
  list = $state.raw<readonly LocalModel[] | null>(null);
  /** The reference that new chats use. */
  defaultReference = $state<string | null>(null);
  /** What the engine holds; asked for by {@link refreshStatus}. */
  status = $state.raw<EngineStatus | null>(null);

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** Lists the models and keeps the list right from then on. */
  async open(): Promise<Unsubscribe> {
    const unsubscribe = await this.platform.onModelsChanged(() => void this.refresh());
    await this.refresh();
    return unsubscribe;
  }

  /** The model of this reference, or the default one. */
  find(reference: string | null): LocalModel | null {
    const wanted = reference ?? this.defaultReference;
    return this.list?.find((model) => model.reference === wanted) ?? null;
  }

  async refresh(): Promise<void> {
    try {
      const [list, reference] = await Promise.all([this.platform.models(), this.platform.defaultModel()]);
      this.list = list;
      this.defaultReference = reference;
    } catch (reason) {
      this.toasts.report(reason);
    }
  }

  async refreshStatus(): Promise<void> {
    try {
      this.status = await this.platform.engineStatus();
    } catch (reason) {
      this.toasts.report(reason);
    }
  }

  async makeDefault(reference: string): Promise<void> {
    const before = this.defaultReference;
    this.defaultReference = reference;
    try {
      await this.platform.setDefaultModel(reference);
    } catch (reason) {
      this.defaultReference = before;
      this.toasts.report(reason);
    }
  }

  async openWindow(): Promise<void> {
    try {
      await this.platform.openModelsWindow();
    } catch (reason) {
      this.toasts.report(reason);
    }
  }
}
