/** Servers of tools: listed, added, switched on and off, removed; rules of their tools, and what is always allowed. */

import { createContext } from 'svelte';
import { SvelteMap, SvelteSet } from 'svelte/reactivity';

import type { BundleValue } from '../../../bindings/BundleValue';
import type { FoundServer } from '../../../bindings/FoundServer';
import type { ToolBundle } from '../../../bindings/ToolBundle';
import type { ToolClient } from '../../../bindings/ToolClient';
import type { ToolGrant } from '../../../bindings/ToolGrant';
import type { ToolRef } from '../../../bindings/ToolRef';
import type { ToolRule } from '../../../bindings/ToolRule';
import type { ToolSetup } from '../../../bindings/ToolSetup';
import type { ToolsView } from '../../../bindings/ToolsView';
import type { WebSearchSetup } from '../../../bindings/WebSearchSetup';
import { asHostError, type HostError, type Platform } from '../../../host';
import type { Toasts } from '../../../design/toasts.svelte';

export class ToolServers {
  /** `null` until they were listed for the first time. */
  view = $state.raw<ToolsView | null>(null);
  /** Why the list could not be read last time; `null` if it was. */
  problem = $state.raw<HostError | null>(null);
  /** The servers whose switch waits for the host, which may ask the person. */
  readonly #switching = new SvelteSet<string>();
  /** The servers whose sign-in waits for the browser, with how many of them were begun. */
  readonly #signingIn = new SvelteMap<string, number>();
  #requests = 0;

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** Lists the servers, and keeps the list current until the returned function is called. */
  open(): () => void {
    const heard = this.platform.onToolsChanged(() => void this.refresh());
    void this.toasts.attempt(() => heard, 'tools');
    void this.refresh();
    return () => void heard.then((unsubscribe) => unsubscribe()).catch(() => {});
  }

