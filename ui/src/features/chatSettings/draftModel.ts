/** The smaller model that drafts a model's answers. */

import type { LocalModel } from '../../bindings/LocalModel';
import type { ModelDefaults } from '../../bindings/ModelDefaults';
import { changedSettings } from './chatSettings';
import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';

/** A draft model is worth its time if it is smaller than this share of the model. */
const LARGEST = 0.5;

/** The models that may draft the answers of this one, those of its family first, then the smallest. */
export function draftModels(model: LocalModel, all: readonly LocalModel[]): LocalModel[] {
  const usable = all.filter(
    ({ reference, kind, problem, adapter_of, bytes }) =>
      reference !== model.reference && kind === 'chat' && !problem && !adapter_of && bytes < model.bytes * LARGEST,
  );
  const others = ({ family }: LocalModel): number => (family === model.family ? 0 : 1);
  return usable.sort((a, b) => others(a) - others(b) || a.bytes - b.bytes);
}

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
