/** The fake host's newer versions of the app. In a browser `?update=off|newest|refused` chooses the one that is found. */

import type { AppRelease } from '../../bindings/AppRelease';
import type { AppUpdate } from '../../bindings/AppUpdate';
import type { Error as HostError } from '../../bindings/Error';
import type { Platform } from '../types';
import { listen, pause, refusal } from './shared';

const RELEASE: AppRelease = { version: '0.2.0', notes: '- Answers begin sooner.\n- **Images** in folders.', at: Date.UTC(2026, 10, 20) };

export const appUpdateControls = () => ({
  /** The version that is found; `null`: nothing newer. */
  newer: RELEASE as AppRelease | null,
  /** The error of asking and installing. */
  updateProblem: null as HostError | null,
  /** Milliseconds between two pieces of a package. */
  packagePace: 0,
  /** The number of restarts of the app. */
  restarts: 0,
});

export function appUpdate(host: ReturnType<typeof appUpdateControls>) {
  let update: AppUpdate = { state: 'not_asked' };
  let stopped = false;
  const listeners = new Set<(update: AppUpdate) => void>();
  const tell = (changed: AppUpdate): AppUpdate => {
    update = changed;
    for (const listener of listeners) listener(changed);
    return changed;
  };
  const calls = {
    async appUpdate() {
      return update;
    },
    async askForAppUpdate() {
      if (update.state === 'off') throw refusal('not_found', 'this build of Ponder takes no updates by itself', {}, 'no_update');
      if (host.updateProblem) throw host.updateProblem;
      return tell(host.newer ? { state: 'available', release: host.newer } : { state: 'newest' });
    },
    async installAppUpdate() {
      const { newer: release } = host;
      if (!release || update.state !== 'available') throw refusal('not_found', 'no newer version of Ponder was found yet', {}, 'no_update');
      stopped = false;
      const total = 24_000_000;
      for (let done = 0; done < total; done += 6_000_000) {
        tell({ state: 'fetching', release, done, total });
        await pause(host.packagePace);
        const problem = stopped ? refusal('stopped', 'fetching the new version was stopped') : host.updateProblem;
        if (problem) {
          tell({ state: 'available', release });
          throw problem;
        }
      }
      return tell({ state: 'installed', release });
    },
    async stopAppUpdate() {
      stopped = true;
    },
    async restart() {
      host.restarts += 1;
    },
    onAppUpdateChanged: (listener) => listen(listeners, listener),
  } satisfies Partial<Platform>;
  return {
    ...calls,
    /** Makes this a build that takes no updates. */
    takeNoUpdates: () => void tell({ state: 'off' }),
  };
}
