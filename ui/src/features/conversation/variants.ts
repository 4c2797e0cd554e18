import type { ChatSettings } from '../../bindings/ChatSettings';
import type { LocalModel } from '../../bindings/LocalModel';
import type { Preset } from '../../bindings/Preset';
import type { Thinking } from '../../bindings/Thinking';
import type { ThinkingControl } from '../../bindings/ThinkingControl';
import { t } from '../../locales';
import { appliedTo, isSetAs } from '../chatSettings/chatSettings';
import { otherThinking } from '../chatSettings/thinking';
import type { Variant } from './sideBySide.svelte';

/**
 * The ways in which a second answer can be asked for: the other thinking setting, other models, presets, the same once
 * more.
 */
export function variants(
  settings: ChatSettings,
  control: ThinkingControl | null,
  models: readonly LocalModel[],
  presets: readonly Preset[],
  reference: string | null,
): Variant[] {
  const ways = otherThinking(control, settings.thinking).map((thinking): Variant => ({
    name: thinkingName(thinking),
    change: { thinking },
  }));
  for (const model of models) {
    if (model.kind === 'chat' && model.problem === null && model.reference !== reference)
      ways.push({ name: t('two.model', { name: model.name }), change: { model: model.reference } });
  }
  for (const preset of presets) {
    if (!isSetAs(preset, settings))
      ways.push({ name: t('two.preset', { name: preset.name }), change: appliedTo(preset, settings) });
  }
  return [...ways, { name: t('two.again'), change: {} }];
}

function thinkingName(thinking: Thinking): string {
  if (thinking === 'on') return t('two.thinkingOn');
  return thinking === 'off' ? t('two.thinkingOff') : t('two.level', { level: t(`settings.thinking.${thinking}`) });
}
