import { describe, expect, it } from 'vitest';

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
