/** The smaller model that drafts a model's answers. */

import type { ModelDefaults } from '../../bindings/ModelDefaults';
import { changedSettings } from './chatSettings';
import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';

/** The defaults for models with another draft model for one of them. */
export function withDraftModel(
  all: Readonly<Record<string, ModelDefaults>>,
  reference: string,
  draft_model: string | null,
): Record<string, ModelDefaults> {
  const { [reference]: own, ...others } = all;
  const { system_prompt, sampling, context, kv_bits } = own ?? DEFAULT_CHAT_SETTINGS;
  const defaults = { system_prompt, sampling, context, kv_bits, draft_model };
  const empty = draft_model === null && changedSettings({ ...DEFAULT_CHAT_SETTINGS, ...defaults }).length === 0;
  return empty ? others : { ...others, [reference]: defaults };
}
