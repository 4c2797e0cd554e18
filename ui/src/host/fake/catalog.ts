/** The models of the fake host's hub. */

import type { MemoryFit } from '../../bindings/MemoryFit';
import type { HubModel } from '../../bindings/HubModel';
import type { ModelNote } from '../../bindings/ModelNote';
import type { OutboundRequest } from '../../bindings/OutboundRequest';
import { UNKNOWN_FAMILY } from './localModels';

const GB = 1_000_000_000;
const TOTAL = 24 * GB;
const FREE = 11.8 * GB;

/** The memory of this computer. */
export const MEMORY = { total: TOTAL, free: FREE };

/** The memory that a model of this size needs at a context, roughly. */
export function fitAt(bytes: number, context: number, most: number, measured: number | null = null): MemoryFit {
  const kv = Math.round(Math.min(context, most) * Math.sqrt(bytes) * 1.4);
  const working = Math.round(bytes * 0.06 + 150_000_000);
  const needed = bytes + kv + working;
  const word = needed > FREE ? 'will_not_fit' : needed > FREE * 0.75 ? 'tight' : 'comfortable';
  return { word, context: Math.min(context, most), most_context: most, comfortable_context: null, weights: bytes, kv, working, needed, free: FREE, total: TOTAL, measured };
}

function model(id: string, name: string, gb: number, more: Partial<HubModel> = {}): HubModel {
  const context = more.context ?? 131_072;
  const bytes = Math.round(gb * GB);
  return {
    id, name, author: id.split('/')[0] ?? '', kind: 'chat', downloads: 800_000, likes: 120, updated_at: Date.now() - 40 * 86_400_000, bytes, quantization: '4 bit', context,
    licence: 'apache-2.0', family: 'qwen3', gated: false, thinking: { kind: 'switch', default_on: true }, problem: null, described: true, commit: '9b02',
    fit: fitAt(bytes, 16_384, context), here: false, note: null, cached_at: null, ...more,
  };
}

/** The results of a search. */
export function hubModels(): HubModel[] {
  return [
    model('mlx-community/gemma-4-e4b-it-4bit', 'Gemma 4 E4B', 4.2, { downloads: 1_900_000, family: 'gemma4' }),
    model('mlx-community/Qwen3-4B-4bit', 'Qwen3 4B', 2.3, { downloads: 1_200_000, context: 40_960 }),
    model('mlx-community/gpt-oss-20b-MXFP4', 'gpt-oss 20B', 8.1, { quantization: 'mxfp4', family: 'gpt_oss', thinking: { kind: 'levels', levels: ['low', 'medium', 'high'], default: 'medium', off: false } }),
    model('mlx-community/gemma-4-26b-a4b-it-4bit', 'Gemma 4 26B-A4B', 14.9, { downloads: 610_000, family: 'gemma4' }),
    model('meta-llama/Llama-3.2-3B-Instruct-4bit', 'Llama 3.2 3B', 1.8, { gated: true, licence: 'llama3.2', thinking: { kind: 'never' }, family: 'llama' }),
    model('mlx-community/mystery-7b', 'Mystery 7B', 3.9, { downloads: 1200, thinking: null, context: null, fit: null, problem: UNKNOWN_FAMILY, family: 'mystery' }),
    model('mlx-community/Mistral-Small-3.2-24B-Instruct-2506-4bit', 'Mistral Small 3.2 24B Instruct 2506', 13.3, { downloads: 88_000, thinking: { kind: 'never' } }),
    model('mlx-community/Qwen3-Embedding-0.6B-4bit-DWQ', 'Qwen3 Embedding 0.6B', 0.4, { kind: 'embedding', downloads: 21_000, thinking: null }),
    model('mlx-community/Qwen3-235B-A22B-4bit', 'Qwen3 235B-A22B', 132, { downloads: 9400 }),
    model('someone/a-very-long-name-that-somebody-gave-to-a-merge-of-seven-models-with-a-long-history-v2-final-4bit', 'a very long name that somebody gave to a merge of seven models with a long history v2 final', 6.4, { downloads: 12 }),
    model('mlx-community/SmolLM3-3B-4bit', 'SmolLM3 3B', 1.7, { thinking: { kind: 'by_request', default_on: true }, downloads: 74_000 }),
  ];
}

/** More models than anybody wants, for looking at how the list moves. */
export function manyModels(count: number): HubModel[] {
  return Array.from({ length: count }, (_, index) => model(`mlx-community/Model-${index + 1}-4bit`, `Model ${index + 1}`, 0.5 + (index % 30)));
}

/** The recommended first models. */
export function firstModels(): HubModel[] {
  const notes: ModelNote[] = ['small', 'careful', 'strongest'];
  return hubModels().filter((_, index) => [1, 0, 2].includes(index)).map((first, index) => ({ ...first, note: notes[index] ?? null }));
}

const now = Date.now();

/** The requests that left this computer. */
export const REQUESTS: OutboundRequest[] = [
  { number: 4, at: now - 20_000, host: 'cas-bridge.xethub.hf.co', purpose: 'download', method: 'GET', status: 206, sent: 810, received: 1_310_000_000, milliseconds: 72_000, failure: null, over: false },
  { number: 3, at: now - 24_000, host: 'huggingface.co', purpose: 'file_list', method: 'GET', status: 200, sent: 402, received: 5_200, milliseconds: 180, failure: null, over: true },
  { number: 2, at: now - 95_000, host: 'huggingface.co', purpose: 'search', method: 'GET', status: 200, sent: 388, received: 61_000, milliseconds: 320, failure: null, over: true },
  { number: 1, at: now - 86_400_000, host: 'huggingface.co', purpose: 'card', method: 'GET', status: null, sent: 0, received: 0, milliseconds: 3, failure: { code: 'offline', message: 'Ponder is offline.' }, over: true },
];

/** A model's card, with what must not come through. */
export const CARD = `# NAME

This model was converted to MLX format from the original weights.

![A remote image](https://example.org/logo.png)

| Benchmark | Score |
|---|---|
| MMLU-Pro | 71.2 |
| GSM8K | 93.0 |

\`\`\`python
from mlx_lm import load, generate
model, tokenizer = load("NAME")
\`\`\`

<script>document.title = 'taken over'</script>
<img src=x onerror="document.title = 'taken over'">

Read [the paper](https://example.org/paper) or [the next page](./other.md).
`;
