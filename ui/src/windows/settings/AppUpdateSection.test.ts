import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { fakeHost, type FakeHost } from '../../host/fake';
import { AppUpdates } from './appUpdate.svelte';
import AppUpdateSection from './AppUpdateSection.svelte';

let host: FakeHost;
let page: Record<string, unknown> | undefined;
const one = (id: string): HTMLElement | null => document.querySelector<HTMLElement>(`[data-testid="${id}"]`);
const state = (): string | undefined => one('app-update')?.dataset['state'];

async function show(): Promise<void> {
  page = mount(AppUpdateSection, { target: document.body, props: { updates: new AppUpdates(host) } });
  await vi.waitFor(() => {
    flushSync();
    expect(one('app-update')).not.toBeNull();
  });
}

async function press(id: string, then: string): Promise<void> {
  one(id)?.click();
  await vi.waitFor(() => {
    flushSync();
    expect(state()).toBe(then);
  });
}

beforeEach(() => (host = fakeHost(0)));

afterEach(() => {
  if (page) void unmount(page);
  document.body.replaceChildren();
});

describe('new versions', () => {
  it('asks, fetches and starts again only when a button is pressed', async () => {
    await show();
    expect(state()).toBe('not_asked');
    await press('update-ask', 'available');
    expect(one('app-update')?.textContent).toContain('Ponder 0.2.0 is available');
    expect(one('update-notes')?.querySelector('strong')?.textContent).toBe('Images');
    await press('update-install', 'installed');
    expect(host.restarts).toBe(0);
    one('update-restart')?.click();
    expect(host.restarts).toBe(1);
  });

  it('shows how far it is and can be stopped', async () => {
    host.packagePace = 20;
    await show();
    await press('update-ask', 'available');
    await press('update-install', 'fetching');
    await vi.waitFor(() =>
      expect(Number(document.querySelector('[role="progressbar"]')?.getAttribute('aria-valuenow'))).toBeGreaterThan(0),
    );
    await press('update-stop', 'available');
    expect(one('update-problem')).toBeNull();
  });

  it('says what failed and lets it be tried again', async () => {
    await show();
    host.updateProblem = { code: 'corrupt', reason: 'update_unsigned', message: 'it is not signed; nothing was changed' };
    one('update-ask')?.click();
    await vi.waitFor(() =>
      expect(one('update-problem')?.textContent).toContain('Update not installed. Its signature is invalid'),
    );
    host.updateProblem = null;
    await press('update-ask', 'available');
    expect(one('update-problem')).toBeNull();
    host.updateProblem = { code: 'network', message: 'the connection was cut' };
    await press('update-install', 'fetching');
    await vi.waitFor(() => expect(one('update-problem')).not.toBeNull());
    expect(state()).toBe('available');
  });

  it('knows the newest version, and a build that takes none shows nothing', async () => {
    host.newer = null;
    await show();
    await press('update-ask', 'newest');
    if (page) await unmount(page);
    host.takeNoUpdates();
    const updates = new AppUpdates(host);
    page = mount(AppUpdateSection, { target: document.body, props: { updates } });
    await vi.waitFor(() => expect(updates.update).toEqual({ state: 'off' }));
    flushSync();
    expect(one('app-update')).toBeNull();
  });
});