  async refresh(): Promise<void> {
    const request = ++this.#requests;
    let [view, problem]: [ToolsView | null, HostError | null] = [this.view, null];
    try {
      view = await this.platform.tools();
    } catch (reason) {
      problem = asHostError(reason);
    }
    // A later request has the newer list.
    if (request === this.#requests) [this.view, this.problem] = [view, problem];
  }

  /** True while its switch waits. */
  isSwitching(id: string): boolean {
    return this.#switching.has(id);
  }

  /** Switches one on or off. The host shows its command before it is switched on, and the person may decline. */
  async switch(id: string, on: boolean): Promise<void> {
    if (this.isSwitching(id)) return;
    this.#switching.add(id);
    await this.#change(() => this.platform.switchToolServer(id, on), `switch of ${id}`);
    this.#switching.delete(id);
  }

  async restart(id: string): Promise<void> {
    await this.#change(() => this.platform.restartToolServer(id), `restart of ${id}`);
  }

  /** True while its sign-in waits for the browser. */
  isSigningIn(id: string): boolean {
    return this.#signingIn.has(id);
  }

  /**
   * Signs in to one in the browser, anew if it waits for that already. Resolves to the error of a server that wants a
   * client id of its own; other errors are shown.
   */
  async signIn(id: string, client: ToolClient | null = null): Promise<HostError | null> {
    const begun = (this.#signingIn.get(id) ?? 0) + 1;
    this.#signingIn.set(id, begun);
    let unknown: HostError | null = null;
    const signingIn = async (): Promise<void> => {
      try {
        await this.platform.signInToolServer(id, client);
      } catch (reason) {
        const error = asHostError(reason);
        if (error.reason !== 'tools_not_registered') throw reason;
        unknown = error;
      }
    };
    await this.#change(signingIn, `sign-in of ${id}`);
    if (this.#signingIn.get(id) === begun) this.#signingIn.delete(id);
    return unknown;
  }

  async signOut(id: string): Promise<void> {
    await this.#change(() => this.platform.signOutToolServer(id), `sign-in of ${id}`);
  }

  /** Removes one; resolves to whether it is gone. */
  async remove(id: string): Promise<boolean> {
    return this.#change(() => this.platform.removeToolServer(id), `removal of ${id}`);
  }

  /** Adds one, switched off. Says why it could not; `null` if it did. */
  async add(setup: ToolSetup): Promise<HostError | null> {
    try {
      await this.platform.addToolServer(setup);
    } catch (reason) {
      return asHostError(reason);
    }
    await this.refresh();
    return null;
  }

  /** Changes one. Says why it could not; `null` if it did. */
  async edit(id: string, setup: ToolSetup): Promise<HostError | null> {
    try {
      await this.platform.changeToolServer(id, setup);
    } catch (reason) {
      return asHostError(reason);
    }
    await this.refresh();
    return null;
  }

  /** Lets the person choose a server in a file, which is looked into; `null` if they chose none. May reject. */
  async chooseBundle(): Promise<ToolBundle | null> {
    return this.platform.chooseToolBundle();
  }

  /** Adds the server of the file that was looked into, switched off. Says why it could not; `null` if it did. */
  async addBundle(hash: string, name: string, values: BundleValue[]): Promise<HostError | null> {
    try {
      await this.platform.addToolBundle(hash, name, values);
    } catch (reason) {
      return asHostError(reason);
    }
    await this.refresh();
    return null;
  }

  /** Gives one a folder that the person chooses in the system's dialog. */
  async addRoot(id: string): Promise<void> {
    await this.#change(() => this.platform.addToolRoot(id), `folder of ${id}`);
  }

  async removeRoot(id: string, root: string): Promise<void> {
    await this.#change(() => this.platform.removeToolRoot(id, root), `folder of ${id}`);
  }

  /** The servers that other programs on this computer use. May reject, as may the next ones. */
  async found(): Promise<FoundServer[]> {
    return this.platform.foundToolServers();
  }

  /** The servers in a configuration that was pasted. */
  async foundIn(text: string): Promise<FoundServer[]> {
    return this.platform.readToolConfiguration(text);
  }

  /** The last lines that one wrote. */
  async log(id: string): Promise<string[]> {
    return this.platform.toolServerLog(id);
  }

  /** True if a server with this command or address is in the list. */
  has({ command }: ToolSetup): boolean {
    return this.view?.servers.some((server) => server.command === command) ?? false;
  }

  /** The name of a tool for people; of one that is not listed, the name that its server gave it. */
  titleOf({ server, tool }: ToolRef): string {
    const tools = this.view?.servers.find(({ id }) => id === server)?.tools;
    return tools?.find(({ name }) => name === tool)?.title || tool;
  }

  async setRule(tool: ToolRef, rule: ToolRule | null): Promise<void> {
    await this.#change(() => this.platform.setToolRule(tool, rule), `rule of ${tool.server}/${tool.tool}`);
  }

  /** Takes back that a tool may run without asking, on this host if it was allowed for one. */
  async revoke({ tool, host }: ToolGrant): Promise<void> {
    await this.#change(() => this.platform.revokeToolGrant(tool, host), `grant of ${tool.server}/${tool.tool}`);
  }

  /** Switches a tool of Ponder that reaches the internet on or off. */
  async switchOwn(name: string, on: boolean): Promise<void> {
    await this.#change(() => this.platform.switchOwnTool(name, on), `switch of ${name}`);
  }

  /** Chooses the search engine, or none. Says why it could not; `null` if it did. */
  async setWebSearch(setup: WebSearchSetup | null): Promise<HostError | null> {
    try {
      await this.platform.setWebSearch(setup);
    } catch (reason) {
      return asHostError(reason);
    }
    await this.refresh();
    return null;
  }

  /** Shows the result of a change; resolves to whether it was made. */
  async #change(call: () => Promise<unknown>, cause: string): Promise<boolean> {
    const done = await this.toasts.attempt(call, cause);
    await this.refresh();
    return done;
  }
}

/** The servers of tools. */
export const [useToolServers, provideToolServers] = createContext<ToolServers>();
