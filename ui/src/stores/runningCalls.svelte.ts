/** The calls of tools that run, and how far they are. */

import { createContext } from 'svelte';

import type { CallProgress } from '../bindings/CallProgress';
import type { RunningCall } from '../bindings/RunningCall';
import type { Platform, Unsubscribe } from '../host';

export class RunningCalls {
  #list = $state.raw<readonly RunningCall[]>([]);
  /** The number of the newest request for the list: an older one that ends later is not shown. */
  #asked = 0;

  constructor(private readonly platform: Platform) {}

  /** Lists the calls, and again after every change. */
  async open(): Promise<Unsubscribe> {
    const unsubscribe = await this.platform.onRunningCallsChanged(() => void this.#refresh());
    await this.#refresh();
    return unsubscribe;
  }

  /** How far a call is; `null` if nobody said it. */
  progressOf(answer: string, call: string): CallProgress | null {
    return this.#list.find((running) => running.answer === answer && running.call === call)?.progress ?? null;
  }

  async #refresh(): Promise<void> {
    const asked = (this.#asked += 1);
    // The next change tells it again.
    const list = await this.platform.runningCalls().catch(() => this.#list);
    if (asked === this.#asked) this.#list = list;
  }
}

export const [useRunningCalls, provideRunningCalls] = createContext<RunningCalls>();
