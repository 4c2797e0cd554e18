/** The list of the rows of Settings is what the pages show, and what the searches find. */

import { afterEach, describe, expect, it, vi } from 'vitest';

import { foundRows, PAGES, ROW_NAMES, ROWS, type RowName } from '../../features/settingsSearch/rows';
import { chooseLanguage } from '../../locales/languages.svelte';
import { all, click, host, open, pass, the, useWindow, write } from '../../testing/window';

useWindow();
afterEach(() => chooseLanguage(['en']));

const settingsUnder = (under?: string): RowName[] =>
  ROW_NAMES.filter((name) => ROWS[name].setting && ROWS[name].under === under);

it('has 9 pages, 28 settings in view, 5 under Advanced and 4 that the server reveals', () => {
  expect(PAGES).toHaveLength(9);
  expect(PAGES.filter(({ groupKey }) => groupKey)).toHaveLength(3);
  expect(settingsUnder()).toHaveLength(28);
  expect(settingsUnder('advanced')).toEqual(['density', 'budget', 'imageDetail', 'threads', 'promptCache']);
  expect(settingsUnder('revealed')).toEqual(['serverPort', 'serverKey', 'serverNetwork', 'serverDocuments']);
});

it('names the rows of every page in their order, those under Advanced folded', async () => {
  host.damagedFiles = [{ made_at: 1_795_600_000_000, bytes: 9_600_000, chats: 3 }];
  host.hasCard = true;
  await open('settings');
  await click('tab-server');
  await pass(0);
  await click('server-switch');
  for (const { name } of PAGES) {
    await click(`tab-${name}`);
    await pass(100);
    const rows = [...document.querySelectorAll('[id^="row-"]:not([id$="-label"])')];
    expect(rows.map(({ id }) => id.slice('row-'.length))).toEqual(ROW_NAMES.filter((row) => ROWS[row].page === name));
    for (const row of rows) {
      const folded = row.closest('details');
      expect([row.id, folded !== null]).toEqual([
        row.id,
        ROW_NAMES.some((name) => `row-${name}` === row.id && ROWS[name].under === 'advanced'),
      ]);
      if (folded) expect(folded.open).toBe(false);
    }
  }
});

describe('the search', () => {
  it('finds rows by label, help and page, the label first', () => {
    expect(foundRows('theme', false).slice(0, 2)).toEqual(['theme', 'codeTheme']);
    expect(foundRows('network access', false)[0]).toBe('serverNetwork');
    expect(foundRows('appindicator', false)).toEqual([]);
    expect(foundRows('frees memory', false)).toEqual(['unload']);
    expect(foundRows('  ', false)).toEqual([]);
    expect([foundRows('menu bar', true), foundRows('menu bar', false)]).toEqual([['tray'], []]);
  });

  it('speaks the language of the windows', async () => {
    await chooseLanguage(['de']);
    expect(foundRows('Lesebreite', false)).toEqual(['width']);
    await chooseLanguage(['ar']);
    expect(foundRows('عرض القراءة', false)).toEqual(['width']);
  });

  it('opens the page of a result, unfolds what hides the row, and marks it for a moment', async () => {
    const scrolled: string[] = [];
    vi.spyOn(Element.prototype, 'scrollIntoView').mockImplementation(function (this: Element) {
      scrolled.push(this.id);
    });
    await open('settings');
    await write('settings-search', 'density');
    expect(all('tab-general')).toEqual([]);
    expect(the('settings-found').textContent?.trim()).toBe('1 result');
    await click('settings-result');
    await pass(0);
    expect(the('tab-appearance').getAttribute('aria-selected')).toBe('true');
    const row = document.getElementById('row-density');
    expect([row?.closest('details')?.open, row?.dataset['found'], scrolled]).toEqual([true, '', ['row-density']]);
    expect(row?.contains(document.activeElement)).toBe(true);
    await pass(2500);
    expect(row?.dataset['found']).toBeUndefined();
  });

  it('leads to the switch of the server while the row is hidden', async () => {
    await open('settings');
    await write('settings-search', 'allow network');
    the('settings-search').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    await pass(100);
    expect(the('tab-server').getAttribute('aria-selected')).toBe('true');
    expect(document.getElementById('row-server')?.dataset['found']).toBe('');
  });

  it('says that nothing is found, and ends with Escape', async () => {
    await open('settings');
    window.dispatchEvent(new KeyboardEvent('keydown', { key: 'f', ctrlKey: true, bubbles: true, cancelable: true }));
    expect(document.activeElement).toBe(the('settings-search'));
    await write('settings-search', 'xylophone');
    expect([the('settings-found').textContent?.trim(), all('settings-result')]).toEqual(['No results', []]);
    the('settings-search').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
    await pass(0);
    expect(all('tab-general')).toHaveLength(1);
  });
});

it('is in the command palette, which opens the page', async () => {
  await open('chat');
  window.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true, cancelable: true }));
  await pass(0);
  await write('palette-words', 'code theme');
  const entry = all('palette-entry').find(({ dataset }) => dataset['kind'] === 'setting');
  expect(entry?.textContent).toContain('Settings · Appearance');
  entry?.click();
  await pass(0);
  expect(host.shownPages).toEqual(['appearance']);
});
