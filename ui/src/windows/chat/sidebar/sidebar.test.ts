import { describe, expect, it, vi } from 'vitest';

import { t } from '../../../locales';
import { COMMANDS } from '../../../shared/shortcuts';
import { all, click, field, host, open, pass, searchList, the, type, useWindow } from '../../../testing/window';

useWindow();

function row(title: string): HTMLElement {
  const found = all('chat-item').find((item) => item.querySelector('.title')?.textContent === title);
  if (!found) throw new Error(`no chat ${title}`);
  return found;
}

describe('a chat with a draft', () => {
  it('says so in the list, in words, until the draft is gone, and not while its composer is open', async () => {
    const tea = host.addChat('About tea', Date.now());
    host.addChat('About the sea', Date.now() - 1000);
    await open('chat', tea.summary.id);
    await type('Half a question');
    await pass(500);
    expect(all('draft-mark')).toEqual([]);
    row('About the sea').click();
    await pass(50);
    expect(row('About tea').textContent?.replace(/\s+/g, ' ').trim()).toBe('About tea Draft');
    expect(all('draft-mark')).toHaveLength(1);
    row('About tea').click();
    await pass(50);
    expect(all('draft-mark')).toEqual([]);
    await type('');
    row('About the sea').click();
    await pass(50);
    expect(all('draft-mark')).toEqual([]);
  });
});

describe('old chats', () => {
  it('stand under their month, and those of earlier years under the year', async () => {
    const now = new Date();
    const month = (back: number): number => new Date(now.getFullYear(), now.getMonth() - back, 2).getTime();
    for (const back of [0, 2, 3, 12, 13]) host.addChat(`${back} months ago`, month(back));
    await open('chat');
    const headings = [...document.querySelectorAll('[data-testid="chats"] h2')].map(({ textContent }) => textContent);
    expect(headings).toEqual(['Projects', 'Last 30 days', 'September 2026', 'August 2026', '2025']);
  });
});

describe('a project', () => {
  const titles = (): string[] => all('chat-item').map((item) => item.textContent.trim());
  const key = (element: HTMLElement, name: string): void => {
    element.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
  };

  it('is made without a chat, and named where it is listed', async () => {
    await open('chat');
    expect(the('chats').textContent).toContain(t('sidebar.empty'));
    await click('add-project');
    await pass(50);
    expect(document.activeElement).toBe(the('project-name-field'));
    field('project-name-field').value = 'Thesis';
    key(the('project-name-field'), 'Enter');
    await pass(50);
    expect((await host.projects()).map(({ name }) => name)).toEqual(['Thesis']);
    expect([the('project').textContent.trim(), document.activeElement]).toEqual(['Thesis', the('project')]);
    await click('add-project');
    await pass(50);
    key(the('project-name-field'), 'Escape');
    await pass(50);
    expect((await host.projects()).map(({ name }) => name).sort()).toEqual([t('project.new'), 'Thesis'].sort());
  });

  it('is folded by a press or an arrow, stays so, and is unfolded while the list is searched', async () => {
    const tea = host.addChat('About tea', Date.now());
    host.addChat('About the sea', Date.now() - 1000);
    const { id } = await host.createProject('Drinks');
    await host.moveChat(tea.summary.id, id);
    await open('chat');
    expect(titles()).toEqual(['About tea', 'About the sea']);
    expect(the('project').getAttribute('aria-expanded')).toBe('true');
    await click('project');
    expect([titles(), the('project').getAttribute('aria-expanded')]).toEqual([['About the sea'], 'false']);
    await searchList('tea');
    await pass(300);
    expect(titles()).toEqual(['About tea']);
    await searchList('');
    await pass(300);
    expect(titles()).toEqual(['About the sea']);
    key(the('project'), 'ArrowRight');
    await pass(0);
    expect(titles()).toEqual(['About tea', 'About the sea']);
    key(the('project'), 'ArrowLeft');
    await pass(0);
    expect(titles()).toEqual(['About the sea']);
    // A chat that is begun in it would not be seen.
    await click('new-in-project');
    expect(titles()).toEqual(['About tea', 'About the sea']);
  });

  it('has its settings, its name and its end in a menu', async () => {
    await host.createProject('Drinks');
    await open('chat');
    await click('project-menu');
    await click('open-project');
    expect(all('project-settings')).toHaveLength(1);
    await click('project-settings-close');
    await click('project-menu');
    await click('rename-project');
    field('project-name-field').value = 'Tea';
    key(the('project-name-field'), 'Enter');
    await pass(50);
    expect((await host.projects()).map(({ name }) => name)).toEqual(['Tea']);
    await click('project-menu');
    await click('remove-project');
    await pass(50);
    expect(all('project')).toEqual([]);
    await click('toast-undo');
    await pass(50);
    expect(all('project')).toHaveLength(1);
  });
});

