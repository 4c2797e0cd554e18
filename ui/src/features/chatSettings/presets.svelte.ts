/** Settings of chats under names. */

import { createContext } from 'svelte';

import type { ChatSettings } from '../../bindings/ChatSettings';
import type { Preset } from '../../bindings/Preset';
import { presetOf } from './chatSettings';
import { t } from '../../locales';
import type { HostError } from '../../host';
import type { AppSettings } from '../../stores/appSettings.svelte';
import type { Toasts } from '../../design/toasts.svelte';

export class Presets {
  constructor(
    private readonly settings: AppSettings,
    private readonly toasts: Toasts,
  ) {}

  get list(): readonly Preset[] {
    return this.settings.value?.presets ?? [];
  }

  /** The name of the one that new chats begin with. */
  get chosen(): string | null {
    return this.settings.value?.default_preset ?? null;
  }

  /** Keeps settings under a name; why that was refused. */
  async save(name: string, settings: ChatSettings): Promise<HostError | null> {
    return this.#store([...this.list, { name: name.trim(), settings: presetOf(settings) }], this.chosen);
  }

  /** Gives a preset another name; why that was refused. */
  async rename(preset: Preset, name: string): Promise<HostError | null> {
    const renamed = name.trim();
    if (renamed === preset.name) return null;
    const list = this.list.map((other) => (other.name === preset.name ? { ...other, name: renamed } : other));
    return this.#store(list, this.chosen === preset.name ? renamed : this.chosen);
  }

  /** Deletes a preset and offers to take that back. */
  async remove(preset: Preset): Promise<void> {
    const wasChosen = this.chosen === preset.name;
    const refused = await this.#store(
      this.list.filter((other) => other.name !== preset.name),
      wasChosen ? null : this.chosen,
    );
    if (refused) return void this.toasts.report(refused);
    this.toasts.say(t('preset.removed', { name: preset.name }), {
      label: t('common.undo'),
      run: () => void this.#putBack(preset, wasChosen),
    });
  }

  async #putBack(preset: Preset, wasChosen: boolean): Promise<void> {
    const refused = await this.#store([...this.list, preset], wasChosen ? preset.name : this.chosen);
    if (refused) this.toasts.report(refused);
  }

  /** Lets new chats begin with a preset, or with the model's defaults. */
  async choose(name: string | null): Promise<void> {
    await this.settings.change({ default_preset: name });
  }

  async #store(presets: Preset[], default_preset: string | null): Promise<HostError | null> {
    return this.settings.tryChange({
      presets: presets.toSorted((one, other) => one.name.localeCompare(other.name)),
      default_preset,
    });
  }
}

/** The presets of chat settings. */
export const [usePresets, providePresets] = createContext<Presets>();
