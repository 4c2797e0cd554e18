/** The permissions of the one outbound client, and its log. */

import { createContext } from 'svelte';

import type { NetSettings } from '../bindings/NetSettings';
import type { OutboundRequest } from '../bindings/OutboundRequest';
import type { Platform } from '../host';
import type { Toasts } from '../design/toasts.svelte';

/** The hub's own address, if no mirror is set. */
export const HUB = 'https://huggingface.co';

export class Network {
  /** `null` until they were read. */
  settings = $state.raw<NetSettings | null>(null);
  /** Newest first; `null` until they were read. */
  requests = $state.raw<readonly OutboundRequest[] | null>(null);

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** True if the hub is given a token, so that it shows gated models. */
  get hasToken(): boolean {
    return this.settings !== null && this.settings.token !== 'none';
  }

  /** The hub's address. */
  get hub(): string {
    return this.settings?.endpoint ?? HUB;
  }

  /** Reads the settings, and again whenever they change. */
  async open(): Promise<void> {
    await this.platform.onNetworkChanged(() => void this.refresh());
    await this.refresh();
  }

  async refresh(): Promise<void> {
    await this.#update(() => this.platform.netSettings());
  }

  async refreshRequests(): Promise<void> {
    await this.toasts.attempt(async () => (this.requests = await this.platform.outboundRequests()), 'requests');
  }

  async setOffline(offline: boolean): Promise<void> {
    await this.#update(() => this.platform.setOffline(offline));
  }

  /** Keeps a token, or removes it if it is empty. Resolves to whether that succeeded. */
  async setToken(token: string): Promise<boolean> {
    return this.#update(() => this.platform.setToken(token));
  }

  async #update(call: () => Promise<NetSettings>): Promise<boolean> {
    return this.toasts.attempt(async () => (this.settings = await call()), 'network');
  }
}

/** The log of connections, and the token of the hub. */
export const [useNetwork, provideNetwork] = createContext<Network>();
