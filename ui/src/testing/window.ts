/** A window of the app in jsdom with the in-memory host behind it, and user actions for its tests. */

import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, vi } from 'vitest';

import App from '../app/App.svelte';
import { expandedIds } from '../shared/expandedIds';
import type { WindowName } from '../bindings/WindowName';
import type { StartFailure } from '../windows/failure/failure';
import { fakeHost, type FakeHost } from '../host/fake';
import { COMMAND_WINDOWS } from '../host/generated';

/** The host of the present test. */
export let host: FakeHost;
/** The calls of the present test that its window may not make. */
let refusals: string[] = [];
/** The elements that wait to come into view. */
export let watched: { callback: IntersectionObserverCallback; node: Element }[] = [];
let app: Record<string, unknown> | null = null;
/** Why the app could not start, as the host says it. */
const HOST_WORDS = 'the history in /tmp/a cannot be read';

/** jsdom measures nothing, so nothing ever changes its size. */
class StillObserver {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}

class Watcher extends StillObserver implements IntersectionObserver {
  readonly root = null;
  readonly rootMargin = '';
  readonly scrollMargin = '';
  readonly thresholds = [];
  constructor(private readonly callback: IntersectionObserverCallback) {
    super();
  }
  override observe(node?: Element): void {
    if (node) watched.push({ callback: this.callback, node });
  }
  takeRecords(): IntersectionObserverEntry[] {
    return [];
  }
}

/** Gives each test of the file a host and a clock of its own, and closes its window afterwards. */
export function useWindow(): void {
  beforeEach(() => {
    watched = [];
    refusals = [];
    expandedIds.clear();
    vi.stubGlobal('ResizeObserver', StillObserver);
    vi.stubGlobal('IntersectionObserver', Watcher);
    Element.prototype.scrollIntoView = () => {};
    // jsdom has no letters to take back.
    document.execCommand = () => false;
    HTMLDialogElement.prototype.showModal = function () {
      this.open = true;
    };
    HTMLDialogElement.prototype.close = function () {
      this.open = false;
    };
    // Texts about times depend on the day, so the day is the same for every run.
    vi.useFakeTimers({ now: new Date(2026, 10, 21, 12) });
    host = fakeHost(5);
  });
  afterEach(async () => {
    await close();
    expect(refusals, 'a page calls only what its window may').toEqual([]);
    history.replaceState(null, '', '/');
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });
}

/** The host as a window's page has it: calls that this page may not make are refused, as the app refuses them. */
function asSeenBy(which: WindowName): FakeHost {
  return new Proxy(host, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      const windows = Object.hasOwn(COMMAND_WINDOWS, name) ? Reflect.get(COMMAND_WINDOWS, name) : null;
      if (!Array.isArray(windows) || windows.includes(which)) return value;
      return () => {
        refusals.push(`${which}: ${String(name)}`);
        return Promise.reject(new Error(`Command ${String(name)} not allowed by ACL`));
      };
    },
  });
}

/** Opens a window, in place of the one that is open. */
export async function open(which: WindowName, openChat = '', failure: Partial<StartFailure> = {}): Promise<void> {
  await close();
  app = mount(App, {
    target: document.body,
    props: {
      platform: asSeenBy(which),
      window: which,
      requestFrame: (run) => void setTimeout(run, 16),
      failure: { error: { code: 'storage', message: HOST_WORDS }, history: true, running: false, ...failure },
      localPrefs: { openChat, newDraft: [], foldedProjects: [] },
    },
  });
  await pass(50);
}

/** Closes the window. */
export async function close(): Promise<void> {
  if (app) await unmount(app);
  app = null;
}

/** Lets this much time pass. */
export async function pass(milliseconds: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(milliseconds);
  flushSync();
}

/** All elements that tests call this. */
export function all(name: string): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(`[data-testid="${name}"]`)];
}

/** The last element that tests call this. */
export function the(name: string): HTMLElement {
  const element = all(name).at(-1);
  if (!element) throw new Error(`nothing is called ${name}`);
  return element;
}

/** The field of this name. */
export function field(name: string): HTMLInputElement {
  const found = the(name);
  if (!(found instanceof HTMLInputElement)) throw new Error(`${name} is no field`);
  return found;
}

export async function click(name: string): Promise<void> {
  the(name).click();
  await pass(0);
}

/** Chooses an entry of a picker by its label. */
export async function choose(picker: string, label: string): Promise<void> {
  await click(picker);
  await pass(0);
  const options = [...document.querySelectorAll<HTMLElement>('[role=option]')];
  const option = options.find(({ textContent }) => textContent?.includes(label));
  if (!option) throw new Error(`${picker} does not offer ${label}`);
  option.click();
  await pass(50);
}

/** Writes into a field. */
export async function write(name: string, text: string): Promise<void> {
  field(name).value = text;
  field(name).dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(0);
}

/** The field of questions. */
export function composer(): HTMLTextAreaElement {
  const found = the('composer');
  if (!(found instanceof HTMLTextAreaElement)) throw new Error('the composer is no text area');
  return found;
}

/** Writes a question. */
export async function type(text: string): Promise<void> {
  composer().value = text;
  composer().dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(0);
}

/** Writes a question and sends it. */
export async function ask(text: string): Promise<void> {
  await type(text);
  await click('send');
}

/** Sends the form of this field. */
export async function submit(name: string): Promise<void> {
  field(name).form?.requestSubmit();
  await pass(0);
}

/** Searches all chats in the sidebar, which the palette does otherwise. */
export async function searchList(words: string): Promise<void> {
  if (all('search').length === 0) {
    const keys = { key: 'f', ctrlKey: true, shiftKey: true, bubbles: true, cancelable: true };
    document.body.dispatchEvent(new KeyboardEvent('keydown', keys));
    await pass(0);
  }
  await write('search', words);
}
