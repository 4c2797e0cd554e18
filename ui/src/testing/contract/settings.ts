/** The rules of settings, presets and endpoints. */

import { BOUNDS, DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import type { ChatSettings } from '../../bindings/ChatSettings';
import type { Settings } from '../../bindings/Settings';
import { plain, refused, same, type Case } from './checks';

export const settingsCases: readonly Case[] = [
  {
    name: 'settings that no chat may have are refused',
    async run(host) {
      const wrong: ChatSettings[] = [
        ...Object.entries(BOUNDS.sampling).map(([field, [, high]]) => ({ ...plain, sampling: { [field]: high + 1 } })),
        { ...plain, max_tokens: 0 },
        { ...plain, context: BOUNDS.least_context - 1 },
        { ...plain, stop: [''] },
      ];
      for (const settings of wrong) {
        await refused('bad_request', () => host.checkChatSettings(settings));
        await refused('bad_request', () => host.createChat(settings));
      }
      await host.checkChatSettings({ ...plain, sampling: { temperature: 1, top_p: 1 }, max_tokens: 1, context: BOUNDS.least_context });
    },
  },
  {
    name: 'a new chat begins as the user has set new chats, with the chosen preset',
    async run(host) {
      const { presets, default_preset, thinking } = await host.settings();
      const preset = { name: 'Contract', settings: { ...DEFAULT_CHAT_SETTINGS, model: 'other', max_tokens: 9, carried_summary: 'Cats.' } };
      await host.changeSettings({ presets: [preset], default_preset: 'Contract', thinking: 'off' });
      const wanted = { ...(await host.newChatSettings()) };
      same([wanted.model, wanted.max_tokens, wanted.carried_summary, wanted.thinking], [null, 9, '', 'off'], 'the settings of a new chat');
      const { settings, summary } = await host.createChat(null);
      same(settings, wanted, 'the settings it was created with');
      await host.deleteChat(summary.id);
      await host.changeSettings({ presets, default_preset, thinking });
    },
  },
  {
    name: 'a preset has a name of its own, and sizes have bounds',
    async run(host) {
      const before = await host.settings();
      const preset = (name: string) => ({ name, settings: DEFAULT_CHAT_SETTINGS });
      const [low, high] = BOUNDS.percent;
      const wrong: Partial<Settings>[] = [
        { presets: [preset(' ')] },
        { presets: [preset('x'.repeat(BOUNDS.longest_preset_name + 1))] },
        { presets: [preset('a'), preset(' A ')] },
        { presets: [{ name: 'a', settings: { ...DEFAULT_CHAT_SETTINGS, max_tokens: 0 } }] },
        { default_preset: 'nobody' },
        { model_defaults: { 'a/b': { system_prompt: '', sampling: {}, context: BOUNDS.least_context - 1, kv_bits: null, draft_model: null } } },
        { appearance: { ...before.appearance, zoom: low - 1 } },
        { appearance: { ...before.appearance, text_size: high + 1 } },
      ];
      for (const change of wrong) await refused('bad_request', () => host.changeSettings(change));
      same(await host.settings(), before, 'the settings, as before');
    },
  },
  {
    name: 'a bundle that nobody looked into is not added',
    window: 'settings',
    async run(host) {
      const before = await host.tools();
      await refused('bad_request', () => host.addToolBundle('0'.repeat(64), 'Nobody', []));
      same(await host.tools(), before, 'the servers, as before');
    },
  },
  {
    name: 'settings with commands of their own are set by those alone',
    window: 'settings',
    async run(host) {
      const { endpoints, model_folders, server } = await host.settings();
      for (const change of [{ endpoints }, { model_folders }, { server }]) await refused('bad_request', () => host.changeSettings(change));
      await refused('bad_request', () => host.addEndpoint('no spaces', 'http://127.0.0.1:9', null, false));
    },
  },
];
