/** The part of the in-memory host that is about newer versions of the app. In a browser `?update=off|newest|refused` chooses what it finds. */

import type { AppRelease } from '../bindings/AppRelease';
import type { AppUpdate } from '../bindings/AppUpdate';
import type { Error as HostError } from '../bindings/Error';
import type { AppUpdatePlatform } from './appUpdate';
import { FakeServer } from './fakeServer';
import type { Unsubscribe } from './types';

const RELEASE: AppRelease = { version: '0.2.0', notes: '- Answers begin sooner.\n- **Pictures** in folders.', at: Date.UTC(2026, 10, 20) };

export class FakeAppUpdate extends FakeServer implements AppUpdatePlatform {
  /** What is found if somebody asks; `null`: nothing newer. */
  newer: AppRelease | null = RELEASE;
  /** What asking, or installing, ends with. */
  updateProblem: HostError | null = null;
  /** Milliseconds between two pieces of a package. */
  packagePace = 0;
  /** How often the app was started again. */
  restarts = 0;
  #update: AppUpdate = { state: 'not_asked' };
  #stopped = false;
  readonly #followers = new Set<(update: AppUpdate) => void>();

  /** Makes this a build that takes no updates. */
  takeNoUpdates(): void {
    this.#tell({ state: 'off' });
  }

  async appUpdate(): Promise<AppUpdate> {
    return this.#update;
  }

  async askForAppUpdate(): Promise<AppUpdate> {
    if (this.#update.state === 'off') throw { code: 'not_found', message: 'this build of Ponder takes no updates by itself' } satisfies HostError;
    if (this.updateProblem) throw this.updateProblem;
    this.#tell(this.newer ? { state: 'available', release: this.newer } : { state: 'newest' });
    return this.#update;
  }

  async installAppUpdate(): Promise<AppUpdate> {
    const { newer } = this;
    if (!newer || this.#update.state !== 'available') throw { code: 'not_found', message: 'no newer version of Ponder was found yet' } satisfies HostError;
    this.#stopped = false;
    const total = 24_000_000;
    for (let done = 0; done < total; done += 6_000_000) {
      this.#tell({ state: 'fetching', release: newer, done, total });
      await new Promise((resolve) => setTimeout(resolve, this.packagePace));
      const problem = this.#stopped ? ({ code: 'stopped', message: 'fetching the new version was stopped' } satisfies HostError) : this.updateProblem;
      if (problem) {
        this.#tell({ state: 'available', release: newer });
        throw problem;
      }
    }
    this.#tell({ state: 'installed', release: newer });
    return this.#update;
  }

  async stopAppUpdate(): Promise<void> {
    this.#stopped = true;
  }

  async restart(): Promise<void> {
    this.restarts += 1;
  }

  async onAppUpdateChanged(listener: (update: AppUpdate) => void): Promise<Unsubscribe> {
    this.#followers.add(listener);
    return () => this.#followers.delete(listener);
  }

  #tell(update: AppUpdate): void {
    this.#update = update;
    for (const follower of this.#followers) follower(update);
  }
}
