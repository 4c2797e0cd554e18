/** What the windows can ask of their host about the computer's memory, heat and power. */

import type { MemoryRelease } from '../bindings/MemoryRelease';
import type { Slowdown } from '../bindings/Slowdown';
import type { Unsubscribe } from './types';

export interface PowerPlatform {
  /** What slows the computer down at the moment; `null`: nothing that the system tells. */
  slowedBy(): Promise<Slowdown | null>;
  /** Called when memory was given back because the computer's got short. */
  onMemoryReleased(listener: (release: MemoryRelease) => void): Promise<Unsubscribe>;
  /** Called when other models are in memory than `engineStatus` gave. */
  onEngineChanged(listener: () => void): Promise<Unsubscribe>;
}
