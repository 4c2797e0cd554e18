/** Quantized copies of models that are made in this window. */

import { createContext } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';

import type { QuantizeChoice } from '../bindings/QuantizeChoice';
import type { QuantizedModel } from '../bindings/QuantizedModel';
import type { QuantizeFormat } from '../bindings/QuantizeFormat';
import type { VerifyProgress } from '../bindings/VerifyProgress';
import { asHostError, type HostError, type Platform } from '../host';
import type { Toasts } from '../design/toasts.svelte';

/** The state of a copy. */
export type Quantization =
  | { kind: 'running'; progress: VerifyProgress | null }
  | { kind: 'comparing' }
  | { kind: 'done'; result: QuantizedModel }
  | { kind: 'failed'; error: HostError };

export class Quantizations {
  /** By the reference of the original. */
  readonly #all = new SvelteMap<string, Quantization>();

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  of(reference: string): Quantization | null {
    return this.#all.get(reference) ?? null;
  }

  /** The formats that a copy may have; an error says why there is none. */
  async choices(reference: string): Promise<readonly QuantizeChoice[] | HostError> {
    try {
      return await this.platform.quantizeChoices(reference);
    } catch (reason) {
      return asHostError(reason);
    }
  }

  /** Makes a copy. */
  async start(reference: string, format: QuantizeFormat, compare: boolean): Promise<void> {
    const state = this.#all.get(reference)?.kind;
    if (state === 'running' || state === 'comparing') return;
    this.#all.set(reference, { kind: 'running', progress: null });
    try {
      const result = await this.platform.quantizeModel(reference, format, compare, (progress) => {
        if (this.#all.get(reference)?.kind !== 'running') return;
        const written = progress.done === progress.total;
        this.#all.set(reference, written && compare ? { kind: 'comparing' } : { kind: 'running', progress });
      });
      this.#all.set(reference, { kind: 'done', result });
    } catch (reason) {
      const error = asHostError(reason);
      if (error.code === 'stopped') this.#all.delete(reference);
      else this.#all.set(reference, { kind: 'failed', error });
    }
  }

  async stop(reference: string): Promise<void> {
    await this.toasts.attempt(() => this.platform.stopQuantizing(reference), `stop of the copy of ${reference}`);
  }
}

/** Quantized copies that are made. */
export const [useQuantizations, provideQuantizations] = createContext<Quantizations>();
