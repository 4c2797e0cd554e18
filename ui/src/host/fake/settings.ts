/** The fake host's settings, and the settings that no chat may have. */

import type { ChatSettings } from '../../bindings/ChatSettings';
import type { ChatWindowState } from '../../bindings/ChatWindowState';
import { BOUNDS, DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import type { Error as HostError } from '../../bindings/Error';
import type { Platform } from '../types';
import { settingsOf } from './tree';
import { listen, localModel, refusal, storeSettings, type Shared } from './shared';

/** Settings with commands of their own. */
const OWN_COMMANDS = ['endpoints', 'model_folders', 'server'];

function wrong(field: string, limits: Record<string, string | number>, message: string): HostError {
  return refusal('bad_request', message, { field, ...limits });
}

/** Rejects settings that no chat may have. */
export function checkSettings({ sampling, max_tokens, context, stop }: ChatSettings): void {
  for (const [field, [low, high]] of Object.entries(BOUNDS.sampling)) {
    const value = sampling[field as keyof typeof BOUNDS.sampling];
    if (value != null && !(value >= low && value <= high)) throw wrong(field, { low: String(low), high: String(high) }, `${field} is ${value}`);
  }
  if (max_tokens === 0) throw wrong('max_tokens', { low: 1 }, 'an answer of at most 0 tokens was asked for');
  if (context !== null && context < BOUNDS.least_context) throw wrong('context', { low: BOUNDS.least_context }, `a context of ${context} tokens was asked for`);
  if (stop.some((text) => text === '')) throw wrong('stop', {}, 'a stop text is empty');
}

/** The model that was used last, if new chats use it and it is not the default one. */
function lastModel({ app, kept, local }: Shared): string | null {
  const asked = [...kept.values()].filter((chat) => chat.trashed === null && chat.leaf !== null);
  const last = asked.toSorted((one, other) => other.summary.updated_at - one.summary.updated_at)[0];
  const model = last ? settingsOf(last).model : null;
  const usable = app.new_chats_use_last_model && local.some(({ reference }) => reference === model);
  return usable && model !== app.default_model ? model : null;
}

/** The settings that a new chat starts with. */
export function newChatSettings(host: Shared): ChatSettings {
  const { thinking, thinking_budget, image_detail, presets, default_preset } = host.app;
  const model = lastModel(host);
  const plain = { ...DEFAULT_CHAT_SETTINGS, model, thinking, thinking_budget, image_detail };
  const preset = presets.find(({ name }) => name === default_preset)?.settings;
  if (!preset) return plain;
  return {
    ...preset,
    model,
    carried_summary: '',
    tools: [],
    thinking: preset.thinking ?? thinking,
    thinking_budget: preset.thinking_budget ?? thinking_budget,
  };
}

export function settings(host: Shared) {
  let windowState: ChatWindowState = { open_chat: null, new_draft: [], folded_projects: [] };
  return {
    async settings() {
      return host.app;
    },
    async changeSettings(change) {
      const strange = Object.keys(change).find((key) => !(key in host.app) || OWN_COMMANDS.includes(key));
      if (strange) throw refusal('bad_request', `${strange} cannot be set like this`);
      if (change.default_model !== undefined) localModel(host, change.default_model);
      const { presets, default_preset: chosen, appearance, model_defaults } = { ...host.app, ...change };
      for (const preset of presets) {
        checkSettings(preset.settings);
        const name = preset.name.trim();
        if (name === '' || name.length > BOUNDS.longest_preset_name) throw wrong('preset', { longest: BOUNDS.longest_preset_name }, `a preset’s name has 1 to ${BOUNDS.longest_preset_name} characters`);
        if (presets.some((other) => other !== preset && other.name.trim().toLowerCase() === name.toLowerCase())) throw { ...wrong('preset', { name }, `there is a preset called ${name} already`), reason: 'preset_name_taken' };
      }
      if (chosen !== null && !presets.some(({ name }) => name === chosen)) throw wrong('default_preset', { name: chosen }, `there is no preset called ${chosen}`);
      for (const defaults of Object.values(model_defaults)) checkSettings({ ...DEFAULT_CHAT_SETTINGS, ...defaults });
      const [low, high] = BOUNDS.percent;
      for (const field of ['text_size', 'zoom'] as const) {
        const percent = appearance[field];
        if (percent < low || percent > high) throw wrong(field, { low, high }, `${field} is ${percent} %`);
      }
      return storeSettings(host, change);
    },
    async newChatSettings() {
      return newChatSettings(host);
    },
    async checkChatSettings(chosen) {
      checkSettings(chosen);
    },
    async chatWindowState() {
      return windowState;
    },
    async setChatWindowState(state) {
      windowState = state;
    },
    onSettingsChanged: (listener) => listen(host.settingsListeners, listener),
  } satisfies Partial<Platform>;
}
