import { describe, expect, it, vi } from 'vitest';

import { applyAppearance, nextZoom } from '../shared/appearance';
import { GROUPS } from '../shared/shortcuts';
import { DEFAULT_SETTINGS } from '../bindings/constants';
import icons from '../design/Icon.svelte?raw';
import { all, click, host, open, pass, the, useWindow } from '../testing/window';

useWindow();

const root = document.documentElement;

async function key(name: string, options: KeyboardEventInit = {}): Promise<void> {
  window.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true, ...options }));
  await pass(0);
}

describe('icons', () => {
  it('have lines that are a share of them, since WebKit zooms a length in an image twice', () => {
    const widths = [...icons.matchAll(/stroke-width[=:]\s*"?([^";]+)/g)].map(([, width]) => width);
    expect(widths).toEqual(['15%', '10%']);
  });

  it('are one for each thing: a wheel with teeth for the settings, and an archive that is no model', async () => {
    host.addChat('About tea', Date.now());
    await open('chat');
    const drawn = (name: string): string => the(name).querySelector('svg')?.innerHTML ?? '';
    // A sun has rays, which are lines of their own; a wheel has one outline that closes.
    expect(drawn('open-settings')).toMatch(/<path d="M[^M]+z"/);
    await click('chat-menu');
    expect(drawn('archive-chat')).not.toBe('');
    expect(drawn('archive-chat')).not.toBe(drawn('open-models'));
  });
});

describe('appearance', () => {
  it('keeps every choice of those that are made in a moment', async () => {
    await open('settings');
    await click('tab-appearance');
    for (const choice of ['theme-dark', 'text-size-130', 'code-theme-vivid', 'density-compact']) the(choice).click();
    await pass(100);
    expect(host.app.appearance).toMatchObject({
      theme: 'dark',
      text_size: 130,
      code_theme: 'vivid',
      density: 'compact',
    });
  });

  it('applies at once, in the window where it is set', async () => {
    await open('settings');
    await click('tab-appearance');
    await click('theme-dark');
    await click('code-theme-vivid');
    await click('density-compact');
    await click('reading-width-wide');
    await click('text-size-150');
    expect({ ...root.dataset }).toMatchObject({ theme: 'dark', code: 'vivid', density: 'compact', width: 'wide' });
    expect(root.style.fontSize).toBe('150%');
    expect(host.app.appearance).toMatchObject({ theme: 'dark', text_size: 150, thoughts: 'while_thinking' });
  });

  it.each(['chat', 'models', 'settings'] as const)(
    'applies in the %s window when it is set elsewhere',
    async (which) => {
      await open(which);
      await host.changeSettings({ appearance: { ...DEFAULT_SETTINGS.appearance, theme: 'dark', text_size: 130 } });
      await pass(0);
      expect([root.dataset['theme'], root.style.fontSize]).toEqual(['dark', '130%']);
      await host.changeSettings({ appearance: DEFAULT_SETTINGS.appearance });
      await pass(0);
      expect([root.dataset['theme'], root.style.fontSize]).toEqual(['light', '']);
    },
  );

  it('follows the system if nothing else is set', () => {
    const look = document.createElement('div');
    applyAppearance(look, DEFAULT_SETTINGS.appearance, true);
    expect(look.dataset['theme']).toBe('dark');
    applyAppearance(look, { ...DEFAULT_SETTINGS.appearance, theme: 'light' }, true);
    expect(look.dataset['theme']).toBe('light');
  });

  it('zooms by keys in every window, also with the keys of other keyboards', async () => {
    for (const which of ['chat', 'models', 'settings'] as const) {
      await host.changeSettings({ appearance: DEFAULT_SETTINGS.appearance });
      await open(which);
      await key('=', { ctrlKey: true });
      await key('+', { ctrlKey: true, shiftKey: true });
      expect(host.app.appearance.zoom).toBe(125);
      await key('-', { ctrlKey: true });
      expect(host.app.appearance.zoom).toBe(110);
      await key('0', { ctrlKey: true });
      expect(host.app.appearance.zoom).toBe(100);
    }
  });

  it('ends at the smallest and the largest zoom', () => {
    expect([nextZoom(300, 1), nextZoom(50, -1), nextZoom(93, 1), nextZoom(93, -1)]).toEqual([300, 50, 100, 90]);
  });
});

describe('thoughts', () => {
  const thought = { kind: 'thinking', text: 'Three hundred and some.', started_at: 0, ended_at: 900 } as const;
  const answer = { kind: 'text', text: '936', started_at: 900, ended_at: 950 } as const;

  it.each([
    ['folded', false],
    ['while_thinking', false],
    ['always', true],
  ] as const)('that have ended are shown if they are %s: %s', async (thoughts, shown) => {
    await host.changeSettings({ appearance: { ...DEFAULT_SETTINGS.appearance, thoughts } });
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'A sum', { parts: [thought, answer] });
    await open('chat', chat.summary.id);
    expect(the('thought').dataset['open']).toBe(String(shown));
    await click('thought-toggle');
    expect(the('thought').dataset['open']).toBe(String(!shown));
  });

  it.each([
    ['folded', 'false'],
    ['while_thinking', 'true'],
    ['always', 'true'],
  ] as const)('that are being thought are shown if they are %s: %s', async (thoughts, shown) => {
    await host.changeSettings({ appearance: { ...DEFAULT_SETTINGS.appearance, thoughts } });
    const chat = host.addChat('A chat', Date.now());
    await open('chat', chat.summary.id);
    await host.send(chat.summary.id, [{ kind: 'text', text: 'What is 347 + 589?' }], 'end');
    await host.renameChat(chat.summary.id, 'Another');
    await vi.waitFor(async () => {
      await pass(20);
      expect(the('thought').dataset['live']).toBe('true');
    });
    expect(the('thought').dataset['open']).toBe(shown);
  });
});

describe('the help sheet', () => {
  it('lists every shortcut of the table, by F1 and by its own', async () => {
    await open('chat');
    await key('F1');
    const commands = Object.values(GROUPS).flat();
    expect(new Set(commands).size).toBe(commands.length);
    const rows = all('shortcut').map((row) => row.textContent ?? '');
    expect(rows.length).toBeGreaterThan(commands.length);
    expect(rows.some((row) => row.includes('New chat') && row.includes('Ctrl+N'))).toBe(true);
    await click('shortcuts-close');
    expect(all('shortcuts')).toEqual([]);
    await key('/', { ctrlKey: true, shiftKey: true });
    expect(all('shortcuts')).toHaveLength(1);
  });
});
