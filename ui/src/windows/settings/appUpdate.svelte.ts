/** Newer versions of the app: checked, downloaded and installed only on request. */

import { createContext } from 'svelte';

import type { AppUpdate } from '../../bindings/AppUpdate';
import { asHostError, type HostError, type Platform } from '../../host';

export class AppUpdates {
  /** `null` until it was read. */
  update = $state.raw<AppUpdate | null>(null);
  /** Why the last try failed; nothing was changed then. */
  problem = $state.raw<HostError | null>(null);

  constructor(private readonly platform: Platform) {}

  async open(): Promise<void> {
    await this.platform.onAppUpdateChanged((update) => (this.update = update));
    await this.#try(() => this.platform.appUpdate());
  }

  async ask(): Promise<void> {
    await this.#try(() => this.platform.askForAppUpdate());
  }

  async install(): Promise<void> {
    await this.#try(() => this.platform.installAppUpdate());
  }

  async stop(): Promise<void> {
    await this.platform.stopAppUpdate().catch((reason: unknown) => (this.problem = asHostError(reason)));
  }

  async restart(): Promise<void> {
    await this.platform.restart().catch((reason: unknown) => (this.problem = asHostError(reason)));
  }

  async #try(call: () => Promise<AppUpdate>): Promise<void> {
    this.problem = null;
    try {
      this.update = await call();
    } catch (reason) {
      const problem = asHostError(reason);
      // The user who stopped it knows.
      if (problem.code !== 'stopped') this.problem = problem;
    }
  }
}

/** Newer versions of the app. */
export const [useUpdates, provideUpdates] = createContext<AppUpdates>();
