import { afterEach, describe, expect, it, vi } from 'vitest';

import type { Error as HostError } from '../../bindings/Error';
import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import { chooseLanguage } from '../../locales/languages.svelte';
import { png } from '../../testing/images';
import { all, click, field, host, open, pass, submit, the, useWindow, write } from '../../testing/window';

useWindow();
afterEach(() => chooseLanguage(['en']));

it('shows its page about Ponder when another window or the menu asks for it', async () => {
  await open('settings');
  await host.showPage('discover', null);
  await pass(0);
  expect(the('tab-general').getAttribute('aria-selected')).toBe('true');
  await host.showPage('about', null);
  await pass(0);
  expect(the('tab-about').getAttribute('aria-selected')).toBe('true');
});

it('shows a row that another window asks for, and nothing for a name that is none', async () => {
  await open('settings');
  await host.showPage('appearance', 'density');
  await pass(500);
  const row = document.getElementById('row-density');
  expect(row?.dataset['found']).toBe('');
  expect(row?.closest('details')?.open).toBe(true);
  expect(row?.contains(document.activeElement)).toBe(true);
  await host.showPage('general', 'no such row');
  await pass(500);
  expect(the('tab-general').getAttribute('aria-selected')).toBe('true');
});

describe('Privacy & data', () => {
  it('switches the network off, unless the environment did', async () => {
    await open('settings');
    await click('tab-privacy');
    await click('offline-switch');
    expect(host.net.offline).toBe(true);
    expect(the('offline-switch').getAttribute('aria-checked')).toBe('true');
    host.net = { ...host.net, forced_by_env: true };
    await open('settings');
    await click('tab-privacy');
    expect(the('offline-switch')).toHaveProperty('disabled', true);
  });

  it('lists what left this computer', async () => {
    await open('settings');
    await click('tab-privacy');
    await pass(0);
    expect(all('all-requests')).toEqual([]);
    expect(all('request')).toHaveLength(4);
    expect(all('request')[0]?.textContent).toContain('cas-bridge.xethub.hf.co');
    expect(all('request')[3]?.textContent).toContain('Model card · Ponder is offline');
  });

  it('folds the list to the last five', async () => {
    const [request] = await host.outboundRequests();
    if (!request) throw new Error('there is no request');
    vi.spyOn(host, 'outboundRequests').mockResolvedValue(
      Array.from({ length: 7 }, (_, number) => ({ ...request, number })),
    );
    await open('settings');
    await click('tab-privacy');
    await pass(0);
    expect(all('request')).toHaveLength(5);
    expect(the('all-requests').textContent).toBe('Show all (7)');
    await click('all-requests');
    expect(all('request')).toHaveLength(7);
    await click('all-requests');
    expect(all('request')).toHaveLength(5);
  });

  it('tells what images take on the disk, also after some have come', async () => {
    await open('settings');
    await click('tab-privacy');
    await pass(0);
    expect(the('attachments-size').textContent).toBe('0 bytes, images 0 bytes');
    await host.addImage(png(64, 64), '');
    window.dispatchEvent(new Event('focus'));
    await pass(0);
    expect(the('attachments-size').textContent).toContain('images 32 bytes');
  });
});

describe('the access token', () => {
  it('is taken away', async () => {
    host.net = { ...host.net, token: 'keychain' };
    await open('settings');
    await click('tab-models');
    await click('remove-token');
    expect(the('token-source').dataset.source).toBe('none');
  });

  it('says in its own language that the keychain cannot be used and why, and names no environment variable', async () => {
    const problem: HostError = {
      code: 'keychain',
      arguments: { reason: 'there is none', variable: 'HF_TOKEN' },
      message: 'this computer’s keychain cannot be used',
    };
    host.net = { ...host.net, keychain_problem: problem };
    await open('settings');
    await click('tab-models');
    expect(all('token-field')).toEqual([]);
    const said = (): string => (the('token-problem').textContent ?? '').replace(/[\u2068\u2069]/g, '');
    expect(said()).toBe(
      'Keychain isn’t available. Ponder can’t use this computer’s keychain. Set it up or unlock it, then try again.',
    );
    for (const [language, word] of [
      ['de', 'Schlüsselbund'],
      ['ar', 'سلسلة المفاتيح'],
    ] as const) {
      await chooseLanguage([language]);
      await pass(0);
      expect(said()).toContain(word);
      expect(said()).not.toContain('HF_TOKEN');
      expect(said()).not.toContain('keychain');
    }
  });
});

describe('A page that the system ended', () => {
  it('comes back as it was', async () => {
    await open('settings');
    await click('tab-chats');
    await open('settings');
    expect(the('tab-chats').getAttribute('aria-selected')).toBe('true');
  });
});

