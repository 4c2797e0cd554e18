/** What a chat is set to, in words. */

import type { ChatSettings } from '../bindings/ChatSettings';
import type { Error as HostError } from '../bindings/Error';
import type { LocalModel } from '../bindings/LocalModel';
import type { Preset } from '../bindings/Preset';
import type { Sampling } from '../bindings/Sampling';
import type { Settings } from '../bindings/Settings';
import type { ThinkingControl } from '../bindings/ThinkingControl';
import { t } from '../messages';
import { errorText } from '../messages/host';
import { DEFAULT_CHAT_SETTINGS } from '../platform/types';
import type { Second } from '../stores/twoAnswers.svelte';

/** The numbers that choose words, in the order in which they are shown. */
export const SAMPLING = ['temperature', 'top_p', 'top_k', 'min_p', 'repetition_penalty', 'presence_penalty', 'frequency_penalty', 'seed'] as const;

/** Numbers without a part behind the point. */
export const WHOLE: ReadonlySet<string> = new Set(['top_k', 'seed', 'max_tokens', 'context']);

/** The settings that the sheet of a chat shows and that are not the model's defaults, with their values. */
export function changedSettings({ system_prompt, sampling, max_tokens, context, kv_bits, stop }: ChatSettings): string[] {
  const changed: string[] = [];
  if (system_prompt.trim() !== '') changed.push(t('chatSettings.prompt'));
  for (const name of SAMPLING) {
    const value = sampling[name];
    if (value !== undefined) changed.push(`${t(`chatSettings.${name}`)} ${value}`);
  }
  if (max_tokens !== null) changed.push(`${t('chatSettings.max_tokens')} ${max_tokens}`);
  if (context !== null) changed.push(`${t('chatSettings.context')} ${context}`);
  if (kv_bits !== null) changed.push(t(`chatSettings.kv_bits.${kv_bits}`));
  if (stop.length > 0) changed.push(t('chatSettings.stop'));
  return changed;
}

/** What of a chat's settings a preset keeps: not its model, nor what it carries. */
export function presetOf(settings: ChatSettings): ChatSettings {
  return { ...settings, model: null, carried_summary: '' };
}

/** What a chat is set to by a preset. */
export function appliedTo(preset: Preset, { model, carried_summary }: ChatSettings): ChatSettings {
  return { ...preset.settings, model, carried_summary };
}

/** Whether a chat is set as a preset says. */
export function isSetAs(preset: Preset, settings: ChatSettings): boolean {
  return JSON.stringify(ordered(presetOf(settings))) === JSON.stringify(ordered(presetOf(preset.settings)));
}

function ordered(settings: ChatSettings): unknown {
  return Object.entries({ ...settings, sampling: Object.entries(settings.sampling).sort() }).sort();
}

/** What is left of settings that go back to the model's defaults: its model, how it thinks and sees, and what it carries. */
export function resetSettings({ model, thinking, thinking_budget, image_detail, carried_summary }: ChatSettings): ChatSettings {
  return { ...DEFAULT_CHAT_SETTINGS, model, thinking, thinking_budget, image_detail, carried_summary };
}

/** What a new chat begins with. */
export function newChatSettings({ thinking, thinking_budget, image_detail, presets, default_preset }: Settings): ChatSettings {
  const plain = { ...DEFAULT_CHAT_SETTINGS, thinking, thinking_budget, image_detail };
  const preset = presets.find(({ name }) => name === default_preset);
  if (!preset) return plain;
  const set = appliedTo(preset, plain);
  return { ...set, thinking: set.thinking ?? thinking, thinking_budget: set.thinking_budget ?? thinking_budget };
}

/** What is typed for a number: `0,7` and `1 024` too; `null`: it is none, `undefined`: nothing is typed. */
export function numberOf(typed: string, whole: boolean): number | null | undefined {
  const text = typed.trim().replace(/[\s\u2019']/g, '');
  if (text === '') return undefined;
  if (whole) return /^[+-]?\d{1,15}$/.test(text) ? Number(text) : null;
  const number = text.replace(',', '.');
  return /^[+-]?(\d+\.?\d*|\.\d+)$/.test(number) ? Number(number) : null;
}

/** Why a value was refused, beside its field. */
export function refusalText(error: HostError): string {
  const { low, high } = error.arguments ?? {};
  if (low !== undefined && high !== undefined) return t('chatSettings.range', { low, high });
  return low === undefined ? errorText(error) : t('chatSettings.least', { low });
}

/** The same sampling with another value for a number; `undefined` follows the model. */
export function withSampling(sampling: Sampling, name: (typeof SAMPLING)[number], value: number | undefined): Sampling {
  const { [name]: _, ...rest } = sampling;
  return value === undefined ? rest : { ...rest, [name]: value };
}

/** What applies if nothing is set: what the model's makers say; empty if that is not known. */
export function defaultOf(name: (typeof SAMPLING)[number], model: LocalModel | null): string {
  if (name === 'seed') return t('chatSettings.seedNone');
  const value = model?.sampling[name];
  return value === undefined ? '' : String(value);
}

/** A stop text as it is shown on one line, and as it is typed. */
export function stopShown(text: string): string {
  return text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/\t/g, '\\t');
}

export function stopTyped(typed: string): string {
  return typed.replace(/\\([nt\\])/g, (_, letter: string) => (letter === 'n' ? '\n' : letter === 't' ? '\t' : '\\'));
}

/** The ways in which a second answer can be asked for: the other thinking setting, other models, presets, the same once more. */
export function secondWays(settings: ChatSettings, control: ThinkingControl | null, models: readonly LocalModel[], presets: readonly Preset[], reference: string | null): Second[] {
  const ways: Second[] = [];
  if (control?.kind === 'switch') {
    const on = settings.thinking === null ? control.default_on : settings.thinking !== 'off';
    ways.push(on ? { name: t('two.thinkingOff'), change: { thinking: 'off' } } : { name: t('two.thinkingOn'), change: { thinking: 'on' } });
  } else if (control?.kind === 'levels') {
    for (const level of control.levels) {
      if (level !== settings.thinking) ways.push({ name: t('two.level', { level: t(`settings.thinking.${level}`) }), change: { thinking: level } });
    }
    if (control.off && settings.thinking !== 'off') ways.push({ name: t('two.thinkingOff'), change: { thinking: 'off' } });
  }
  for (const model of models) {
    if (model.kind === 'chat' && model.problem === null && model.reference !== reference) ways.push({ name: t('two.model', { name: model.name }), change: { model: model.reference } });
  }
  for (const preset of presets) {
    if (!isSetAs(preset, settings)) ways.push({ name: t('two.preset', { name: preset.name }), change: appliedTo(preset, settings) });
  }
  return [...ways, { name: t('two.again'), change: {} }];
}
