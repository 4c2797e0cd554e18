/** Servers whose models may be asked: listed, added, tried, given a key, removed. */

import { createContext } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';

import type { EndpointAddress } from '../../bindings/EndpointAddress';
import type { EndpointInfo } from '../../bindings/EndpointInfo';
import type { EndpointModels } from '../../bindings/EndpointModels';
import { asHostError, type HostError, type Platform } from '../../host';
import type { Toasts } from '../../design/toasts.svelte';

export class Endpoints {
  /** `null` until they were listed for the first time. */
  list = $state.raw<readonly EndpointInfo[] | null>(null);
  /** The last reply of each endpoint. */
  readonly #answers = new SvelteMap<string, EndpointModels>();
  /** The tests that run, by the endpoint's name. */
  readonly #tests = new SvelteMap<string, object>();

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** Lists the endpoints and keeps the list current. */
  async open(): Promise<void> {
    await this.toasts.attempt(() => this.platform.onSettingsChanged(() => void this.#refresh()), 'settings');
    await this.#refresh();
  }

  /** The reply of an endpoint; `null` if it was not asked. */
  answer(name: string): EndpointModels | null {
    return this.#answers.get(name) ?? null;
  }

  /** True while its reply is awaited. */
  isTesting(name: string): boolean {
    return this.#tests.has(name);
  }

  /** Asks one for its models. Called only by user action, because it opens a connection. */
  async test(name: string): Promise<void> {
    if (this.isTesting(name)) return;
    const test = {};
    this.#tests.set(name, test);
    let answer: EndpointModels | null = null;
    await this.toasts.attempt(async () => (answer = await this.platform.testEndpoint(name)), `test of ${name}`);
    // After a change the reply belongs to another endpoint.
    if (this.#tests.get(name) !== test) return;
    this.#tests.delete(name);
    if (answer) this.#answers.set(name, answer);
  }

  /** The meaning of an address being typed; `null` while it is none. */
  async address(url: string): Promise<EndpointAddress | null> {
    return this.platform.endpointAddress(url).catch(() => null);
  }

  /**
   * Adds one. Says why it could not be added; otherwise if it was, or the person declined in the system's dialog.
   * `unencrypted` allows that the key is sent unencrypted to another computer.
   */
  async add(name: string, url: string, key: string | null, unencrypted: boolean): Promise<HostError | boolean> {
    let added = false;
    const error = await this.#change(name, async () => {
      added = await this.platform.addEndpoint(name, url, key, unencrypted);
    });
    return error ?? added;
  }

  /** Replaces its key, or removes it, as for one that is added. Says why it could not; `null` if it did. */
  async setKey(name: string, key: string | null, unencrypted: boolean): Promise<HostError | null> {
    return this.#change(name, () => this.platform.setEndpointKey(name, key, unencrypted));
  }

  /** Allows that it is sent passages of the user's own chats and notes about them, or forbids it. */
  async setPersonal(name: string, personal: boolean): Promise<void> {
    await this.toasts.attempt(() => this.platform.setEndpointPersonal(name, personal), 'endpoints');
    await this.#refresh();
  }

  async remove(name: string): Promise<void> {
    const error = await this.#change(name, () => this.platform.removeEndpoint(name));
    if (error) this.toasts.report(error);
  }

  async #change(name: string, call: () => Promise<void>): Promise<HostError | null> {
    try {
      await call();
    } catch (reason) {
      return asHostError(reason);
    }
    this.#forget(name);
    await this.#refresh();
    return null;
  }

  #forget(name: string): void {
    this.#tests.delete(name);
    this.#answers.delete(name);
  }

  async #refresh(): Promise<void> {
    await this.toasts.attempt(async () => {
      const list = await this.platform.endpoints();
      for (const before of this.list ?? []) {
        const now = list.find(({ name }) => name === before.name);
        if (now?.address.base_url !== before.address.base_url || now.key !== before.key || now.key_held_back !== before.key_held_back) this.#forget(before.name);
      }
      this.list = list;
    }, 'endpoints');
  }
}

/** The servers whose models may be asked. */
export const [useEndpoints, provideEndpoints] = createContext<Endpoints>();