describe('Folders', () => {
  it('adds a folder and forgets it', async () => {
    await open('settings');
    await click('tab-models');
    await click('add-folder');
    await write('folder-path', '/Volumes/Disk');
    await submit('folder-path');
    expect(host.app.model_folders).toEqual(['/Volumes/Disk']);
    expect(the('own-folder').textContent).toContain('Folder not found. Connect its disk');
    await click('forget-folder');
    expect(all('own-folder')).toEqual([]);
    expect(host.app.model_folders).toEqual([]);
  });
});

describe('Image detail', () => {
  it('sets how closely new chats look, and shows what is set elsewhere', async () => {
    await open('settings');
    await click('tab-chats');
    expect(field('default-detail-normal').checked).toBe(true);
    await click('default-detail-quick');
    expect(host.app.image_detail).toBe('quick');
    await host.changeSettings({ image_detail: 'full' });
    await pass(0);
    expect(field('default-detail-full').checked).toBe(true);
  });
});

describe('Endpoints', () => {
  async function openEndpoints(): Promise<void> {
    await open('settings');
    await click('tab-connections');
    await pass(0);
  }

  /** The text of a part of an endpoint's row. */
  function said(name: string, part: string): string {
    const row = all('endpoint-row').find((element) => element.dataset.name === name);
    return row?.querySelector(`[data-testid="${part}"]`)?.textContent?.trim() ?? '';
  }

  it('adds one, says where words go, and removes it', async () => {
    await openEndpoints();
    expect(the('no-endpoints').textContent).toBe('No endpoints yet');
    await click('open-add-endpoint');
    await write('endpoint-name', 'lab');
    await write('endpoint-url', 'https://example.org/v1');
    expect(the('endpoint-warning').textContent).toContain('are sent to this address');
    await submit('endpoint-url');
    expect(host.app.endpoints.map((endpoint) => endpoint.name)).toEqual(['lab']);
    expect(the('endpoint-mark').textContent).toBe('Remote. Messages and images are sent to lab.');
    expect(the('endpoint-answer').textContent?.trim()).toBe('');
    expect([all('endpoint-sheet'), all('endpoint-warning')]).toEqual([[], []]);
    await click('remove-endpoint');
    expect(host.app.endpoints).toEqual([]);
    expect(all('endpoint-row')).toEqual([]);
  });

  it('says why an endpoint cannot be added, and keeps what was typed', async () => {
    await openEndpoints();
    await click('open-add-endpoint');
    await write('endpoint-name', 'lab');
    await write('endpoint-url', 'lab:1234');
    expect(all('endpoint-warning')).toEqual([]);
    await submit('endpoint-url');
    expect(the('endpoint-problem').textContent).toContain('Address can’t be used');
    expect(field('endpoint-url').value).toBe('lab:1234');
  });

  it('warns before and after if others can read what is sent, the key above all', async () => {
    await openEndpoints();
    await click('open-add-endpoint');
    await write('endpoint-name', 'cellar');
    await write('endpoint-url', 'http://127.0.0.1:8000/v1');
    expect(all('endpoint-warning')).toEqual([]);
    await write('endpoint-url', 'http://192.168.1.20:8000/v1');
    expect(the('endpoint-warning').textContent).toContain('can read your messages');
    await write('endpoint-key', 'sk-secret');
    expect(the('endpoint-warning').textContent).toContain('can read the key');
    await click('endpoint-unencrypted');
    await submit('endpoint-url');
    expect(said('cellar', 'endpoint-mark')).toContain('can read the key, your messages');
    await click('change-key');
    await click('remove-key');
    expect(said('cellar', 'endpoint-mark')).toContain('can read your messages and images');
  });

  it('sends a key unencrypted only if that is allowed', async () => {
    await openEndpoints();
    await click('open-add-endpoint');
    await write('endpoint-name', 'cellar');
    await write('endpoint-url', 'http://192.168.1.20:8000/v1');
    expect(all('endpoint-unencrypted')).toEqual([]);
    await write('endpoint-key', 'sk-secret');
    await submit('endpoint-url');
    expect(the('endpoint-problem').textContent).toContain('others on the network could read its key');
    expect(host.app.endpoints).toEqual([]);
    await write('endpoint-key', '');
    await submit('endpoint-url');

    await click('change-key');
    await write('key-field', 'sk-secret');
    await submit('key-field');
    expect(the('key-problem').textContent).toContain('API key not sent');
    await click('key-unencrypted');
    await submit('key-field');
    expect(all('key-editor')).toEqual([]);
    expect(said('cellar', 'endpoint-mark')).toContain('can read the key, your messages');
  });

  it('says that a key is held back which was stored before that was asked', async () => {
    await host.addEndpoint('cellar', 'http://192.168.1.20:8000/v1', 'sk-old', true);
    host.app = { ...host.app, endpoints: host.app.endpoints.map((known) => ({ ...known, unencrypted_key: false })) };
    await openEndpoints();
    expect(said('cellar', 'endpoint-mark')).toContain('The API key isn’t sent.');
    await click('test-endpoint');
    expect(the('endpoint-answer').textContent).toContain('API key not sent');
  });

  it('adds the first one on another computer only if the person agrees in the dialog of the system', async () => {
    host.dialogAnswer = 'no';
    await openEndpoints();
    await click('open-add-endpoint');
    await write('endpoint-name', 'desk');
    await write('endpoint-url', 'http://127.0.0.1:8080/v1');
    await submit('endpoint-url');
    expect([host.app.endpoints.length, host.asked]).toEqual([1, []]);
    await click('open-add-endpoint');
    await write('endpoint-name', 'lab');
    await write('endpoint-url', 'https://lab.example/v1');
    await submit('endpoint-url');
    expect([host.app.endpoints.length, host.asked]).toEqual([1, ['endpoint']]);
    // The sheet keeps what was typed.
    expect(field('endpoint-name').value).toBe('lab');
    expect(all('endpoint-problem')).toEqual([]);
    host.dialogAnswer = 'yes';
    await submit('endpoint-url');
    expect([host.app.endpoints.length, all('endpoint-sheet').length]).toEqual([2, 0]);
    await host.addEndpoint('far', 'https://far.example/v1', null, false);
    expect(host.asked).toEqual(['endpoint', 'endpoint']);
  });

  it('tests the one that is asked for, and no other', async () => {
    await host.addEndpoint('lab', 'https://example.org/v1', null, false);
    await host.addEndpoint('desk', 'http://127.0.0.1:8080/v1', null, false);
    host.servers.set('desk', 'slow');
    const asked = vi.spyOn(host, 'testEndpoint');
    await openEndpoints();
    // The last row, desk.
    await click('test-endpoint');
    expect(said('desk', 'endpoint-answer')).toBe('Connecting…');
    expect(the('test-endpoint')).toHaveProperty('disabled', true);
    expect(all('test-endpoint')[0]).toHaveProperty('disabled', false);
    await pass(5000);
    expect(said('desk', 'endpoint-answer')).toBe('Connected: 1 model');
    expect(said('lab', 'endpoint-answer')).toBe('');
    expect(asked.mock.calls).toEqual([['desk']]);
  });

  it.each([
    ['silent', 'https://example.org/v1', 'Connection failed'],
    ['empty', 'https://example.org/v1', 'Connected, but no models found.'],
    [{ key: 'sk-right' }, 'https://example.org/v1', 'Enter the right API key for lab'],
    ['offline', 'https://example.org/v1', 'Ponder is offline'],
    ['offline', 'http://127.0.0.1:8080/v1', 'Connected: 1 model'],
  ] as const)('says what a server is like that is %s', async (server, url, words) => {
    if (server === 'offline') host.net = { ...host.net, offline: true };
    else host.servers.set('lab', server);
    await host.addEndpoint('lab', url, null, false);
    await openEndpoints();
    await click('test-endpoint');
    expect(the('endpoint-answer').textContent).toContain(words);
  });

  it('offers the next step after a failed test, unless it is this page', async () => {
    host.net = { ...host.net, offline: true };
    host.servers.set('desk', { key: 'sk-right' });
    await host.addEndpoint('lab', 'https://example.org/v1', null, false);
    await openEndpoints();
    await click('test-endpoint');
    expect(the('remedy').textContent).toBe('Privacy & data…');
    await click('remedy');
    expect(host.shownPages).toEqual(['privacy']);
    await click('tab-connections');
    await host.removeEndpoint('lab');
    await host.addEndpoint('desk', 'http://127.0.0.1:8080/v1', null, false);
    await pass(0);
    await click('test-endpoint');
    expect(the('endpoint-answer').textContent).toContain('API key not accepted');
    expect(all('remedy')).toEqual([]);
  });

  it('takes a key, another one, and none again, and shows it to nobody', async () => {
    host.servers.set('lab', { key: 'sk-right' });
    await host.addEndpoint('lab', 'https://example.org/v1', null, false);
    await openEndpoints();
    expect(all('endpoint-key-source')).toEqual([]);
    for (const [key, answer] of [
      ['sk-wrong', 'API key not accepted'],
      [' sk-right ', 'Connected'],
    ] as const) {
      await click('change-key');
      await write('key-field', key);
      await submit('key-field');
      expect(all('key-editor')).toEqual([]);
      expect(the('endpoint-key-source').textContent).toBe('API key stored in your keychain.');
      expect(document.body.innerHTML).not.toContain(key.trim());
      // The reply to the previous key says nothing about this one.
      expect(the('endpoint-answer').textContent?.trim()).toBe('');
      await click('test-endpoint');
      expect(the('endpoint-answer').textContent).toContain(answer);
    }
    await click('change-key');
    expect(field('key-field').value).toBe('');
    await click('remove-key');
    expect(all('endpoint-key-source')).toEqual([]);
    await click('test-endpoint');
    expect(the('endpoint-answer').textContent).toContain('API key not accepted');
  });

  it('keeps a key in its field that the keychain did not take', async () => {
    await host.addEndpoint('lab', 'https://example.org/v1', null, false);
    vi.spyOn(host, 'setEndpointKey').mockRejectedValueOnce({ code: 'keychain', message: 'the keychain is locked' });
    await openEndpoints();
    await click('change-key');
    await write('key-field', 'sk-secret');
    await submit('key-field');
    expect(the('key-problem').textContent).toContain('Keychain isn’t available');
    expect(field('key-field').value).toBe('sk-secret');
    await submit('key-field');
    expect(all('key-editor')).toEqual([]);
  });

  it('says that a key comes from the environment, which cannot be changed here', async () => {
    await host.addEndpoint('lab', 'https://example.org/v1', null, false);
    const [lab] = await host.endpoints();
    vi.spyOn(host, 'endpoints').mockResolvedValue(lab ? [{ ...lab, key: 'environment' }] : []);
    await openEndpoints();
    expect(the('endpoint-key-source').textContent).toContain('set outside Ponder');
    expect(all('change-key')).toEqual([]);
  });
});

