/** The settings of a chat: their names, their groups, and presets of them. */

import type { ChatSettings } from '../../bindings/ChatSettings';
import type { LocalModel } from '../../bindings/LocalModel';
import type { Preset } from '../../bindings/Preset';
import type { Sampling } from '../../bindings/Sampling';
import type { ModelDefaults } from '../../bindings/ModelDefaults';
import type { Project } from '../../bindings/Project';
import { number, t } from '../../locales';
import { DEFAULT_CHAT_SETTINGS, SAMPLING } from '../../bindings/constants';

/** The settings that the sheet of a chat shows and that are not the model's defaults, with their values. */
export function changedSettings({
  system_prompt,
  sampling,
  max_tokens,
  context,
  kv_bits,
  kv_off,
  stop,
}: ChatSettings): string[] {
  const changed: string[] = [];
  if (system_prompt.trim() !== '') changed.push(t('chatSettings.prompt'));
  for (const name of SAMPLING) {
    const value = sampling[name];
    if (value !== undefined) changed.push(`${t(`chatSettings.${name}`)} ${value}`);
  }
  if (max_tokens !== null) changed.push(`${t('chatSettings.max_tokens')} ${max_tokens}`);
  if (context !== null) changed.push(`${t('chatSettings.context')} ${context}`);
  if (kv_bits !== null || kv_off)
    changed.push(`${t('chatSettings.kv_bits')} ${t(`chatSettings.kv_bits.${kv_bits ?? 'off'}`)}`);
  if (stop.length > 0) changed.push(t('chatSettings.stop'));
  return changed;
}

/** The sampling options that the sheet shows under *Advanced*. */
export const ADVANCED_SAMPLING = SAMPLING.filter((name) => name !== 'temperature');

/** True if one of the settings under *Advanced* is set. */
export function hasAdvanced({ sampling, kv_bits, kv_off, stop }: ChatSettings): boolean {
  return kv_bits !== null || kv_off || stop.length > 0 || ADVANCED_SAMPLING.some((name) => sampling[name] !== undefined);
}

/** The part of a chat's settings that a preset stores: not its model, its tools, its documents, nor its carried summary. */
export function presetOf(settings: ChatSettings): ChatSettings {
  const { retrieval } = DEFAULT_CHAT_SETTINGS;
  return { ...settings, model: null, carried_summary: '', tools: [], collections: [], retrieval };
}

/** The settings of a chat after a preset is applied. */
export function appliedTo(preset: Preset, { model, carried_summary, tools, collections, retrieval }: ChatSettings): ChatSettings {
  return { ...preset.settings, model, carried_summary, tools, collections, retrieval };
}

/** True if a chat's settings are those of the preset. */
export function isSetAs(preset: Preset, settings: ChatSettings): boolean {
  return JSON.stringify(ordered(presetOf(settings))) === JSON.stringify(ordered(presetOf(preset.settings)));
}

function ordered(settings: ChatSettings): unknown {
  return Object.entries({ ...settings, sampling: Object.entries(settings.sampling).sort() }).sort();
}

/** The settings after a reset to the model's defaults: only choices of the sheet are dropped. */
export function resetSettings({
  model,
  thinking,
  thinking_budget,
  image_detail,
  carried_summary,
  tools,
  collections,
  retrieval,
}: ChatSettings): ChatSettings {
  const kept = { model, thinking, thinking_budget, image_detail, carried_summary, tools, collections, retrieval };
  return { ...DEFAULT_CHAT_SETTINGS, ...kept };
}

/** The same sampling with another value for a number; `undefined` follows the model. */
export function withSampling(sampling: Sampling, name: (typeof SAMPLING)[number], value: number | undefined): Sampling {
  const { [name]: _, ...rest } = sampling;
  return value === undefined ? rest : { ...rest, [name]: value };
}

/** A value that applies if nothing is set, and its origin; both are empty if unknown. */
export interface Fallback {
  readonly value: string;
  readonly source: string;
}

/** The system prompt that applies if a chat sets none: a project's instructions take the place of the user's for the model. */
export function defaultPrompt(project: Project | null, defaults: ModelDefaults | null): Fallback {
  if (project?.system_prompt.trim())
    return { value: project.system_prompt, source: t('chatSettings.source.project', { name: project.name }) };
  if (defaults?.system_prompt.trim())
    return { value: defaults.system_prompt, source: t('chatSettings.source.yours') };
  return { value: '', source: '' };
}

/** The value of a sampling option that applies if a chat sets none: the user's for the model, its makers', or Ponder's. */
export function defaultOf(
  name: (typeof SAMPLING)[number],
  model: LocalModel | null,
  defaults: ModelDefaults | null,
): Fallback {
  const yours = defaults?.sampling[name];
  if (yours !== undefined) return { value: String(yours), source: t('chatSettings.source.yours') };
  if (name === 'seed') return { value: t('chatSettings.seedNone'), source: '' };
  const value = model?.sampling[name];
  if (value === undefined) return { value: '', source: '' };
  const source = t(model?.sampling_by_makers ? 'chatSettings.source.model' : 'chatSettings.source.ponder');
  return { value: String(value), source };
}

/** The context that applies if a chat sets none. */
export function defaultContext(model: LocalModel | null, defaults: ModelDefaults | null): Fallback {
  if (defaults?.context) return { value: number(defaults.context), source: t('chatSettings.source.yours') };
  if (model?.context) return { value: number(model.context), source: t('chatSettings.source.model') };
  return { value: t('chatSettings.contextNone'), source: '' };
}

/** A stop sequence as it is shown on one line, and as it is typed. */
export function stopShown(text: string): string {
  return text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/\t/g, '\\t');
}

export function stopTyped(typed: string): string {
  return typed.replace(/\\([nt\\])/g, (_, letter: string) => (letter === 'n' ? '\n' : letter === 't' ? '\t' : '\\'));
}
