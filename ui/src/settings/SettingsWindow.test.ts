import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import App from '../App.svelte';
import { FakeHost } from '../platform/fake';

let host: FakeHost;
let app: Record<string, unknown> | null = null;

class StillObserver {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}

beforeEach(() => {
  vi.stubGlobal('ResizeObserver', StillObserver);
  vi.useFakeTimers({ now: new Date(2026, 10, 21, 12) });
  host = new FakeHost(5);
});

afterEach(close);

async function close(): Promise<void> {
  if (app) await unmount(app);
  app = null;
}

async function open(which: 'chat' | 'settings' = 'settings'): Promise<void> {
  await close();
  app = mount(App, {
    target: document.body,
    props: { platform: host, window: which, requestFrame: (run) => void setTimeout(run, 16), failure: '', localPrefs: { get: () => '', set: () => {} } },
  });
  await pass(50);
}

async function pass(milliseconds: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(milliseconds);
  flushSync();
}

function all(name: string): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(`[data-testid="${name}"]`)];
}

function the(name: string): HTMLElement {
  const element = all(name).at(-1);
  if (!element) throw new Error(`nothing is called ${name}`);
  return element;
}

async function click(name: string): Promise<void> {
  the(name).click();
  await pass(10);
}

function field(name: string): HTMLInputElement {
  const found = the(name);
  if (!(found instanceof HTMLInputElement)) throw new Error(`${name} is no field`);
  return found;
}

async function write(name: string, text: string): Promise<void> {
  field(name).value = text;
  field(name).dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(10);
}

async function submit(name: string): Promise<void> {
  field(name).form?.requestSubmit();
  await pass(10);
}

describe('Network', () => {
  it('switches the network off, unless the environment did', async () => {
    await open();
    await click('offline-switch');
    expect(host.net.offline).toBe(true);
    expect(the('offline-switch').getAttribute('aria-checked')).toBe('true');
    host.net = { ...host.net, forced_by_env: true };
    await open();
    expect(the('offline-switch')).toHaveProperty('disabled', true);
  });

  it('lists what left this computer', async () => {
    await open();
    expect(all('request')).toHaveLength(4);
    expect(all('request')[0]?.textContent).toContain('cas-bridge.xethub.hf.co');
    expect(all('request')[3]?.textContent).toContain('Ponder is offline.');
  });

  it('takes a token away', async () => {
    host.net = { ...host.net, token: 'keychain' };
    await open();
    await click('remove-token');
    expect(the('token-source').dataset.source).toBe('none');
  });
});

describe('Folders', () => {
  it('adds a folder and forgets it', async () => {
    await open();
    await click('tab-folders');
    await click('add-folder');
    await write('folder-path', '/Volumes/Disk');
    await submit('folder-path');
    expect(host.app.model_folders).toEqual(['/Volumes/Disk']);
    expect(the('own-folder').textContent).toContain('not connected');
    await click('forget-folder');
    expect(all('own-folder')).toEqual([]);
    expect(host.app.model_folders).toEqual([]);
  });
});

describe('Endpoints', () => {
  it('adds one, tries it, says where words go, and removes it', async () => {
    await open();
    await click('tab-endpoints');
    expect(the('no-endpoints').textContent).toContain('no endpoints');
    await write('endpoint-name', 'lab');
    await write('endpoint-url', 'https://example.org/v1');
    expect(the('endpoint-warning').textContent).toContain('sent there');
    await submit('endpoint-url');
    expect(host.app.endpoints.map((endpoint) => endpoint.name)).toEqual(['lab']);
    expect(the('endpoint-mark').textContent).toBe('What you write leaves this computer');
    expect(the('endpoint-answer').textContent?.trim()).toBe('');
    await click('test-endpoint');
    expect(the('endpoint-answer').textContent).toContain('It answers: 1 model');
    await click('remove-endpoint');
    expect(host.app.endpoints).toEqual([]);
  });

  it('says why an endpoint cannot be added, and keeps what was typed', async () => {
    await open();
    await click('tab-endpoints');
    await write('endpoint-name', 'lab');
    await write('endpoint-url', 'lab:1234');
    await submit('endpoint-url');
    expect(the('endpoint-problem').textContent).toContain('cannot be an endpoint');
    expect(field('endpoint-url').value).toBe('lab:1234');
  });
});

describe('Thinking', () => {
  it('sets how new chats think, and shows what is set elsewhere', async () => {
    await open();
    await click('tab-thinking');
    expect(field('default-thinking-auto').checked).toBe(true);
    await click('default-thinking-off');
    await click('default-budget-1024');
    expect([host.app.thinking, host.app.thinking_budget]).toEqual(['off', 1024]);
    await host.changeSettings({ thinking: 'high' });
    await pass(10);
    expect(field('default-thinking-high').checked).toBe(true);
    await click('default-thinking-auto');
    expect(host.app.thinking).toBeNull();
  });

  it('takes a number of one’s own and refuses what is none', async () => {
    await open();
    await click('tab-thinking');
    await write('default-budget-field', 'many');
    await submit('default-budget-field');
    expect(document.body.textContent).toContain('Enter a whole number from 1 to 1,000,000.');
    expect(host.app.thinking_budget).toBeNull();
    await write('default-budget-field', '1,500');
    await submit('default-budget-field');
    expect(host.app.thinking_budget).toBe(1500);
    expect(document.querySelector(':checked')).toBe(field('default-thinking-auto'));
  });

  it('is how a new chat begins', async () => {
    await host.changeSettings({ thinking: 'off', thinking_budget: 256 });
    await open('chat');
    expect(the('thinking-switch').getAttribute('aria-checked')).toBe('false');
    // Changed while an untouched new chat is open, it holds for that one as well.
    await host.changeSettings({ thinking: 'on' });
    await pass(10);
    expect(the('thinking-switch').getAttribute('aria-checked')).toBe('true');
  });
});

it('goes from page to page with the keyboard', async () => {
  await open();
  const key = (target: EventTarget, name: string, ctrlKey = false): void =>
    void target.dispatchEvent(new KeyboardEvent('keydown', { key: name, ctrlKey, bubbles: true, cancelable: true }));
  key(the('tab-network'), 'ArrowRight');
  await pass(10);
  expect(the('tab-folders').getAttribute('aria-selected')).toBe('true');
  expect(document.activeElement).toBe(the('tab-folders'));
  key(window, '1', true);
  await pass(10);
  expect(the('tab-network').getAttribute('aria-selected')).toBe('true');
});

it('is opened from the sidebar and by its shortcut', async () => {
  const opened = vi.spyOn(host, 'openWindow').mockResolvedValue();
  await open('chat');
  await click('open-settings');
  window.dispatchEvent(new KeyboardEvent('keydown', { key: ',', ctrlKey: true, bubbles: true, cancelable: true }));
  await pass(10);
  expect(opened.mock.calls).toEqual([['settings'], ['settings']]);
});
