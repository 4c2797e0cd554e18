/** The server that answers other programs: its switch, its settings and its status. */

import { createContext } from 'svelte';

import type { ClientSetup } from '../../bindings/ClientSetup';
import type { ServerSettings } from '../../bindings/ServerSettings';
import type { ServerStatus } from '../../bindings/ServerStatus';
import { asHostError, type HostError, type Platform } from '../../host';
import type { Toasts } from '../../design/toasts.svelte';

/** After this long a change is worth a word, in milliseconds. */
const MOMENT = 150;

export class LocalServer {
  /** `null` until it was read. */
  status = $state.raw<ServerStatus | null>(null);
  /** The models that it lists, by the names that clients use. */
  models = $state.raw<readonly string[]>([]);
  /** The instructions for other programs, for the model that was requested last, without the key. */
  setups = $state.raw<readonly ClientSetup[]>([]);
  /** The key, while it is shown. */
  shownKey = $state.raw<string | null>(null);
  /** True while a change of it is awaited. */
  changing = $state(false);
  /** The reason why the key could not be created, read or removed. */
  keyProblem = $state.raw<HostError | null>(null);

  #changes = 0;

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** Looks at it again. */
  async refresh(): Promise<void> {
    const before = this.#changes;
    await this.toasts.attempt(async () => {
      const status = await this.platform.serverStatus();
      // A request from before a change is older than its result.
      if (before === this.#changes) this.status = status;
    }, 'server status');
  }

  async refreshModels(): Promise<void> {
    await this.toasts.attempt(async () => (this.models = await this.platform.servedModels()), 'served models');
  }

  /** Switches it on or off, or sets it up otherwise. */
  async set(change: Partial<Pick<ServerSettings, 'on' | 'port' | 'network'>>): Promise<void> {
    if (!this.status) return;
    const { on, port, network } = { ...this.status.settings, ...change };
    const error = await this.#change(() => this.platform.setServer(on, port, network));
    if (error) this.toasts.report(error, 'server');
    else this.toasts.settle('server');
  }

  /** Lets apps search a collection of documents, or no longer. */
  async allow(collection: string, allowed: boolean): Promise<void> {
    if (!this.status) return;
    const others = this.status.settings.collections.filter((id) => id !== collection);
    const collections = allowed ? [...others, collection] : others;
    const error = await this.#change(() => this.platform.allowServerCollections(collections));
    if (error) this.toasts.report(error, 'server');
    else this.toasts.settle('server');
  }

  async makeKey(): Promise<void> {
    this.shownKey = null;
    this.keyProblem = await this.#change(() => this.platform.newServerKey());
  }

  async forgetKey(): Promise<void> {
    this.shownKey = null;
    this.keyProblem = await this.#change(() => this.platform.forgetServerKey());
  }

  /** Shows the key, or hides it. */
  async toggleKey(): Promise<void> {
    this.shownKey = this.shownKey === null ? await this.key() : null;
  }

  /** The key; `null` if it could not be read. */
  async key(): Promise<string | null> {
    this.keyProblem = null;
    try {
      return await this.platform.serverKey();
    } catch (reason) {
      this.keyProblem = asHostError(reason);
      return null;
    }
  }

  /** Tells how programs ask for this model. */
  async describe(model: string): Promise<void> {
    await this.toasts.attempt(async () => (this.setups = await this.platform.clientSetups(model, false)), 'setups');
  }

  /** The text for a program with the key in it; `null` if that could not be read. */
  async setup(program: string, model: string): Promise<string | null> {
    let setups: readonly ClientSetup[] = [];
    await this.toasts.attempt(async () => (setups = await this.platform.clientSetups(model, true)), 'setup');
    return setups.find((setup) => setup.name === program)?.text ?? null;
  }

  /** Shows the result of a change; returns the reason of a failure, or `null`. */
  async #change(call: () => Promise<ServerStatus>): Promise<HostError | null> {
    if (this.changing) return null;
    this.changing = true;
    try {
      const changed = call();
      // A keychain may wait for the user; meanwhile the server reports that it is starting.
      setTimeout(() => void (this.changing && this.refresh()), MOMENT);
      const status = await changed;
      this.#changes += 1;
      this.status = status;
      return null;
    } catch (reason) {
      return asHostError(reason);
    } finally {
      this.changing = false;
    }
  }
}

/** The server that answers other programs. */
export const [useServer, provideServer] = createContext<LocalServer>();
