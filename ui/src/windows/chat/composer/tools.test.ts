/** The tools of a chat: chosen in the composer, counted beside it. */

import { describe, expect, it } from 'vitest';

import type { ToolServer } from '../../../bindings/ToolServer';
import { DEFAULT_CHAT_SETTINGS } from '../../../bindings/constants';
import { all, ask, click, host, open, pass, the, useWindow } from '../../../testing/window';

useWindow();

const tool = (name: string, tokens: number): ToolServer['tools'][number] => ({
  name,
  title: `Title of ${name}`,
  description: 'It works.',
  effects: { read_only: true, destructive: false, open_world: false },
  tokens,
  rule: null,
  on: null,
});

const server = (id: string, more: Partial<ToolServer> = {}): ToolServer => ({
  id,
  name: `Server ${id}`,
  command: `run ${id}`,
  parts: [],
  builtin: false,
  signed_in: false,
  state: { kind: 'ready' },
  tools: [tool('read', 100), tool('write', 40)],
  problems: [],
  roots: [],
  ...more,
});

async function openPanel(): Promise<void> {
  await click('composer-add');
  await click('tools');
  await pass(10);
}

function switchOf(name: string): HTMLElement {
  const found = all('tool-switch').find(({ dataset }) => dataset['tool'] === name);
  if (!found) throw new Error(`no switch for ${name}`);
  return found;
}

async function press(element: HTMLElement): Promise<void> {
  element.click();
  await pass(10);
}

const isOn = (element: HTMLElement): boolean => element.getAttribute('aria-checked') === 'true';
const chosen = (id: string): string[] =>
  (host.kept.get(id)?.settings.tools ?? []).map((one) => `${one.server}/${one.tool}`);

/** Opens a chat in which this tool is on. */
async function openWith(server: string): Promise<string> {
  const settings = { ...DEFAULT_CHAT_SETTINGS, tools: [{ server, tool: 'read' }] };
  const { id } = host.addChat('A chat', Date.now(), settings).summary;
  await open('chat', id);
  return id;
}

