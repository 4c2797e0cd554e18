import { mount } from 'svelte';

import '../design/app.css';
import App from './App.svelte';
import type { StartFailure } from '../windows/failure/failure';
import type { WindowName } from '../bindings/WindowName';
import type { Appearance } from '../bindings/Appearance';
import { applyAppearance } from '../shared/appearance';
import { chooseLanguage, wantedLanguages } from '../locales/languages.svelte';
import { openPlatform } from './openPlatform';
import { DEFAULT_SETTINGS } from '../bindings/constants';
import { openChatWindowPrefs } from './chatWindowPrefs';
import type { RequestFrame } from '../features/conversation/liveAnswer.svelte';
import type { LocalPrefs } from '../shared/localPrefs';

/** A hidden window gets no frames, and an answer must not wait for them. */
const HIDDEN_FRAME = 250;

const requestFrame: RequestFrame = (run) => {
  let ran = false;
  const once = (): void => {
    if (ran) return;
    ran = true;
    clearTimeout(timer);
    run();
  };
  const timer = setTimeout(once, HIDDEN_FRAME);
  requestAnimationFrame(once);
};

/** For windows that remember nothing. */
const NO_PREFS: LocalPrefs = { openChat: '', newDraft: [], foldedProjects: [] };

declare global {
  /** Put there by the shell in the window that says why the app could not start. */
  var ponderFailure: StartFailure | undefined;
  /** Set by the shell: the page's look until it has read the settings. */
  var ponderAppearance: Appearance | undefined;
}

const look: Appearance = globalThis.ponderAppearance ?? DEFAULT_SETTINGS.appearance;
applyAppearance(document.documentElement, look, matchMedia('(prefers-color-scheme: dark)').matches);

const target = document.getElementById('app');
if (!target) throw new Error('index.html has no #app');
const WINDOWS: Record<WindowName, true> = {
  chat: true,
  models: true,
  settings: true,
  quick: true,
  consent: true,
  failure: true,
};
const asked = new URLSearchParams(location.search).get('window') ?? '';
const isWindow = (name: string): name is WindowName => name in WINDOWS;
const name = isWindow(asked) ? asked : 'chat';
const platform = await openPlatform();
// Both before the first paint, so that the texts of a page never change unasked.
const [localPrefs] = await Promise.all([
  name === 'chat' ? openChatWindowPrefs(platform, localStorage).catch(() => NO_PREFS) : NO_PREFS,
  language(),
]);
mount(App, {
  target,
  props: {
    platform,
    window: name,
    failure: globalThis.ponderFailure ?? { error: { code: 'storage', message: '' }, history: false, running: false },
    requestFrame,
    localPrefs,
    look,
  },
});

/** Speaks the language that is set; an app that could not start has no settings. */
async function language(): Promise<void> {
  const settings = name === 'failure' ? null : await platform.settings().catch(() => null);
  await chooseLanguage(wantedLanguages(settings?.language));
}
