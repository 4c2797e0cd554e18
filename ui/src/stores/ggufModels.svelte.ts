/** GGUF files of other programs, and their imports. */

import { createContext } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';

import type { GgufImport } from '../bindings/GgufImport';
import type { GgufModel } from '../bindings/GgufModel';
import type { VerifyProgress } from '../bindings/VerifyProgress';
import { asHostError, type HostError, type Platform } from '../host';
import type { Toasts } from '../design/toasts.svelte';

/** The state of an import. */
export type Import =
  | { kind: 'running'; progress: VerifyProgress | null }
  | { kind: 'done'; result: GgufImport }
  | { kind: 'failed'; error: HostError };

export class GgufModels {
  /** The models of other programs, and files that the user chose; `null` until they were listed. */
  list = $state.raw<readonly GgufModel[] | null>(null);
  /** Files that the user chose, which no list has. */
  #chosen: GgufModel[] = [];
  readonly #imports = new SvelteMap<string, Import>();

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  async refresh(): Promise<void> {
    await this.toasts.attempt(async () => {
      const found = await this.platform.ggufModels();
      this.list = [...found, ...this.#chosen];
    }, 'gguf models');
  }

  import(reference: string): Import | null {
    return this.#imports.get(reference) ?? null;
  }

  /** Makes a model of it. */
  async start(reference: string): Promise<void> {
    if (this.#imports.get(reference)?.kind === 'running') return;
    this.#imports.set(reference, { kind: 'running', progress: null });
    try {
      const result = await this.platform.importGguf(reference, (progress) => {
        if (this.#imports.get(reference)?.kind === 'running')
          this.#imports.set(reference, { kind: 'running', progress });
      });
      this.#imports.set(reference, { kind: 'done', result });
    } catch (reason) {
      const error = asHostError(reason);
      if (error.code === 'stopped') this.#imports.delete(reference);
      else this.#imports.set(reference, { kind: 'failed', error });
    }
  }

  async stop(reference: string): Promise<void> {
    await this.toasts.attempt(() => this.platform.stopGgufImport(reference), `stop of ${reference}`);
  }

  /** Lets the user choose files in the system's dialog, and makes models of them. */
  async choose(): Promise<void> {
    await this.toasts.attempt(async () => this.add(await this.platform.chooseGgufFiles()), 'choice of GGUF files');
  }

  /** Makes models of files. */
  add(paths: readonly string[]): void {
    for (const path of paths) {
      if (!this.#chosen.some(({ reference }) => reference === path)) {
        const name = path.split(/[\\/]/).findLast(Boolean) ?? path;
        this.#chosen = [...this.#chosen, { reference: path, name, bytes: 0, imported: false, problem: null }];
      }
      void this.start(path);
    }
    const listed = (this.list ?? []).filter((model) => !this.#chosen.includes(model));
    this.list = [...listed.filter(({ reference }) => !paths.includes(reference)), ...this.#chosen];
  }
}

/** GGUF files of other programs. */
export const [useGgufModels, provideGgufModels] = createContext<GgufModels>();
