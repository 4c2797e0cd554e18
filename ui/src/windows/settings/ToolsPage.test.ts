import { afterEach, describe, expect, it, vi } from 'vitest';

import { pause } from '../../host/fake/shared';
import { changeToolServer } from '../../host/fake/toolServers';
import { chooseLanguage } from '../../locales/languages.svelte';
import { FILES, openTools, part, said } from '../../testing/toolsPage';
import { all, choose, click, field, host, pass, submit, the, useWindow, write } from '../../testing/window';

useWindow();
afterEach(() => chooseLanguage(['en']));

const NOW = new Date(2026, 10, 21, 12).getTime();

describe('the list', () => {
  it('begins with the tools of Ponder, which cannot be switched or removed', async () => {
    await openTools();
    expect(all('tool-server')).toHaveLength(1);
    expect(said(part('ponder', 'tool-server-state'))).toBe('Part of Ponder');
    for (const name of ['tool-server-switch', 'remove-tool-server', 'open-tool-log', 'tool-command'])
      expect(part('ponder', name)).toBeNull();
    expect(the('no-tool-servers').textContent).toBe('No servers of your own yet');
    expect(document.getElementById('row-toolServers')?.textContent).toContain('Nothing starts until you turn it on.');
    expect(document.getElementById('row-toolServers')?.textContent).toContain('even while Ponder is offline');
  });

  it('shows the whole command and the variables, of secrets only the name', async () => {
    await openTools(FILES);
    expect(all('no-tool-servers')).toEqual([]);
    expect(part('files', 'tool-command')?.textContent).toBe(FILES.command);
    expect(all('tool-variable').map(said)).toEqual(['MODE=fast', 'API_KEY=••••••••Hidden, stored in your keychain']);
  });

  it('makes hidden signs in the texts of strangers visible', async () => {
    await openTools({ ...FILES, command: 'run \u202etxt.exe', problems: ['A\u200btool'] });
    expect(part('files', 'tool-command')?.textContent).toBe('run ⟨U+202E⟩txt.exe');
    expect(said(part('files', 'tool-problems'))).toBe('Some tools can’t be used: A⟨U+200B⟩tool');
  });

  it.each([
    [{ kind: 'off' }, 'Off', 'false'],
    [{ kind: 'idle' }, 'Starts when a chat needs it', 'true'],
    [{ kind: 'starting' }, 'Starting…', 'true'],
    [{ kind: 'ready' }, 'Running', 'true'],
    [{ kind: 'needs_sign_in' }, 'Needs sign-in', 'true'],
    [{ kind: 'failed', reason: 'It ended.\nenv: ‘node’: No such file' }, 'Failed', 'true'],
  ] as const)('says of a server what it does: %o', async (state, words, on) => {
    await openTools({ ...FILES, state });
    expect(said(part('files', 'tool-server-state'))).toBe(words);
    expect(part('files', 'tool-server-switch')?.getAttribute('aria-checked')).toBe(on);
    expect(part('files', 'restart-tool-server') !== null).toBe(['ready', 'failed', 'needs_sign_in'].includes(state.kind));
    expect(part('files', 'sign-in-tool-server') !== null).toBe(state.kind === 'needs_sign_in');
    expect(part('files', 'tool-server-reason')?.textContent).toBe(state.kind === 'failed' ? state.reason : undefined);
  });

  it('follows what happens to a server', async () => {
    await openTools({ ...FILES, state: { kind: 'starting' }, tools: [] });
    expect(said(part('files', 'no-tools'))).toBe('Its tools are listed once it has started.');
    changeToolServer(host, 'files', { state: { kind: 'ready' } });
    await pass(0);
    expect(said(part('files', 'tool-server-state'))).toBe('Running');
    expect(said(part('files', 'no-tools'))).toBe('This server has no tools.');
    await click('tab-general');
    expect(host.toolListeners.size).toBe(0);
  });

  it('says that it could not be read, and reads it again', async () => {
    const refused = vi.spyOn(host, 'tools').mockRejectedValue({ code: 'storage', message: 'no disk' });
    await openTools(FILES);
    expect(the('tools-problem').textContent).not.toBe('');
    expect(all('tool-server')).toEqual([]);
    refused.mockRestore();
    await click('tools-again');
    await pass(0);
    expect(all('tools-problem')).toEqual([]);
    expect(all('tool-server')).toHaveLength(2);
  });

  it('is empty while it is read', async () => {
    const view = { servers: [...host.toolServers], grants: [], web_search: null };
    vi.spyOn(host, 'tools').mockImplementation(() => pause(1000).then(() => view));
    await openTools();
    expect([the('tools-loading').textContent, all('open-add-tools')]).toEqual(['Loading…', []]);
    await pass(1000);
    expect([all('tools-loading'), all('open-add-tools').length]).toEqual([[], 1]);
  });

  it('speaks the language of the windows', async () => {
    await openTools(FILES);
    await chooseLanguage(['ar']);
    await pass(0);
    expect(said(part('files', 'tool-server-state'))).toBe('يعمل');
    await chooseLanguage(['de']);
    await pass(0);
    expect(said(part('files', 'tool-server-state'))).toBe('Läuft');
    expect(part('files', 'tool-server-switch')?.getAttribute('aria-label')).toBe('Files verwenden');
  });
});

