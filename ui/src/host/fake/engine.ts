/** The fake host's engine, memory, heat and power. In a browser `?slowed=heat` or `?slowed=low_power` slows it down. */

import type { MemoryRelease } from '../../bindings/MemoryRelease';
import type { ModelInfo } from '../../bindings/ModelInfo';
import type { Slowdown } from '../../bindings/Slowdown';
import type { Platform } from '../types';
import { MEMORY } from './catalog';
import { listen, modelOf, modelsChanged, refusal, type Shared } from './shared';

const LOADED: ModelInfo = { reference: 'pebble', revision: 'a0', family: 'gemma4_text', quantization: '8 bit, groups of 64', wrong_products: [], parameters: 12_000_000, resident_bytes: 48_000_000, context: 2048, thinking: { kind: 'switch', default_on: true }, template_hash: 'e3b0', device: 'cpu', processor: { instructions: 'AVX2', threads: 4, activation_bits: 16 }, load_ms: 180, supports_vision: false };

export const engineControls = () => ({
  loaded: [LOADED] as ModelInfo[],
  /** Models that answer, and cannot be unloaded. */
  answering: new Set<string>(),
  /** True if there is a graphics card. */
  hasCard: false,
  slowdown: null as Slowdown | null,
  /** The number of calls of `slowedBy`. */
  slowdownAsked: 0,
  releaseListeners: new Set<(release: MemoryRelease) => void>(),
  engineListeners: new Set<() => void>(),
});

export function engine(host: Shared & ReturnType<typeof engineControls>) {
  return {
    async engineStatus() {
      return { loaded: host.loaded, memory: { active: 52_000_000, peak: 61_000_000, cache: 4_000_000 }, has_card: host.hasCard };
    },
    async unloadModel(reference) {
      if (host.answering.has(reference)) throw refusal('busy', 'The model answers.', {}, 'model_answering');
      host.loaded = host.loaded.filter((info) => info.reference !== reference);
      modelsChanged(host);
    },
    async capabilities(reference) {
      const local = modelOf(host, reference);
      const remote = local === null;
      return {
        continue_answer: !remote,
        end_thinking: !remote,
        prefetch: !remote,
        memory: !remote,
        logprobs: false,
        images: local?.supports_vision ?? true,
        vision_problem: local?.vision_problem ?? null,
        tools: true,
        kv_bits: !remote,
        leaves_computer: remote,
        thinking: remote ? { kind: 'levels', levels: ['low', 'medium', 'high'], default: null, off: true } : null,
      };
    },
    async memory() {
      return MEMORY;
    },
    async slowedBy() {
      host.slowdownAsked += 1;
      return host.slowdown;
    },
    onMemoryReleased: (listener) => listen(host.releaseListeners, listener),
    onEngineChanged: (listener) => listen(host.engineListeners, listener),
  } satisfies Partial<Platform>;
}
