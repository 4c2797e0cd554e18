import { flushSync, mount, tick, unmount } from 'svelte';
import { afterEach, describe, expect, it } from 'vitest';

import type { Licences } from './licences';
import { matching } from './licences';
import { fakeHost } from '../../host/fake';
import { AppUpdates } from './appUpdate.svelte';
import AboutPage from './AboutPage.svelte';

const LIST: Licences = {
  components: [
    { name: 'axum', version: '0.8.9', licence: 'MIT', url: 'https://github.com/tokio-rs/axum', texts: [0] },
    { name: 'inter', version: '5.3.0', licence: 'OFL-1.1', url: null, texts: [1, 2] },
    ...Array.from({ length: 80 }, (_, number) => ({
      name: `part-${number}`,
      version: '1.0.0',
      licence: 'Apache-2.0',
      url: null,
      texts: [2],
    })),
  ],
  texts: ['The MIT text', 'The font text', 'The Apache text'],
};

let page: Record<string, unknown> | undefined;
const all = (id: string): HTMLElement[] => [...document.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`)];

async function show(list: Licences | null): Promise<void> {
  page = mount(AboutPage, {
    target: document.body,
    props: { updates: new AppUpdates(fakeHost(0)), read: () => Promise.resolve(list) },
  });
  await tick();
  await tick();
}

afterEach(() => {
  if (page) void unmount(page);
  document.body.replaceChildren();
});

describe('About', () => {
  it('tells its version and shows each licence on demand', async () => {
    await show(LIST);
    expect(all('version')[0]?.textContent).toMatch(/^Version \d+\.\d+\.\d+$/);
    expect(all('licence')).toHaveLength(60);
    all('licence')[1]?.click();
    flushSync();
    expect(all('licence')[1]?.getAttribute('aria-expanded')).toBe('true');
    expect(all('licence-text')[0]?.textContent?.trim()).toBe('The font textThe Apache text');
    all('licence')[1]?.click();
    flushSync();
    expect(all('licence-text')).toEqual([]);
    all('licences-all')[0]?.click();
    flushSync();
    expect(all('licence')).toHaveLength(82);
  });

  it('finds by name and licence', async () => {
    expect(matching(LIST.components, 'APACHE part-7').map(({ name }) => name)).toHaveLength(11);
    await show(LIST);
    const search = all('licence-search')[0] as HTMLInputElement;
    search.value = 'mit axum';
    search.dispatchEvent(new Event('input', { bubbles: true }));
    flushSync();
    expect(all('licence').map((row) => row.textContent?.replace(/\s+/g, ' ').trim())).toEqual(['axum 0.8.9 MIT']);
    search.value = 'nothing';
    search.dispatchEvent(new Event('input', { bubbles: true }));
    flushSync();
    expect(all('licences')[0]?.textContent).toContain('No results');
  });

  it('says so if this build has no list', async () => {
    await show(null);
    expect(all('no-licences')).toHaveLength(1);
  });
});
