/** The permissions of the one outbound client, and its log. */

import { createContext } from 'svelte';

import type { NetSettings } from '../bindings/NetSettings';
import type { OutboundRequest } from '../bindings/OutboundRequest';
import type { Platform } from '../host';
import type { Toasts } from '../design/toasts.svelte';

export class Network {
  /** `null` until they were read. */
  settings = $state.raw<NetSettings | null>(null);
  /** Newest first; `null` until they were read. */
  requests = $state.raw<readonly OutboundRequest[] | null>(null);

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** Reads the settings, and again whenever they change. */
  async open(): Promise<void> {
    await this.platform.onNetworkChanged(() => void this.refresh());
    await this.refresh();
  }

  async refresh(): Promise<void> {
    await this.#update(() => this.platform.netSettings());
  }

  async refreshRequests(): Promise<void> {
    try {
      this.requests = await this.platform.outboundRequests();
      this.toasts.settle('requests');
    } catch (reason) {
      this.toasts.report(reason, 'requests');
    }
  }

  async setOffline(offline: boolean): Promise<void> {
    await this.#update(() => this.platform.setOffline(offline));
  }

  /** Keeps a token, or removes it if it is empty. Resolves to whether that succeeded. */
  async setToken(token: string): Promise<boolean> {
    return this.#update(() => this.platform.setToken(token));
  }

  async #update(call: () => Promise<NetSettings>): Promise<boolean> {
    try {
      this.settings = await call();
      this.toasts.settle('network');
      return true;
    } catch (reason) {
      this.toasts.report(reason, 'network');
      return false;
    }
  }
}

/** The log of connections, and the token of the hub. */
export const [useNetwork, provideNetwork] = createContext<Network>();
