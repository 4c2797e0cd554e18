import { afterEach, describe, expect, it, vi } from 'vitest';

import type { ToolServer } from '../../bindings/ToolServer';
import { pause } from '../../host/fake/shared';
import { changeToolServer, tool } from '../../host/fake/toolServers';
import { chooseLanguage } from '../../locales/languages.svelte';
import { all, choose, click, field, host, open, pass, submit, the, useWindow, write } from '../../testing/window';

useWindow();
afterEach(() => chooseLanguage(['en']));

const FILES: ToolServer = {
  id: 'files',
  name: 'Files',
  command: 'npx -y @modelcontextprotocol/server-filesystem "/home/me/My notes"',
  parts: [
    { name: 'MODE', value: 'fast' },
    { name: 'API_KEY', value: null },
  ],
  builtin: false,
  signed_in: false,
  state: { kind: 'ready' },
  tools: [
    tool('read_file', 'Read a file', { description: 'Reads <b>one</b> file.', tokens: 120 }),
    tool('write_file', 'write_file', {
      effects: { read_only: false, destructive: true, open_world: true },
      tokens: 80,
    }),
  ],
  problems: [],
  roots: [],
};

const NOW = new Date(2026, 10, 21, 12).getTime();

async function openTools(...servers: ToolServer[]): Promise<void> {
  host.toolServers = [...host.toolServers, ...servers];
  await open('settings');
  await click('tab-tools');
  await pass(0);
}

/** The row of a server. */
function row(id: string): HTMLElement {
  const found = all('tool-server').find(({ dataset }) => dataset['id'] === id);
  if (!found) throw new Error(`no server ${id} is listed`);
  return found;
}

/** A part of a server's row. */
function part(id: string, name: string): HTMLElement | null {
  return row(id).querySelector<HTMLElement>(`[data-testid="${name}"]`);
}

const said = (element: HTMLElement | null): string | undefined => element?.textContent?.replace(/\s+/g, ' ').trim();

/** Writes into a field of several lines. */
async function fill(name: string, text: string): Promise<void> {
  const area = the(name);
  if (!(area instanceof HTMLTextAreaElement)) throw new Error(`${name} is no text area`);
  area.value = text;
  area.dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(0);
}

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

