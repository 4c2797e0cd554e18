/** Operations on the models of this computer: verify, repair, remove, update; and their folders. */

import { createContext } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';

import type { ModelFolderEntry } from '../bindings/ModelFolderEntry';
import type { Removal } from '../bindings/Removal';
import type { Update } from '../bindings/Update';
import type { Verification } from '../bindings/Verification';
import type { VerifyProgress } from '../bindings/VerifyProgress';
import { asHostError, type HostError, type Platform } from '../host';
import { t } from '../locales';
import type { Toasts } from '../design/toasts.svelte';
import { Undo } from './undo.svelte';

/** The state of a model's verification. */
export type Check =
  | { kind: 'running'; progress: VerifyProgress | null }
  | { kind: 'done'; result: Verification }
  | { kind: 'failed'; error: HostError };

/** The state of the check for a newer version; `null` inside: there is none. */
export type UpdateCheck = { kind: 'asking' } | { kind: 'known'; update: Update | null };

export class LocalModels {
  /** The folders that hold models; `null` until they were read. */
  folders = $state.raw<readonly ModelFolderEntry[] | null>(null);
  readonly #checks = new SvelteMap<string, Check>();
  readonly #updateChecks = new SvelteMap<string, UpdateCheck>();

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
    private readonly undo = new Undo(toasts),
  ) {}

  async refresh(): Promise<void> {
    await this.toasts.attempt(async () => (this.folders = await this.platform.modelFolders()), 'folders');
  }

  check(reference: string): Check | null {
    return this.#checks.get(reference) ?? null;
  }

  updateCheck(reference: string): UpdateCheck | null {
    return this.#updateChecks.get(reference) ?? null;
  }

  async verify(reference: string): Promise<void> {
    await this.#check(reference, (onProgress) => this.platform.verifyModel(reference, onProgress));
  }

  /** Verifies all files and downloads the wrong ones; a download shows the progress. */
  async repair(reference: string): Promise<void> {
    await this.#check(reference, (onProgress) => this.platform.repairModel(reference, onProgress));
  }

  async #check(
    reference: string,
    read: (onProgress: (progress: VerifyProgress) => void) => Promise<Verification>,
  ): Promise<void> {
    if (this.#checks.get(reference)?.kind === 'running') return;
    this.#checks.set(reference, { kind: 'running', progress: null });
    try {
      const result = await read((progress) => {
        if (this.#checks.get(reference)?.kind === 'running') this.#checks.set(reference, { kind: 'running', progress });
      });
      this.#checks.set(reference, { kind: 'done', result });
    } catch (reason) {
      this.#checks.set(reference, { kind: 'failed', error: asHostError(reason) });
    }
  }

  async checkForUpdate(reference: string): Promise<void> {
    this.#updateChecks.set(reference, { kind: 'asking' });
    const known = await this.toasts.attempt(async () => {
      this.#updateChecks.set(reference, { kind: 'known', update: await this.platform.updateOf(reference) });
    }, `update of ${reference}`);
    if (!known) this.#updateChecks.delete(reference);
  }

  /** Fetches the newer one. */
  async update(reference: string): Promise<void> {
    if (await this.#call(() => this.platform.download(reference, null))) this.#updateChecks.delete(reference);
  }

  /** The effect of a removal, or `null` if unknown. */
  async removalOf(reference: string): Promise<Removal | null> {
    let removal: Removal | null = null;
    await this.toasts.attempt(async () => (removal = await this.platform.removalOf(reference)), 'removal');
    return removal;
  }

  /** Removes a model. While its message is shown the model can be brought back, if the host still stores it. */
  async remove(reference: string, name: string): Promise<boolean> {
    let kept = false;
    const removed = await this.#call(async () => (kept = await this.platform.removeModel(reference)));
    if (!removed) return false;
    this.#checks.delete(reference);
    this.#updateChecks.delete(reference);
    if (kept) {
      const back = async (): Promise<void> => {
        if (await this.#call(() => this.platform.putBackModel(reference))) await this.refresh();
      };
      this.undo.offer(
        t('remove.removed', { name }),
        back,
        `removed ${reference}`,
        () => void this.#call(() => this.platform.freeModel(reference)),
      );
    }
    await this.refresh();
    return true;
  }

  async reveal(reference: string): Promise<void> {
    await this.#call(() => this.platform.revealModel(reference));
  }

  async addFolder(path: string): Promise<boolean> {
    // A new attempt replaces the failed one.
    this.toasts.settle('library');
    const added = await this.#call(() => this.platform.addModelFolder(path));
    if (added) await this.refresh();
    return added;
  }

  /** Lets the user choose a folder in the system's dialog; false if they chose none. */
  async chooseFolder(): Promise<boolean> {
    let chosen = false;
    await this.#call(async () => (chosen = await this.platform.chooseModelFolder()));
    if (chosen) await this.refresh();
    return chosen;
  }

  async forgetFolder(path: string): Promise<void> {
    if (await this.#call(() => this.platform.forgetModelFolder(path))) await this.refresh();
  }

  async chatWith(reference: string): Promise<void> {
    await this.#call(() => this.platform.chatWith(reference));
  }

  async #call(call: () => Promise<unknown>): Promise<boolean> {
    return this.toasts.attempt(call, 'library');
  }
}

/** The models on this computer, and their folders. */
export const [useLocalModels, provideLocalModels] = createContext<LocalModels>();
