import { mount } from 'svelte';

import './app.css';
import App from './App.svelte';
import type { WindowName } from './bindings/WindowName';
import { chooseLanguage } from './messages';
import { openPlatform } from './platform';
import { openChatWindowPrefs } from './stores/chatWindowPrefs';
import type { RequestFrame, LocalPrefs } from './stores/conversation.svelte';

/** Frames stand still in a hidden window, where an answer must not wait for them. */
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
const NO_PREFS: LocalPrefs = { openChat: '', newDraft: [] };

declare global {
  /** Put there by the shell in the window that says why the app could not start. */
  var ponderFailure: string | undefined;
}

chooseLanguage(navigator.languages);

const target = document.getElementById('app');
if (!target) throw new Error('index.html has no #app');
const WINDOWS: Record<WindowName, true> = { chat: true, models: true, settings: true, failure: true };
const asked = new URLSearchParams(location.search).get('window') ?? '';
const isWindow = (name: string): name is WindowName => name in WINDOWS;
const name = isWindow(asked) ? asked : 'chat';
const platform = await openPlatform();
const localPrefs = name === 'chat' ? await openChatWindowPrefs(platform, localStorage).catch(() => NO_PREFS) : NO_PREFS;
mount(App, {
  target,
  props: {
    platform,
    window: name,
    failure: globalThis.ponderFailure ?? '',
    requestFrame,
    localPrefs,
  },
});
