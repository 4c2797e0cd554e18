/** Servers of tools as a person adds, changes and signs in to them. */

import { describe, expect, it, vi } from 'vitest';

import type { ToolServer } from '../../../bindings/ToolServer';
import { pause } from '../../../host/fake/shared';
import { fill, FILES, openTools, part, said } from '../../../testing/toolsPage';
import { all, click, field, host, pass, submit, the, useWindow, write } from '../../../testing/window';

useWindow();

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
    expect(the('tool-client-sheet').textContent).toContain('doesn’t register apps');
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
