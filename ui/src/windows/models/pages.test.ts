import { describe, expect, it } from 'vitest';

import { click, host, open, pass, the, useWindow } from '../../testing/window';

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
      await host.showPage(page);
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
});
