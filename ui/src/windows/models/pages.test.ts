import { describe, expect, it } from 'vitest';

import type { Error as ModelError } from '../../bindings/Error';
import { bestFit } from '../../format/fit';
import { all, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

describe('the window', () => {
  it('shows the page that another window asks for, and no other of its own', async () => {
    const chosen = (): (string | undefined)[] => {
      const tabs = document.querySelectorAll<HTMLElement>('[role=tab][aria-selected=true]');
      return [...tabs].map(({ dataset }) => dataset['testid']);
    };
    await open('models');
    expect(chosen()).toEqual(['tab-discover']);
    for (const [page, tab] of [
      ['downloads', 'tab-downloads'],
      ['about', 'tab-downloads'],
      ['discover', 'tab-discover'],
    ] as const) {
      await host.showPage(page, null);
      await pass(0);
      expect(chosen(), page).toEqual([tab]);
    }
    history.replaceState(null, '', '?window=models&page=downloads');
    await open('models');
    expect(chosen()).toEqual(['tab-downloads']);
  });

  it('lists an adapter below its model, and says whose it is', async () => {
    const pebble = host.local.find(({ built_in }) => built_in);
    if (!pebble) throw new Error('no Pebble');
    const adapter = { ...pebble, reference: '/adapters/style', name: 'style', built_in: false, adapter_of: 'pebble' };
    const problem: ModelError = {
      code: 'model_not_found',
      reason: 'adapter_without_model',
      message: 'the adapter orphan belongs to owner/Elsewhere',
      arguments: { adapter: 'orphan', base: 'owner/Elsewhere' },
    };
    const orphan = { ...pebble, reference: '/adapters/orphan', name: 'o'.repeat(200), built_in: false, thinking: null, problem };
    host.local = [pebble, adapter, orphan];
    await open('models');
    await click('tab-local');
    const [first, second, third] = all('model-row');
    expect(third?.textContent).toContain('adapter for owner/Elsewhere');
    expect(first?.textContent).not.toContain('Adapter for');
    expect(second?.dataset['reference']).toBe('/adapters/style');
    expect(second?.textContent).toContain('Adapter for Pebble');
  });

  it('is opened by Pebble, which offers a larger model, where models are found', async () => {
    await open('chat');
    expect(the('find-model').tagName).toBe('BUTTON');
    await click('find-model');
    expect(host.shownPages).toEqual(['discover']);
  });

  it('is opened at the first start for the one model that fits this computer best, before any example', async () => {
    host.local = host.local.filter(({ built_in }) => built_in);
    await open('chat');
    const [first] = the('empty-state').querySelectorAll('button');
    expect(first?.dataset['testid']).toBe('find-model');
    expect(first?.textContent).toContain('Choose a larger model');
    const best = bestFit(await host.firstModels());
    expect(the('best-fit').textContent).toContain(best?.name);
    await click('find-model');
    expect(host.shownPages).toEqual(['discover']);
    await open('models');
    expect(all('hub-row')[0]?.dataset['id']).toBe(best?.id);
  });

  it('opens Settings at the page that helps', async () => {
    host.net = { ...host.net, offline: true };
    await open('models');
    await click('offline-mark');
    expect(host.shownPages).toEqual(['privacy']);
  });
});
