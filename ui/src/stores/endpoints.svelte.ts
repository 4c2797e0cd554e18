/** Servers whose models may be asked: added, tried, removed. Which there are is a setting. */

import type { EndpointModels } from '../bindings/EndpointModels';
import { asHostError, type HostError, type Platform } from '../platform';
import type { Toasts } from './toasts.svelte';

export class Endpoints {
  /** Whether their answers are awaited. */
  testing = $state(false);
  /** What each said when it was last asked. */
  #answers = $state.raw<readonly EndpointModels[]>([]);

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** What an endpoint said; `null` if it was not asked. */
  answer(name: string): EndpointModels | null {
    return this.#answers.find((answer) => answer.endpoint.name === name) ?? null;
  }

  /** Asks all of them for their models. Only a person's hand leads here, because it opens connections. */
  async test(): Promise<void> {
    if (this.testing) return;
    this.testing = true;
    try {
      this.#answers = await this.platform.endpointModels();
    } catch (reason) {
      this.toasts.report(reason);
    }
    this.testing = false;
  }

  /** Adds one. Says why it could not be added; `null` if it was. */
  async add(name: string, url: string, key: string | null): Promise<HostError | null> {
    return this.platform.addEndpoint(name, url, key).then(() => null, asHostError);
  }

  async remove(name: string): Promise<void> {
    try {
      await this.platform.removeEndpoint(name);
      this.#answers = this.#answers.filter((answer) => answer.endpoint.name !== name);
    } catch (reason) {
      this.toasts.report(reason);
    }
  }
}
