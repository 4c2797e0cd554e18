/** What the computer's memory, heat and power do to answers. */

import type { MemoryRelease } from '../bindings/MemoryRelease';
import type { Slowdown } from '../bindings/Slowdown';
import { bytes } from '../lib/format';
import { t } from '../messages';
import type { Platform } from '../platform';
import type { Toasts } from './toasts.svelte';

/** How often it is asked what slows the computer down while an answer is written, in milliseconds. */
const LOOK_EVERY = 10_000;

export class Power {
  /** What slows the answer down that is being written; `null` while none is, or if nothing does. */
  slowdown = $state<Slowdown | null>(null);
  /** The message about memory that is shown: a later one takes its place. */
  #said: number | null = null;

  constructor(
    private readonly platform: Pick<Platform, 'slowedBy' | 'onMemoryReleased'>,
    private readonly toasts: Toasts,
  ) {}

  /** Says from now on when memory was given back. */
  async open(): Promise<void> {
    try {
      await this.platform.onMemoryReleased((release) => this.#say(release));
    } catch (reason) {
      this.toasts.report(reason);
    }
  }

  /** Asks what slows the computer down, until what it returns is called. */
  watch(): () => void {
    let watching = true;
    const look = async (): Promise<void> => {
      const slowdown = await this.platform.slowedBy().catch(() => null);
      if (watching) this.slowdown = slowdown;
    };
    void look();
    const timer = setInterval(() => void look(), LOOK_EVERY);
    return () => {
      watching = false;
      clearInterval(timer);
      this.slowdown = null;
    };
  }

  #say({ bytes: size, unloaded }: MemoryRelease): void {
    if (this.#said !== null) this.toasts.dismiss(this.#said);
    this.#said = this.toasts.say(t(unloaded.length > 0 ? 'power.modelReleased' : 'power.cacheReleased', { size: bytes(size) }));
  }
}