describe('the one search', () => {
  it('is the palette, which the field of the sidebar opens', async () => {
    await open('chat');
    expect(the('open-palette').textContent.replace(/\s+/g, ' ').trim()).toBe('SearchCtrl+K');
    await click('open-palette');
    expect(all('palette')).toHaveLength(1);
    expect(all('search')).toEqual([]);
  });

  it('has a place in the list with filters, for as long as it is used', async () => {
    host.addChat('About tea', Date.now());
    await open('chat');
    await searchList('tea');
    await pass(300);
    expect([all('search-time').length, all('open-palette')]).toEqual([1, []]);
    await click('end-search');
    expect([all('search'), all('open-palette').length]).toEqual([[], 1]);
    await searchList('');
    the('composer').focus();
    await pass(0);
    expect(all('search')).toEqual([]);
  });
});

describe('the archive and the trash', () => {
  it('are an entry of their own, apart from import and export', async () => {
    await open('chat');
    expect(the('open-kept').textContent.trim()).toBe(t('library.title'));
    await click('open-kept');
    expect([all('kept').length, all('import-chats'), all('export-all')]).toEqual([1, [], []]);
  });
});

describe('the menu of the app', () => {
  const tests = (): (string | undefined)[] =>
    [...document.querySelectorAll<HTMLElement>('[role=menuitem]')].map(({ dataset }) => dataset['testid']);
  const focused = (): string | undefined =>
    document.activeElement instanceof HTMLElement ? document.activeElement.dataset['testid'] : undefined;
  const key = async (name: string): Promise<void> => {
    document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
    await pass(0);
  };

  it('has every command, with those of a chat and of the view in submenus', async () => {
    await open('chat');
    await click('app-menu');
    const first = tests();
    await click('menu-chat');
    await click('menu-view');
    const all = new Set([...first, ...tests()]);
    await click('menu-chat');
    for (const test of tests()) all.add(test);
    const missing = COMMANDS.filter((command) => !all.has(`menu-${command}`));
    // Closing a window is a button of its frame; the others do not apply to an empty chat.
    expect(missing.sort()).toEqual(['answer-now', 'close-window', 'export', 'find', 'regenerate', 'stop']);
    expect(the('menu-palette').textContent.replace(/\s+/g, ' ').trim()).toMatch(/Ctrl\+K$/);
  });

  it('opens and closes a submenu by the arrows, and runs what is pressed', async () => {
    await open('chat');
    await click('app-menu');
    expect(focused()).toBe('menu-new-chat');
    for (let step = 0; step < 4; step++) await key('ArrowDown');
    expect([focused(), the('menu-chat').getAttribute('aria-expanded')]).toEqual(['menu-chat', 'false']);
    await key('ArrowRight');
    expect([focused(), the('menu-chat').getAttribute('aria-expanded')]).toEqual(['menu-composer', 'true']);
    await key('ArrowLeft');
    expect([focused(), the('menu-chat').getAttribute('aria-expanded')]).toEqual(['menu-chat', 'false']);
    await click('menu-help');
    expect([all('shortcuts').length, all('menu-help')]).toEqual([1, []]);
  });

  it('is left to the menu bar on a Mac', async () => {
    vi.spyOn(navigator, 'platform', 'get').mockReturnValue('MacIntel');
    await open('chat');
    expect(all('app-menu')).toEqual([]);
    vi.restoreAllMocks();
  });
});