describe('a server', () => {
  it('is switched on once the person agreed to its command in the dialog of the system', async () => {
    host.dialogAnswer = 'no';
    await openTools({ ...FILES, state: { kind: 'off' } });
    await click('tool-server-switch');
    expect([host.asked, said(part('files', 'tool-server-state'))]).toEqual([['tools'], 'Off']);
    host.dialogAnswer = 'yes';
    await click('tool-server-switch');
    await pass(0);
    expect(said(part('files', 'tool-server-state'))).toBe('Starts when a chat needs it');
    await click('tool-server-switch');
    await pass(0);
    expect([host.asked, said(part('files', 'tool-server-state'))]).toEqual([['tools', 'tools'], 'Off']);
  });

  it('cannot be switched twice while the dialog is open', async () => {
    const switched = vi.spyOn(host, 'switchToolServer').mockImplementation(() => pause(1000).then(() => true));
    await openTools({ ...FILES, state: { kind: 'off' } });
    await click('tool-server-switch');
    expect(the('tool-server-switch')).toHaveProperty('disabled', true);
    await click('tool-server-switch');
    await pass(1000);
    expect(the('tool-server-switch')).toHaveProperty('disabled', false);
    expect(switched).toHaveBeenCalledTimes(1);
  });

  it('is started again', async () => {
    await openTools(FILES);
    await click('restart-tool-server');
    await pass(0);
    expect(said(part('files', 'tool-server-state'))).toBe('Starting…');
    expect(part('files', 'restart-tool-server')).toBeNull();
  });

  it('shows the last lines that it wrote, without colors', async () => {
    await openTools(FILES);
    await click('open-tool-log');
    await pass(0);
    expect(the('tool-log-empty').textContent).toContain('hasn’t written anything');
    host.toolLog = ['\u001b[31mError:\u001b[0m no port\r', 'a\u202eb'];
    await click('refresh-tool-log');
    await pass(0);
    expect(the('tool-log').textContent).toBe('Error: no port\na⟨U+202E⟩b');
    vi.spyOn(host, 'toolServerLog').mockRejectedValue({ code: 'not_found', message: 'gone' });
    await click('refresh-tool-log');
    await pass(0);
    expect(the('tool-log-problem').textContent).toContain('Not found');
    await click('close-tool-log');
    expect(all('tool-log-sheet')).toEqual([]);
  });

  it('is removed after a question', async () => {
    await openTools(FILES);
    await click('remove-tool-server');
    expect(the('remove-tool-sheet').textContent).toContain('Remove Files?');
    await click('keep-tool-server');
    expect(host.toolServers).toHaveLength(2);
    await click('remove-tool-server');
    await click('confirm-remove-tool-server');
    await pass(0);
    expect(host.toolServers.map(({ id }) => id)).toEqual(['ponder']);
    expect([all('remove-tool-sheet'), all('tool-server').length]).toEqual([[], 1]);
  });
});

describe('its tools', () => {
  it('are folded, and tell effects, size and description as plain text', async () => {
    await openTools(FILES);
    expect(said(part('files', 'unfold-tools'))).toBe('2 tools · about 200 tokens');
    expect(all('tool')).toEqual([]);
    await click('unfold-tools');
    expect(part('files', 'unfold-tools')?.getAttribute('aria-expanded')).toBe('true');
    const [read, write] = all('tool');
    expect(said(read?.querySelector('h5') ?? null)).toBe('Read a file read_file');
    expect(said(write?.querySelector('h5') ?? null)).toBe('write_file');
    expect(all('tool-effects').map(said)).toEqual([
      'Only reads · about 120 tokens',
      'Can delete or overwrite · Uses content from outside · about 80 tokens',
    ]);
    const [description] = all('tool-description');
    expect(description?.textContent).toBe('Reads <b>one</b> file.');
    expect(description?.closest('details')?.open).toBe(false);
    await click('unfold-tools');
    expect(all('tool')).toEqual([]);
  });

  it('have a rule each, which can be taken back', async () => {
    await openTools(FILES);
    await click('unfold-tools');
    const rules = (): (string | null | undefined)[] => host.toolServers[1]?.tools.map(({ rule }) => rule) ?? [];
    expect(the('tool-rule').getAttribute('aria-label')).toBe('Permission for write_file: Ask unless allowed');
    await choose('tool-rule', 'Never');
    expect(rules()).toEqual([null, 'deny']);
    await choose('tool-rule', 'Always ask');
    expect(rules()).toEqual([null, 'ask']);
    expect(the('tool-rule').getAttribute('aria-label')).toBe('Permission for write_file: Always ask');
    await choose('tool-rule', 'Ask unless allowed');
    expect(rules()).toEqual([null, null]);
  });
});