describe('a server at an address', () => {
  const TRACKER: ToolServer = {
    ...FILES,
    id: 'tracker',
    name: 'Tracker',
    command: 'https://mcp.example/mcp',
    parts: [{ name: 'X-Key', value: null }],
    state: { kind: 'needs_sign_in' },
    tools: [],
  };

  it('shows the address with its headers', async () => {
    await openTools(TRACKER);
    expect(part('tracker', 'tool-command')?.textContent).toBe('https://mcp.example/mcp');
    expect(all('tool-variable').map(said)).toEqual(['X-Key: ••••••••Hidden, stored in your keychain']);
  });

  it('is signed in to once the person agreed to the page, and out again', async () => {
    host.dialogAnswer = 'no';
    await openTools(TRACKER);
    await click('sign-in-tool-server');
    await pass(0);
    expect([host.asked, said(part('tracker', 'tool-server-state'))]).toEqual([['tools'], 'Needs sign-in']);
    expect(part('tracker', 'sign-out-tool-server')).toBeNull();
    host.dialogAnswer = 'yes';
    await click('sign-in-tool-server');
    await pass(0);
    expect(said(part('tracker', 'tool-server-state'))).toBe('Running');
    expect(part('tracker', 'sign-in-tool-server')).toBeNull();
    await click('sign-out-tool-server');
    await pass(0);
    expect(said(part('tracker', 'tool-server-state'))).toBe('Needs sign-in');
    expect(part('tracker', 'sign-out-tool-server')).toBeNull();
  });

  it('says that it waits for the browser, and can be asked anew', async () => {
    const asked = vi.spyOn(host, 'signInToolServer');
    asked.mockImplementationOnce(() => pause(1000).then(() => false));
    asked.mockImplementationOnce(() => pause(5000).then(() => true));
    await openTools(TRACKER);
    await click('sign-in-tool-server');
    expect(said(part('tracker', 'sign-in-waits'))).toBe('Continue in your browser.');
    await click('sign-in-tool-server');
    await pass(1000);
    // The first one ended because of the second, which goes on.
    expect(part('tracker', 'sign-in-waits')).not.toBeNull();
    await pass(5000);
    expect(part('tracker', 'sign-in-waits')).toBeNull();
    expect(asked.mock.calls).toEqual([
      ['tracker', null],
      ['tracker', null],
    ]);
  });

  it('takes a client id where no app registers itself', async () => {
    host.toolClientNeeded = true;
    await openTools(TRACKER);
    await click('sign-in-tool-server');
    await pass(0);
    expect(the('tool-client-sheet').textContent).toContain('doesn’t let apps register themselves');
    expect(the('use-tool-client')).toHaveProperty('disabled', true);
    const asked = vi.spyOn(host, 'signInToolServer');
    await write('tool-client-id', ' my-id ');
    await write('tool-client-secret', 'my-secret');
    expect(field('tool-client-secret').type).toBe('password');
    await submit('tool-client-id');
    await pass(0);
    expect(asked.mock.calls).toEqual([['tracker', { id: 'my-id', secret: 'my-secret' }]]);
    expect([all('tool-client-sheet'), said(part('tracker', 'tool-server-state'))]).toEqual([[], 'Running']);
  });

  it('says why nobody was signed in', async () => {
    await openTools(TRACKER);
    const why = 'Nothing came back from the browser.';
    const error = { code: 'bad_request', reason: 'tools_refused', arguments: { why }, message: why };
    vi.spyOn(host, 'signInToolServer').mockRejectedValue(error);
    await click('sign-in-tool-server');
    await pass(0);
    expect(document.body.textContent).toContain(why);
    expect(all('tool-client-sheet')).toEqual([]);
  });
});

describe('a server that is changed', () => {
  const value = (name: string, index: number): string => {
    const found = all(name)[index];
    return found instanceof HTMLInputElement ? found.value : '';
  };

  it('keeps its secrets, and is off once its command is another', async () => {
    await openTools(FILES);
    await click('edit-tool-server');
    expect(the('add-tool-sheet').textContent).toContain('Edit tool server');
    expect(field('tool-server-name').value).toBe('Files');
    expect([value('tool-variable-value', 0), value('tool-variable-value', 1)]).toEqual(['fast', '']);
    expect(all('tool-variable-value')[1]?.getAttribute('placeholder')).toContain('keychain');
    await fill('tool-server-command', 'npx -y files-2');
    const changed = vi.spyOn(host, 'changeToolServer');
    await submit('tool-server-name');
    await pass(0);
    expect(changed).toHaveBeenCalledWith('files', {
      name: 'Files',
      command: 'npx -y files-2',
      parts: [
        { name: 'MODE', value: 'fast' },
        { name: 'API_KEY', value: null },
      ],
    });
    expect(all('add-tool-sheet')).toEqual([]);
    expect(said(part('files', 'tool-server-state'))).toBe('Off');
    expect(host.toolServers[1]?.parts[1]).toEqual({ name: 'API_KEY', value: null });
  });

  it('says why it cannot be, and keeps what was typed', async () => {
    await openTools(FILES);
    vi.spyOn(host, 'changeToolServer').mockRejectedValue({ code: 'not_found', message: 'gone' });
    await click('edit-tool-server');
    await fill('tool-server-command', 'npx -y files-2');
    await submit('tool-server-name');
    await pass(0);
    expect(the('add-tool-problem').textContent).toContain('Not found');
    expect(said(part('files', 'tool-server-state'))).toBe('Running');
  });
});

