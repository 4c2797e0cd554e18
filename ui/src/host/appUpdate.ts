/** What the windows can ask of their host about newer versions of the app. */

import type { AppUpdate } from '../bindings/AppUpdate';
import type { Unsubscribe } from './types';

export interface AppUpdatePlatform {
  /** What is known of newer versions. Opens no connection. */
  appUpdate(): Promise<AppUpdate>;
  /** Asks whether there is a newer version. */
  askForAppUpdate(): Promise<AppUpdate>;
  /** Fetches the version that was found, verifies it and puts it in the place of this one. Until then nothing is changed. */
  installAppUpdate(): Promise<AppUpdate>;
  /** Stops fetching. */
  stopAppUpdate(): Promise<void>;
  /** Ends the app, as its end always is, and starts it again. */
  restart(): Promise<void>;
  /** Called with what is known when that has changed. */
  onAppUpdateChanged(listener: (update: AppUpdate) => void): Promise<Unsubscribe>;
}
