/** The fake host's memory, heat and power. In a browser `?slowed=heat` or `?slowed=low_power` slows it down. */

import type { MemoryRelease } from '../bindings/MemoryRelease';
import type { Slowdown } from '../bindings/Slowdown';
import { FakeFiles } from './fakeFiles';
import type { PowerPlatform } from './power';

export class FakePower extends FakeFiles implements PowerPlatform {
  slowdown: Slowdown | null = null;
  /** How often it was asked what slows it down. */
  slowdownAsked = 0;
  /** Who hears that memory was given back. */
  readonly releaseListeners = new Set<(release: MemoryRelease) => void>();
  /** Who hears that other models are in memory. */
  readonly engineListeners = new Set<() => void>();

  async slowedBy(): Promise<Slowdown | null> {
    this.slowdownAsked += 1;
    return this.slowdown;
  }

  async onMemoryReleased(listener: (release: MemoryRelease) => void): Promise<() => void> {
    this.releaseListeners.add(listener);
    return () => this.releaseListeners.delete(listener);
  }

  async onEngineChanged(listener: () => void): Promise<() => void> {
    this.engineListeners.add(listener);
    return () => this.engineListeners.delete(listener);
  }
}