describe('the folders of a server', () => {
  it('are chosen in the dialog of the system, and taken away', async () => {
    await openTools({ ...FILES, roots: ['/home/me/a\u202eb'] });
    expect(all('tool-root').map(({ textContent }) => textContent)).toEqual(['/home/me/a⟨U+202E⟩b']);
    await click('add-tool-root');
    await pass(0);
    expect(host.toolServers[1]?.roots).toEqual(['/home/me/a\u202eb', '/home/me/notes']);
    host.chosenRoot = null;
    await click('add-tool-root');
    await pass(0);
    expect(all('tool-root')).toHaveLength(2);
    await click('remove-tool-root');
    await pass(0);
    expect(all('tool-root').map(({ textContent }) => textContent)).toEqual(['/home/me/a⟨U+202E⟩b']);
    // Ponder's own tools have none.
    expect(all('tool-roots')).toHaveLength(1);
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

describe('adding a server', () => {
  it('takes a command with variables, and adds it switched off', async () => {
    await openTools();
    await click('open-add-tools');
    expect(the('add-tool-server')).toHaveProperty('disabled', true);
    expect(the('add-tool-sheet').textContent).toContain('added turned off');
    expect(the('add-tool-sheet').textContent).toContain('Secrets are stored in your keychain.');
    await write('tool-server-name', ' Weather ');
    await fill('tool-server-command', ' uvx weather ');
    await click('add-tool-variable');
    expect(document.activeElement).toBe(the('tool-variable-name'));
    await write('tool-variable-name', 'API_KEY');
    await write('tool-variable-value', 'sk-1');
    // An empty row is none.
    await click('add-tool-variable');
    const added = vi.spyOn(host, 'addToolServer');
    await submit('tool-server-name');
    expect(added.mock.calls).toEqual([
      [{ name: 'Weather', command: 'uvx weather', parts: [{ name: 'API_KEY', value: 'sk-1' }] }],
    ]);
    expect([all('add-tool-sheet'), host.asked]).toEqual([[], []]);
    expect(said(part('server-1', 'tool-server-state'))).toBe('Off');
    expect(document.body.innerHTML).not.toContain('sk-1');
  });

  it('says why it cannot be added, and keeps what was typed', async () => {
    await openTools();
    await click('open-add-tools');
    await fill('tool-server-command', 'https://');
    the('tool-server-command').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    await pass(0);
    expect(the('add-tool-problem').textContent).toContain('This address has no host.');
    expect(host.toolServers).toHaveLength(1);
    await fill('tool-server-command', 'uvx time');
    expect(the('add-tool-problem').textContent).toBe('');
    await click('add-tool-variable');
    await write('tool-variable-value', 'a value');
    await submit('tool-server-name');
    expect(the('add-tool-problem').textContent).toBe('Enter a name for every variable.');
    expect(field('tool-variable-name').getAttribute('aria-invalid')).toBe('true');
    await click('remove-tool-variable');
    expect(document.activeElement).toBe(the('add-tool-variable'));
    await submit('tool-server-name');
    expect(host.toolServers.map(({ command }) => command)).toEqual(['', 'uvx time']);
  });
});

describe('a configuration', () => {
  const PASTED = JSON.stringify({
    mcpServers: {
      time: { command: 'uvx', args: ['mcp-server-time'] },
      github: { command: 'npx', args: ['github'], env: { GITHUB_TOKEN: '${input:token}' } },
      notes: { command: 'npx', args: ['notes'], env: { NOTES_KEY: 'a-secret' } },
    },
  });

  const row = (name: string): HTMLElement | undefined =>
    all('found-tool-server').find(({ dataset }) => dataset['name'] === name);
  const box = (name: string): HTMLInputElement | null | undefined =>
    row(name)?.querySelector<HTMLInputElement>('[data-testid="choose-found-tool"]');

  it('that was pasted is shown, and what is chosen of it is added', async () => {
    await openTools();
    await click('open-paste-tools');
    await fill('tool-configuration', PASTED);
    await click('read-tool-configuration');
    await pass(0);
    expect(all('found-tool-server').map(({ dataset }) => dataset['name'])).toEqual(['time', 'github', 'notes']);
    expect([box('time')?.checked, box('github')?.checked, box('github')?.disabled]).toEqual([true, false, true]);
    expect(the('found-tool-problem').textContent).toBe('${input:token} is not filled in');
    // Names of variables, no values: nobody has told yet which are secret.
    expect(all('tool-variable').map(said)).toEqual(['GITHUB_TOKEN', 'NOTES_KEY']);
    expect(the('add-found-tools').textContent).toBe('Add 2 servers');
    box('notes')?.click();
    await pass(0);
    expect(the('add-found-tools').textContent).toBe('Add 1 server');
    await click('add-found-tools');
    await pass(0);
    expect(all('found-tools-sheet')).toEqual([]);
    expect(host.toolServers.map(({ name, state }) => [name, state.kind])).toEqual([
      ['Ponder', 'ready'],
      ['time', 'off'],
    ]);
  });

  it('with a gap is filled in before it is added', async () => {
    await openTools();
    await click('open-paste-tools');
    await fill('tool-configuration', PASTED);
    await click('read-tool-configuration');
    await pass(0);
    await click('edit-found-tool');
    expect(field('tool-server-name').value).toBe('github');
    await write('tool-variable-value', 'ghp_1');
    await submit('tool-server-name');
    expect(all('add-tool-sheet')).toEqual([]);
    expect(said(row('github') ?? null)).toContain('Added');
    expect([box('github')?.disabled, all('found-tool-problem')]).toEqual([true, []]);
    expect(host.toolServers.map(({ name }) => name)).toEqual(['Ponder', 'github']);
  });

  it('that is none is said to be none', async () => {
    await openTools();
    await click('open-paste-tools');
    expect(the('read-tool-configuration')).toHaveProperty('disabled', true);
    await fill('tool-configuration', 'hello');
    await click('read-tool-configuration');
    await pass(0);
    expect(the('found-tools-problem').textContent).toContain('This is not the JSON of a configuration.');
    await fill('tool-configuration', '{ "mcpServers": {} }');
    expect(all('found-tools-problem')).toEqual([]);
    await click('read-tool-configuration');
    await pass(0);
    expect(the('found-tools-none').textContent).toBe('No servers found');
    expect(all('add-found-tools')).toEqual([]);
  });

  it('of another program is imported, nothing of it unasked', async () => {
    const setup = { name: 'files', command: FILES.command, parts: [] };
    host.foundServers = [
      { from: 'Claude Desktop', setup, problem: null },
      { from: 'Cursor', setup: { name: 'bad', command: 'https://', parts: [] }, problem: null },
    ];
    await openTools(FILES);
    await click('open-import-tools');
    await pass(0);
    expect(said(row('files') ?? null)).toContain('From Claude Desktop');
    expect(all('found-tool-known')).toHaveLength(1);
    expect(the('add-found-tools')).toHaveProperty('disabled', true);
    box('files')?.click();
    box('bad')?.click();
    await pass(0);
    await click('add-found-tools');
    await pass(0);
    // The sheet stays, because one of the two was refused.
    expect(the('found-tool-problem').textContent).toContain('This address has no host.');
    expect(all('found-tool-added')).toHaveLength(1);
    expect(host.toolServers).toHaveLength(3);
    await click('cancel-found-tools');
    expect(all('found-tools-sheet')).toEqual([]);
  });

  it('of no other program is said to be missing, with the places that were searched', async () => {
    await openTools();
    await click('open-import-tools');
    await pass(0);
    expect(the('found-tools-none').textContent).toContain('Claude Desktop, Claude Code, VS Code, Cursor and LM Studio');
    await click('cancel-found-tools');
    vi.spyOn(host, 'foundToolServers').mockRejectedValue({ code: 'storage', message: 'no disk' });
    await click('open-import-tools');
    await pass(0);
    expect(the('found-tools-problem').textContent).not.toBe('');
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
