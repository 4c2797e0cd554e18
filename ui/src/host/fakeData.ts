/** The fake host's engine and data: what is loaded, what lies on the disk, and what no chat may be set to. */

import type { ChatSettings } from '../bindings/ChatSettings';
import type { DataUse } from '../bindings/DataUse';
import type { Error as HostError } from '../bindings/Error';
import type { HistoryBackup } from '../bindings/HistoryBackup';
import type { ModelInfo } from '../bindings/ModelInfo';
import type { Settings } from '../bindings/Settings';
import type { DataPlatform } from './data';
import { FakeKeeping } from './fakeKeeping';
import type { Platform } from './types';

const LOADED: ModelInfo = { reference: 'pebble', revision: 'a0', family: 'gemma4_text', quantization: '8 bit, groups of 64', dequantised: true, wrong_products: [], parameters: 12_000_000, resident_bytes: 48_000_000, context: 2048, thinking: { kind: 'switch', default_on: true }, template_hash: 'e3b0', device: 'cpu', load_ms: 180, sees: false };

/** What numbers may be; the real host knows more of them. */
const RANGES = { temperature: [0, 100], top_p: [0, 1], min_p: [0, 1], repetition_penalty: [0, 100], presence_penalty: [-100, 100], frequency_penalty: [-100, 100] } as const;
const LEAST_CONTEXT = 512;

function refusal(field: string, limits: Record<string, string | number>, message: string): HostError {
  return { code: 'bad_request', arguments: { field, ...limits }, message };
}

/** Rejects what no request may have. */
export function checkSettings({ sampling, max_tokens, context, stop }: ChatSettings): void {
  for (const [field, [low, high]] of Object.entries(RANGES)) {
    const value = sampling[field as keyof typeof RANGES];
    if (value !== undefined && !(value >= low && value <= high)) throw refusal(field, { low: String(low), high: String(high) }, `${field} is ${value}`);
  }
  if (max_tokens === 0) throw refusal('max_tokens', { low: 1 }, 'an answer of at most 0 tokens was asked for');
  if (context !== null && context < LEAST_CONTEXT) throw refusal('context', { low: LEAST_CONTEXT }, `a context of ${context} tokens was asked for`);
  if (stop.some((text) => text === '')) throw refusal('stop', {}, 'a stop text is empty');
}

export class FakeData extends FakeKeeping implements DataPlatform {
  loaded: ModelInfo[] = [LOADED];
  /** Models that answer, and cannot be ejected. */
  readonly answering = new Set<string>();
  backups: HistoryBackup[] = [];
  /** How often the folder of all data was shown. */
  revealedData = 0;

  async engineStatus(): ReturnType<Platform['engineStatus']> {
    return { loaded: this.loaded, memory: { active: 52_000_000, peak: 61_000_000, cache: 4_000_000 } };
  }
  async ejectModel(reference: string): Promise<void> {
    if (this.answering.has(reference)) throw { code: 'busy', message: 'The model answers.' };
    this.loaded = this.loaded.filter((info) => info.reference !== reference);
    this.modelsChanged();
  }

  async capabilities(reference: string | null): ReturnType<Platform['capabilities']> {
    const remote = reference?.startsWith('endpoint:') ?? false;
    const meant = reference ?? this.app.default_model;
    if (!remote && !(await this.models()).some((model) => model.reference === meant)) throw { code: 'model_not_found', message: 'There is no such model here.' };
    const local = remote ? undefined : this.local.find((model) => model.reference === meant);
    return {
      continue_answer: !remote,
      end_thinking: !remote,
      prefetch: !remote,
      memory: !remote,
      logprobs: false,
      images: remote || (local?.sees ?? false),
      vision_problem: local?.vision_problem ?? null,
      tools: true,
      kv_bits: !remote,
      leaves_computer: remote,
      thinking: remote ? { kind: 'levels', levels: ['low', 'medium', 'high'], default: null, off: true } : null,
    };
  }

  async dataUse(): Promise<DataUse> {
    const models = this.local.reduce((sum, model) => sum + model.bytes, 0);
    return { folder: '/Users/ada/Library/Application Support/Ponder', chats: this.kept.size, history: 1_200_000, attachments: await this.pictureStorage(), models, backups: this.backups };
  }
  async backUpNow(): Promise<void> {
    this.backups = [{ made_at: Date.now(), bytes: 900_000 }, ...this.backups].slice(0, 5);
  }
  async revealDataFolder(): Promise<void> {
    this.revealedData += 1;
  }
  async deleteAllChats(backups: boolean): Promise<void> {
    this.kept.clear();
    if (backups) this.backups = [];
    this.tell();
  }

  async checkChatSettings(settings: ChatSettings): Promise<void> {
    checkSettings(settings);
  }

  override async changeSettings(change: Partial<Settings>): Promise<Settings> {
    const { presets, default_preset: chosen, appearance } = { ...this.app, ...change };
    for (const preset of presets) {
      checkSettings(preset.settings);
      const name = preset.name.trim();
      if (name === '' || name.length > 60) throw refusal('preset', { longest: 60 }, 'a preset’s name has 1 to 60 characters');
      if (presets.some((other) => other !== preset && other.name.trim().toLowerCase() === name.toLowerCase())) throw refusal('preset', { name }, `there is a preset called ${name} already`);
    }
    if (chosen !== null && !presets.some(({ name }) => name === chosen)) throw refusal('default_preset', { name: chosen }, `there is no preset called ${chosen}`);
    if (appearance.zoom < 50 || appearance.zoom > 300) throw refusal('zoom', { low: 50, high: 300 }, `zoom is ${appearance.zoom} %`);
    return super.changeSettings(change);
  }
}
