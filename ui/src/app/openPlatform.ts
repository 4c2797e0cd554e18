/** The choice between the two hosts. */

import type { Platform } from '../host';
import { insideTauri, tauri } from '../host/tauri';

/** Tauri in the app; in a browser during development an in-memory host that is no part of a built app. */
export async function openPlatform(): Promise<Platform> {
  if (import.meta.env.DEV && !insideTauri) {
    const { fakePlatform } = await import('../host/fake/examples');
    return fakePlatform();
  }
  return tauri;
}
