import { beforeEach, describe, expect, it } from 'vitest';

import { all, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

describe('an embedding model', () => {
  beforeEach(() => {
    const [pebble] = host.local;
    if (!pebble) throw new Error('the fake has models');
    host.local = [
      ...host.local,
      { ...pebble, reference: 'ada/bge', name: 'bge', kind: 'embedding', built_in: false, thinking: null },
    ];
  });

  it('is listed as what it is', async () => {
    await open('models');
    await click('tab-local');
    const listed = all('model-row').find((other) => other.dataset.reference === 'ada/bge');
    expect(listed?.textContent).toContain('Embeddings');
  });

  it('is offered to no chat', async () => {
    await open('chat');
    await click('model-picker');
    await pass(0);
    const options = [...document.querySelectorAll('[role=option]')].map((option) => option.textContent).join();
    expect(options).toContain('Pebble');
    expect(options).not.toContain('bge');
  });
});

describe('the offline mark', () => {
  it('shows what another window has switched', async () => {
    await open('models');
    expect(all('offline-mark')).toEqual([]);
    await host.setOffline(true);
    await pass(50);
    expect(the('offline-mark').textContent).toContain('Offline');
  });
});
