/** Servers out of configurations: found, chosen and added. */

import { SvelteMap, SvelteSet } from 'svelte/reactivity';

import type { FoundServer } from '../../../bindings/FoundServer';
import { asHostError, type HostError } from '../../../host';
import type { ToolServers } from './toolServers.svelte';

export class FoundServers {
  /** `null` until a search succeeded. */
  list = $state.raw<readonly FoundServer[] | null>(null);
  /** Why the last search failed. */
  problem = $state.raw<HostError | null>(null);
  searching = $state(false);
  adding = $state(false);
  readonly chosen = new SvelteSet<FoundServer>();
  readonly added = new SvelteSet<FoundServer>();
  /** Why some of the chosen ones could not be added. */
  readonly refused = new SvelteMap<FoundServer, HostError>();

  constructor(private readonly servers: ToolServers) {}

  /** Forgets what was found. */
  clear(): void {
    [this.list, this.problem] = [null, null];
    for (const marks of [this.chosen, this.added, this.refused]) marks.clear();
  }

  /** Searches anew; with `choose`, those that can be added and are not in the list yet are chosen. */
  async search(call: () => Promise<FoundServer[]>, choose: boolean): Promise<void> {
    if (this.searching) return;
    this.searching = true;
    this.clear();
    try {
      const list = await call();
      this.list = list;
      const fresh = list.filter((found) => this.canBeAdded(found) && !this.servers.has(found.setup));
      for (const found of choose ? fresh : []) this.chosen.add(found);
    } catch (reason) {
      this.problem = asHostError(reason);
    }
    this.searching = false;
  }

  /** True if it can be added as it is. */
  canBeAdded(found: FoundServer): boolean {
    return found.problem === null && !this.added.has(found);
  }

  toggle(found: FoundServer): void {
    if (!this.chosen.delete(found)) this.chosen.add(found);
  }

  /** Notes that one was added. */
  note(found: FoundServer): void {
    this.added.add(found);
    this.chosen.delete(found);
    this.refused.delete(found);
  }

  /** Adds the chosen ones; resolves to whether all were. */
  async add(): Promise<boolean> {
    if (this.adding) return false;
    this.adding = true;
    this.refused.clear();
    for (const found of [...this.chosen]) {
      const error = await this.servers.add(found.setup);
      if (error) this.refused.set(found, error);
      else this.note(found);
    }
    this.adding = false;
    return this.refused.size === 0;
  }
}
