/** The fake host's settings, and the settings that no chat may have. */

import type { ChatSettings } from '../../bindings/ChatSettings';
import type { ChatWindowState } from '../../bindings/ChatWindowState';
import type { Error as HostError } from '../../bindings/Error';
import type { Platform } from '../types';
import { listen, localModel, refusal, storeSettings, type Shared } from './shared';

/** The bounds of numbers. */
const RANGES = { temperature: [0, 100], top_p: [0, 1], min_p: [0, 1], repetition_penalty: [0, 100], presence_penalty: [-100, 100], frequency_penalty: [-100, 100] } as const;
const LEAST_CONTEXT = 512;
/** Settings with commands of their own. */
const OWN_COMMANDS = ['endpoints', 'model_folders', 'server'];

function wrong(field: string, limits: Record<string, string | number>, message: string): HostError {
  return refusal('bad_request', message, { field, ...limits });
}

/** Rejects settings that no chat may have. */
export function checkSettings({ sampling, max_tokens, context, stop }: ChatSettings): void {
  for (const [field, [low, high]] of Object.entries(RANGES)) {
    const value = sampling[field as keyof typeof RANGES];
    if (value !== undefined && !(value >= low && value <= high)) throw wrong(field, { low: String(low), high: String(high) }, `${field} is ${value}`);
  }
  if (max_tokens === 0) throw wrong('max_tokens', { low: 1 }, 'an answer of at most 0 tokens was asked for');
  if (context !== null && context < LEAST_CONTEXT) throw wrong('context', { low: LEAST_CONTEXT }, `a context of ${context} tokens was asked for`);
  if (stop.some((text) => text === '')) throw wrong('stop', {}, 'a stop text is empty');
}

export function settings(host: Shared) {
  let windowState: ChatWindowState = { open_chat: null, new_draft: [] };
  return {
    async settings() {
      return host.app;
    },
    async changeSettings(change) {
      const strange = Object.keys(change).find((key) => !(key in host.app) || OWN_COMMANDS.includes(key));
      if (strange) throw refusal('bad_request', `${strange} cannot be set like this`);
      if (change.default_model !== undefined) localModel(host, change.default_model);
      const { presets, default_preset: chosen, appearance } = { ...host.app, ...change };
      for (const preset of presets) {
        checkSettings(preset.settings);
        const name = preset.name.trim();
        if (name === '' || name.length > 60) throw wrong('preset', { longest: 60 }, 'a preset’s name has 1 to 60 characters');
        if (presets.some((other) => other !== preset && other.name.trim().toLowerCase() === name.toLowerCase())) throw wrong('preset', { name }, `there is a preset called ${name} already`);
      }
      if (chosen !== null && !presets.some(({ name }) => name === chosen)) throw wrong('default_preset', { name: chosen }, `there is no preset called ${chosen}`);
      if (appearance.zoom < 50 || appearance.zoom > 300) throw wrong('zoom', { low: 50, high: 300 }, `zoom is ${appearance.zoom} %`);
      return storeSettings(host, change);
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
