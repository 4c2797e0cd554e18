/** Freed memory, a slow computer, and idle windows. */

import { describe, expect, it, vi } from 'vitest';

import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import { all, click, close, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

const ENDPOINT = 'endpoint:lab/large';

async function ask(text: string): Promise<void> {
  const area = the('composer');
  if (!(area instanceof HTMLTextAreaElement)) throw new Error('no composer');
  area.value = text;
  area.dispatchEvent(new InputEvent('input', { bubbles: true }));
  area.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
  await pass(50);
}

describe('memory that was given back', () => {
  it('is said in one message, which a later one replaces', async () => {
    await open('chat');
    host.releaseListeners.forEach((tell) => tell({ bytes: 300_000_000, unloaded: [] }));
    await pass(0);
    expect(the('toast').textContent).toContain('Ponder freed 300 MB. Your next message processes its chat again.');
    host.releaseListeners.forEach((tell) => tell({ bytes: 1_200_000_000, unloaded: ['pebble'] }));
    await pass(0);
    expect(all('toast')).toHaveLength(1);
    expect(the('toast').textContent).toContain('Ponder freed 1.2 GB. Your next message loads the model again.');
    await pass(9000);
    expect(all('toast')).toEqual([]);
  });

  it('shows in the Models window what is loaded now', async () => {
    await open('models');
    const asked = vi.spyOn(host, 'engineStatus');
    host.engineListeners.forEach((tell) => tell());
    await pass(0);
    expect(asked).toHaveBeenCalledTimes(1);
    await close();
    await pass(0);
    expect(host.engineListeners.size).toBe(0);
  });
});

describe('a computer that is slowed down', () => {
  it('is said by the answer that is being written, and asked about only meanwhile', async () => {
    host.slowdown = 'heat';
    await open('chat');
    await pass(60_000);
    expect(host.slowdownAsked).toBe(0);
    await ask('What is 347 + 589?');
    expect(the('slowed').textContent).toContain('because the computer is hot');
    expect(
      the('slowed').compareDocumentPosition(the('message-assistant')) & Node.DOCUMENT_POSITION_PRECEDING,
    ).toBeTruthy();
    host.slowdown = null;
    await pass(60_000);
    expect(all('slowed')).toEqual([]);
    const asked = host.slowdownAsked;
    await pass(60_000);
    expect(host.slowdownAsked).toBe(asked);
  });

  it('does not slow down the answer of another one', async () => {
    host.slowdown = 'low_power';
    const chat = host.addChat('Far away', Date.now(), { ...DEFAULT_CHAT_SETTINGS, model: ENDPOINT });
    await open('chat', chat.summary.id);
    await ask('And then?');
    expect(host.slowdownAsked).toBeGreaterThan(0);
    expect(all('slowed')).toEqual([]);
  });
});

describe('windows that nobody touches', () => {
  it('ask the host for nothing', async () => {
    for (const which of ['chat', 'models'] as const) {
      await open(which);
      await pass(10_000);
      const asked = (['engineStatus', 'memory', 'chats', 'models', 'serverStatus', 'outboundRequests'] as const).map(
        (call) => vi.spyOn(host, call),
      );
      await pass(600_000);
      expect(asked.map((call) => call.mock.calls.length)).toEqual([0, 0, 0, 0, 0, 0]);
      vi.restoreAllMocks();
    }
  });

  it('look at the memory while somebody is there, and not too often', async () => {
    await open('models');
    const asked = vi.spyOn(host, 'memory');
    await pass(10_000);
    for (let moved = 0; moved < 50; moved++) {
      window.dispatchEvent(new Event('pointermove'));
      await pass(100);
    }
    expect(asked.mock.calls.length).toBe(2);
    window.dispatchEvent(new Event('focus'));
    expect(asked.mock.calls.length).toBe(3);
  });
});

describe('the setting', () => {
  it('keeps the computer awake if a person wants that', async () => {
    await open('settings');
    expect(the('keep-awake').getAttribute('aria-checked')).toBe('false');
    await click('keep-awake');
    expect(host.app.keep_awake).toBe(true);
    expect(the('keep-awake').getAttribute('aria-checked')).toBe('true');
  });
});
