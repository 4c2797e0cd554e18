/** The only door to the host. */

import { insideTauri, tauri } from './tauri';
import type { Platform } from './types';

export { asHostError } from './types';
export type { HostError, Platform, Unsubscribe } from './types';

/** Tauri in the app; in a browser during development an in-memory host that is no part of a built app. */
export async function openPlatform(): Promise<Platform> {
  if (import.meta.env.DEV && !insideTauri) {
    const { fakePlatform } = await import('./fakeChats');
    return fakePlatform();
  }
  return tauri;
}