describe('the tools of Ponder that reach the internet', () => {
  const own = (name: string): HTMLElement => {
    const found = all('tool').find(({ dataset }) => dataset['tool'] === name);
    if (!found) throw new Error(`no tool ${name}`);
    return found;
  };
  const toggle = (name: string): HTMLElement | null => own(name).querySelector('[data-testid="own-tool-switch"]');

  it('are off, and are switched on and off by themselves', async () => {
    await openTools();
    await click('unfold-tools');
    expect(toggle('calculate')).toBeNull();
    expect(toggle('fetch_page')?.getAttribute('aria-label')).toBe('Let Read web page use the internet');
    for (const on of ['true', 'false']) {
      toggle('fetch_page')?.click();
      await pass(0);
      expect(['fetch_page', 'search_web'].map((name) => toggle(name)?.getAttribute('aria-checked'))).toEqual([on, 'false']);
    }
  });

  it('search with the engine that the person chose, whose key is not shown again', async () => {
    await openTools();
    expect(the('search-provider').getAttribute('aria-label')).toBe('Search engine: None');
    expect(all('search-key')).toEqual([]);
    await choose('search-provider', 'Brave');
    expect(the('web-search-about').textContent).toContain('A key from your account');
    expect(the('save-web-search')).toHaveProperty('disabled', true);
    await write('search-key', 'my-key');
    await submit('search-key');
    expect(host.webSearch).toEqual({ provider: 'brave', address: '', has_key: true });
    expect(the('web-search-about').textContent).toBe('The key is stored in your keychain.');
    expect([field('search-key').value, document.body.innerHTML.includes('my-key')]).toEqual(['', false]);
    await choose('search-provider', 'None');
    await pass(0);
    expect(host.webSearch).toBeNull();
  });

  it('search with an address, and say why one is none', async () => {
    await openTools();
    await choose('search-provider', 'SearXNG');
    await write('search-address', 'localhost:8888');
    await submit('search-address');
    expect(the('web-search-problem').textContent).toContain('This is no address of a search engine.');
    expect([host.webSearch, field('search-address').value]).toEqual([null, 'localhost:8888']);
    await write('search-address', ' http://localhost:8888 ');
    expect(the('web-search-problem').textContent).toBe('');
    await submit('search-address');
    expect(host.webSearch).toEqual({ provider: 'searxng', address: 'http://localhost:8888', has_key: false });
    expect(the('web-search-saved').textContent).toBe('Saved');
  });
});

describe('always allowed', () => {
  it('names the host of a page, and takes back one host alone', async () => {
    const tool = { server: 'ponder', tool: 'fetch_page' };
    host.toolGrants = ['a.example', 'b.example'].map((name) => ({
      tool,
      server_name: 'Ponder',
      host: name,
      granted_at: NOW,
    }));
    await openTools();
    expect(all('tool-grant').map(said)[1]).toBe('Read web page Ponder · b.example · allowed just now Take back');
    expect(the('revoke-grant').getAttribute('aria-label')).toMatch(/for Read web page on [ab]\.example$/);
    all('revoke-grant')[0]?.click();
    await pass(0);
    expect(host.toolGrants.map((grant) => grant.host)).toEqual(['b.example']);
  });

  it('lists tools with their server and time, and takes each back', async () => {
    host.toolGrants = [
      { tool: { server: 'files', tool: 'read_file' }, server_name: 'Files', host: null, granted_at: NOW - 20 * 60_000 },
      { tool: { server: 'gone', tool: 'old' }, server_name: 'Gone', host: null, granted_at: NOW },
    ];
    await openTools(FILES);
    expect(all('tool-grant').map(said)).toEqual([
      'Read a file Files · allowed 20 minutes ago Take back',
      'old Gone · allowed just now Take back',
    ]);
    expect(the('revoke-grant').getAttribute('aria-label')).toBe('Take back permission for old');
    await click('revoke-grant');
    await pass(0);
    expect(host.toolGrants.map(({ tool }) => tool.tool)).toEqual(['read_file']);
    await click('revoke-grant');
    await pass(0);
    expect([all('tool-grant'), the('no-tool-grants').textContent]).toEqual([[], 'No tools yet']);
  });
});
