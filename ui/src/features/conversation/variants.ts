import type { ChatSettings } from '../../bindings/ChatSettings';
import type { LocalModel } from '../../bindings/LocalModel';
import type { Preset } from '../../bindings/Preset';
import type { ThinkingControl } from '../../bindings/ThinkingControl';
import { t } from '../../locales';
import { appliedTo, isSetAs } from '../chatSettings/chatSettings';
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
  const ways: Variant[] = [];
  if (control?.kind === 'switch') {
    const on = settings.thinking === null ? control.default_on : settings.thinking !== 'off';
    ways.push(
      on
        ? { name: t('two.thinkingOff'), change: { thinking: 'off' } }
        : { name: t('two.thinkingOn'), change: { thinking: 'on' } },
    );
  } else if (control?.kind === 'levels') {
    for (const level of control.levels) {
      if (level !== settings.thinking)
        ways.push({ name: t('two.level', { level: t(`settings.thinking.${level}`) }), change: { thinking: level } });
    }
    if (control.off && settings.thinking !== 'off')
      ways.push({ name: t('two.thinkingOff'), change: { thinking: 'off' } });
  }
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