describe('Thinking', () => {
  it('sets how new chats think, and shows what is set elsewhere', async () => {
    await open('settings');
    await click('tab-chats');
    expect(field('default-thinking-auto').checked).toBe(true);
    await click('default-thinking-off');
    await click('default-budget-1024');
    expect([host.app.thinking, host.app.thinking_budget]).toEqual(['off', 1024]);
    await host.changeSettings({ thinking: 'high' });
    await pass(0);
    expect(field('default-thinking-high').checked).toBe(true);
    await click('default-thinking-auto');
    expect(host.app.thinking).toBeNull();
  });

  it('takes a number of one’s own and refuses what is none', async () => {
    await open('settings');
    await click('tab-chats');
    await write('default-budget-field', 'many');
    await submit('default-budget-field');
    expect(document.body.textContent).toContain('Enter a whole number from 1 to 1,000,000.');
    expect(host.app.thinking_budget).toBeNull();
    await write('default-budget-field', '1,500');
    // Another window changes another setting.
    await host.changeSettings({ thinking: 'high' });
    await pass(0);
    expect(field('default-budget-field').value).toBe('1,500');
    await submit('default-budget-field');
    expect(host.app.thinking_budget).toBe(1500);
    expect(document.querySelector('[data-testid="default-budget"] :checked')).toBeNull();
  });

  it('says that the preset for new chats decides, if it does', async () => {
    const settings = { ...DEFAULT_CHAT_SETTINGS, thinking: 'off' as const };
    await host.changeSettings({ presets: [{ name: 'Quick', settings }], default_preset: 'Quick' });
    await open('settings');
    await click('tab-chats');
    expect(the('thinking-by-preset').textContent).toBe('The preset Quick sets the thinking of new chats.');
    await host.changeSettings({ default_preset: null });
    await pass(0);
    expect(all('thinking-by-preset')).toEqual([]);
  });

  it('is how a new chat begins', async () => {
    await host.changeSettings({ thinking: 'off', thinking_budget: 256 });
    await open('chat');
    expect(the('thinking-switch').getAttribute('aria-checked')).toBe('false');
    // Changed while an untouched new chat is open, it holds for that one as well.
    await host.changeSettings({ thinking: 'on' });
    await pass(0);
    expect(the('thinking-switch').getAttribute('aria-checked')).toBe('true');
  });
});

it('goes from page to page with the keyboard', async () => {
  await open('settings');
  const key = (target: EventTarget, name: string, ctrlKey = false): void =>
    void target.dispatchEvent(new KeyboardEvent('keydown', { key: name, ctrlKey, bubbles: true, cancelable: true }));
  key(the('tab-general'), 'ArrowRight');
  await pass(0);
  expect(the('tab-appearance').getAttribute('aria-selected')).toBe('true');
  expect(document.activeElement).toBe(the('tab-appearance'));
  key(window, '1', true);
  await pass(0);
  expect(the('tab-general').getAttribute('aria-selected')).toBe('true');
});

it('is opened from the sidebar and by its shortcut', async () => {
  const opened = vi.spyOn(host, 'openWindow').mockResolvedValue();
  const ran = vi.spyOn(host, 'runCommand').mockResolvedValue();
  await open('chat');
  await click('open-settings');
  window.dispatchEvent(new KeyboardEvent('keydown', { key: ',', ctrlKey: true, bubbles: true, cancelable: true }));
  await pass(0);
  expect([opened.mock.calls, ran.mock.calls]).toEqual([[['settings']], [['settings']]]);
});
