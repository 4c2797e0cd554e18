/** The effects of the computer's memory, heat and power on answers. */

import type { MemoryRelease } from '../../bindings/MemoryRelease';
import type { Slowdown } from '../../bindings/Slowdown';
import { bytes } from '../../format/format';
import { t } from '../../locales';
import type { Platform } from '../../host';
import type { Toasts } from '../../design/toasts.svelte';

/** The interval of checks for a slow computer while an answer runs, in milliseconds. */
const LOOK_EVERY = 10_000;

export class Power {
  /** The cause that slows the current answer down; `null` without an answer or a cause. */
  slowdown = $state<Slowdown | null>(null);
  /** The message about memory that is shown: a later one takes its place. */
  #said: number | null = null;

  constructor(
    private readonly platform: Pick<Platform, 'slowedBy' | 'onMemoryReleased'>,
    private readonly toasts: Toasts,
  ) {}

  /** Says from now on when memory was given back. */
  async open(): Promise<void> {
    await this.toasts.attempt(() => this.platform.onMemoryReleased((release) => this.#say(release)), 'memory');
  }

  /** Checks for a slow computer until the returned function is called. */
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
    this.#said = this.toasts.say(
      t(unloaded.length > 0 ? 'power.modelReleased' : 'power.cacheReleased', { size: bytes(size) }),
    );
  }
}