describe('the tools of a chat', () => {
  it('are chosen one by one or with their whole server, with their cost', async () => {
    host.toolServers = [server('files')];
    const { id } = host.addChat('A chat', Date.now()).summary;
    await open('chat', id);
    expect(all('tools-chip')).toEqual([]);
    await openPanel();
    expect(document.activeElement).toBe(the('tools-panel'));
    expect(the('tools-sum').textContent).toContain('No tools are on.');
    expect(the('tool-server').textContent).toContain('100 tokens');
    await press(switchOf('read'));
    expect(chosen(id)).toEqual(['files/read']);
    expect(the('tools-sum').textContent).toBe('1 tool on, about 100 tokens');
    expect([isOn(the('server-switch')), the('tools-chip').textContent?.trim()]).toEqual([false, '1 tool']);
    await press(the('server-switch'));
    expect(chosen(id)).toEqual(['files/read', 'files/write']);
    expect(the('tools-sum').textContent).toBe('2 tools on, about 140 tokens');
    await press(the('server-switch'));
    expect([chosen(id), all('tools-chip').length]).toEqual([[], 0]);
  });

  it('are those of a chat that is created with them', async () => {
    host.toolServers = [server('files')];
    await open('chat');
    await openPanel();
    await press(switchOf('write'));
    await ask('Write it down');
    await pass(2000);
    const [chat] = [...host.kept.values()];
    expect(chat?.settings.tools).toEqual([{ server: 'files', tool: 'write' }]);
    expect(the('tools-chip').textContent?.trim()).toBe('1 tool');
    await click('new-chat');
    await pass(10);
    expect(all('tools-chip')).toEqual([]);
  });

  it('are those of a temporary chat', async () => {
    host.toolServers = [server('files')];
    await open('chat');
    await click('temporary-chat');
    await openPanel();
    await press(switchOf('read'));
    expect(chosen(host.temporary ?? '')).toEqual(['files/read']);
  });

  it('are shown by the chip, which stays until its panel is closed', async () => {
    host.toolServers = [server('files')];
    const id = await openWith('files');
    await click('tools-chip');
    await pass(10);
    await press(switchOf('read'));
    expect([chosen(id), all('tools-chip').length]).toEqual([[], 1]);
    the('tools-panel').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
    await pass(10);
    expect(all('tools-chip')).toEqual([]);
  });

  it('are listed once their server was started, by the switch for all of them', async () => {
    host.toolServers = [server('a', { state: { kind: 'idle' }, tools: [] })];
    host.startedTools = [tool('read', 100), tool('write', 40)];
    const { id } = host.addChat('A chat', Date.now()).summary;
    await open('chat', id);
    await openPanel();
    expect(all('tool-switch')).toEqual([]);
    await press(the('server-switch'));
    expect(chosen(id)).toEqual(['a/read', 'a/write']);
    expect(all('tool-switch').map(isOn)).toEqual([true, true]);
  });

  it('leave out those that are switched off in the settings, and say so', async () => {
    const off = { ...tool('fetch', 30), on: false };
    host.toolServers = [server('own', { builtin: true, tools: [tool('read', 100), off] })];
    const { id } = host.addChat('A chat', Date.now()).summary;
    await open('chat', id);
    await openPanel();
    expect(the('tool-off').textContent).toContain('It connects to the internet.');
    expect(switchOf('fetch')).toHaveProperty('disabled', true);
    await press(the('server-switch'));
    expect([chosen(id), isOn(the('server-switch'))]).toEqual([['own/read'], true]);
  });

  it('tell the state of their server, and lead to the settings', async () => {
    host.toolServers = [
      server('a', { state: { kind: 'failed', reason: 'env: \u2018node\u2019: No such file' } }),
      server('b', { state: { kind: 'off' }, tools: [tool('hidden', 1)] }),
      server('c', { state: { kind: 'idle' }, tools: [] }),
      server('d', { state: { kind: 'starting' } }),
    ];
    await open('chat');
    await openPanel();
    const [failed, off, idle, starting] = all('tool-server');
    expect(failed?.textContent).toContain('No such file');
    expect(off?.textContent).toContain('Turn on in Settings…');
    expect(idle?.textContent).toContain('Starts when needed');
    expect(idle?.textContent).toContain('No tools known yet');
    expect(starting?.textContent).toContain('Starting…');
    expect(switchOf('hidden').matches(':disabled')).toBe(true);
    await click('tools-turn-on');
    expect(host.shownPages).toEqual(['tools']);
    expect(all('tools-panel')).toEqual([]);
  });

  it('lead to the settings if only Ponder has some', async () => {
    await open('chat');
    await openPanel();
    expect(the('tools-only-own').textContent).toContain('Servers bring more.');
    await click('tools-add');
    expect(host.shownPages).toEqual(['tools']);
  });

  it('change with their servers', async () => {
    host.toolServers = [server('files')];
    await open('chat');
    await openPanel();
    host.toolServers = [server('files', { tools: [tool('search', 5)] })];
    for (const listener of host.toolListeners) listener();
    await pass(10);
    expect(all('tool-switch').map(({ dataset }) => dataset['tool'])).toEqual(['search']);
  });

  it('that are gone can be taken off', async () => {
    host.toolServers = [server('files')];
    const id = await openWith('gone');
    await openPanel();
    expect(the('gone-tools').textContent).toContain('No longer available');
    await click('gone-switch');
    expect(chosen(id)).toEqual([]);
  });

  it('cannot be chosen for a model without tools, but taken off', async () => {
    host.toolServers = [server('files')];
    const capabilities = await host.capabilities('pebble');
    host.capabilities = async () => ({ ...capabilities, tools: false });
    const id = await openWith('files');
    expect(the('tools-chip').title).toBe('This model doesn’t support tools.');
    await openPanel();
    expect(the('tools-unsupported').textContent).toBe('This model doesn’t support tools.');
    const switches = [switchOf('write'), switchOf('read'), the('server-switch')];
    expect(switches.map((one) => one.matches(':disabled'))).toEqual([true, false, true]);
    await press(switchOf('read'));
    expect(chosen(id)).toEqual([]);
  });

  it('say why they could not be read', async () => {
    host.chatTools = async () => Promise.reject({ code: 'busy', message: 'no' });
    await open('chat');
    await openPanel();
    expect(the('toast').textContent).toContain('Ponder is busy');
  });
});
