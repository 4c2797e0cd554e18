/** The fake host's servers of tools. None of them runs: tests and examples put them into a state. */

import type { BundleValue } from '../../bindings/BundleValue';
import type { Error as HostError } from '../../bindings/Error';
import type { FoundServer } from '../../bindings/FoundServer';
import type { ServerVariable } from '../../bindings/ServerVariable';
import type { ToolBundle } from '../../bindings/ToolBundle';
import type { ToolGrant } from '../../bindings/ToolGrant';
import type { ToolRef } from '../../bindings/ToolRef';
import type { ToolServer } from '../../bindings/ToolServer';
import type { ToolSetup } from '../../bindings/ToolSetup';
import type { ToolView } from '../../bindings/ToolView';
import type { WebSearch } from '../../bindings/WebSearch';
import type { Platform } from '../types';
import { ask, listen, refusal, type Shared } from './shared';

/** A tool that reads and nothing else. */
export const tool = (name: string, title: string, more: Partial<ToolView> = {}): ToolView => ({
  name,
  title,
  description: `${title}.`,
  effects: { read_only: true, destructive: false, open_world: false },
  tokens: 60,
  rule: null,
  on: null,
  ...more,
});

const OUTSIDE = { read_only: true, destructive: false, open_world: true };

const OWN: ToolServer = {
  id: 'ponder',
  name: 'Ponder',
  command: '',
  parts: [],
  builtin: true,
  signed_in: false,
  state: { kind: 'ready' },
  tools: [
    tool('get_time', 'Time'),
    tool('calculate', 'Calculator'),
    tool('fetch_page', 'Read web page', { effects: OUTSIDE, on: false }),
    tool('search_web', 'Search the web', { effects: OUTSIDE, on: false }),
  ],
  problems: [],
  roots: [],
};

export const toolServerControls = () => ({
  toolServers: [OWN] as readonly ToolServer[],
  toolGrants: [] as readonly ToolGrant[],
  webSearch: null as WebSearch | null,
  /** The servers in the configurations of other programs. */
  foundServers: [] as readonly FoundServer[],
  /** The bundle that the person chooses; `null`: none. */
  bundle: null as ToolBundle | HostError | null,
  /** The values that bundles were added with. */
  bundleValues: [] as BundleValue[],
  /** The lines that every server wrote. */
  toolLog: [] as readonly string[],
  /** The tools that a server has once it was started. */
  startedTools: [] as ToolView[],
  /** True if a server knows only clients that somebody registered. */
  toolClientNeeded: false,
  /** The folder that is chosen in the system's dialog; `null` if none is. */
  chosenRoot: '/home/me/notes' as string | null,
  toolListeners: new Set<() => void>(),
});

type Controls = Shared & ReturnType<typeof toolServerControls>;

/** Changes a server, as something that happens to it does. */
export function changeToolServer(host: Controls, id: string, change: Partial<ToolServer>): void {
  if (!host.toolServers.some((known) => known.id === id)) throw missing(id);
  host.toolServers = host.toolServers.map((known) => (known.id === id ? { ...known, ...change } : known));
  toolsChanged(host);
}

export function toolServers(host: Controls) {
  let last = 0;
  const same = (one: ToolRef, other: ToolRef): boolean => one.server === other.server && one.tool === other.tool;
  const add = async ({ name, command, parts }: ToolSetup): Promise<string> => {
    if (/^https?:\/*$/.test(command)) throw refused('This address has no host.');
    const id = `server-${++last}`;
    const shown = parts.map((part) => (/key|token/i.test(part.name) ? { ...part, value: null } : part));
    const added = { id, name: name || command, command, parts: shown, state: { kind: 'off' } as const };
    host.toolServers = [...host.toolServers, { ...OWN, ...added, builtin: false, tools: [] }];
    toolsChanged(host);
    return id;
  };
  return {
    async tools() {
      return { servers: [...host.toolServers], grants: [...host.toolGrants], web_search: host.webSearch };
    },
    addToolServer: add,
    async changeToolServer(id, { name, command, parts }) {
      const known = host.toolServers.find((server) => server.id === id);
      if (!known || known.builtin) throw missing(id);
      if (!command.trim()) throw refused('This is no server: it has no command.');
      const had = new Set(known.parts.filter(({ value }) => value === null).map((part) => part.name));
      const hides = (part: ServerVariable): boolean => (had.has(part.name) && !part.value) || /key|token/i.test(part.name);
      const shown = parts.map((part) => (hides(part) ? { ...part, value: null } : part));
      const replaced = parts.some((part) => part.value && /key|token/i.test(part.name));
      const same = command === known.command && JSON.stringify(shown) === JSON.stringify(known.parts) && !replaced;
      const state = same ? known.state : ({ kind: 'off' } as const);
      changeToolServer(host, id, { name: name || command, command, parts: shown, state });
    },
    async addToolRoot(id) {
      const known = host.toolServers.find((server) => server.id === id);
      if (!known) throw missing(id);
      if (host.chosenRoot === null) return false;
      changeToolServer(host, id, { roots: [...new Set([...known.roots, host.chosenRoot])] });
      return true;
    },
    async removeToolRoot(id, root) {
      const known = host.toolServers.find((server) => server.id === id);
      if (!known) throw missing(id);
      changeToolServer(host, id, { roots: known.roots.filter((other) => other !== root) });
    },
    async chooseToolBundle() {
      if (host.bundle && 'code' in host.bundle) throw host.bundle;
      return host.bundle;
    },
    async addToolBundle(hash, name, values) {
      const { bundle } = host;
      if (!bundle || 'code' in bundle || bundle.hash !== hash) throw refused('This bundle was not looked at.');
      const empty = bundle.fields.find(
        ({ key, required }) => required && !values.some((value) => value.key === key && value.values.length > 0),
      );
      if (empty) throw refused(`${empty.title}: this has to be filled in`);
      host.bundleValues = values;
      return add({ name: name || bundle.name, command: bundle.command, parts: [] });
    },
    async foundToolServers() {
      return [...host.foundServers];
    },
    async readToolConfiguration(text) {
      return found(text);
    },
    async switchToolServer(id, on) {
      if (on && ask(host, 'tools') === 'no') return false;
      changeToolServer(host, id, { state: { kind: on ? 'idle' : 'off' } });
      return true;
    },
    async removeToolServer(id) {
      host.toolServers = host.toolServers.filter((known) => known.id !== id);
      host.toolGrants = host.toolGrants.filter(({ tool }) => tool.server !== id);
      toolsChanged(host);
    },
    async restartToolServer(id) {
      changeToolServer(host, id, { state: { kind: 'starting' } });
    },
    async startToolServer(id) {
      const known = host.toolServers.find((server) => server.id === id);
      if (!known) throw missing(id);
      if (known.state.kind === 'off') throw refused('It is not switched on.');
      changeToolServer(host, id, { state: { kind: 'ready' }, tools: host.startedTools });
    },
    async signInToolServer(id, client) {
      if (host.toolClientNeeded && client === null) throw unregistered('It wants a client id.');
      if (ask(host, 'tools') === 'no') return false;
      changeToolServer(host, id, { state: { kind: 'ready' }, signed_in: true });
      return true;
    },
    async signOutToolServer(id) {
      changeToolServer(host, id, { state: { kind: 'needs_sign_in' }, signed_in: false });
    },
    async toolServerLog(id) {
      if (!host.toolServers.some((known) => known.id === id)) throw missing(id);
      return [...host.toolLog];
    },
    async setToolRule(of, rule) {
      const known = host.toolServers.find(({ id }) => id === of.server)?.tools ?? [];
      const tools = known.map((other) => (other.name === of.tool ? { ...other, rule } : other));
      changeToolServer(host, of.server, { tools });
    },
    async revokeToolGrant(of, at) {
      const meant = ({ tool, host }: ToolGrant): boolean => same(tool, of) && (at === null || host === at);
      host.toolGrants = host.toolGrants.filter((grant) => !meant(grant));
      toolsChanged(host);
    },
    async switchOwnTool(name, on) {
      const known = host.toolServers.find(({ id }) => id === OWN.id)?.tools ?? [];
      const isSwitched = (own: ToolView): boolean => own.name === name && own.on !== null;
      if (!known.some(isSwitched)) throw refused(`Ponder's tool ${name} is always on.`);
      changeToolServer(host, OWN.id, { tools: known.map((own) => (isSwitched(own) ? { ...own, on } : own)) });
    },
    async setWebSearch(setup) {
      if (setup && !/^(https?:\/\/[^/?@]+.*)?$/.test(setup.address))
        throw refused('This is no address of a search engine.');
      const before = host.webSearch;
      const stays = setup && before && before.provider === setup.provider && before.address === setup.address;
      const has_key = Boolean(setup?.key) || Boolean(stays && before.has_key);
      host.webSearch = setup && { provider: setup.provider, address: setup.address, has_key };
      toolsChanged(host);
    },
    onToolsChanged: (listener) => listen(host.toolListeners, listener),
  } satisfies Partial<Platform>;
}

function toolsChanged({ toolListeners }: Controls): void {
  for (const listener of toolListeners) queueMicrotask(listener);
}

function missing(id: string): HostError {
  return refusal('not_found', `there is no server ${id}`);
}

function refused(why: string): HostError {
  return refusal('bad_request', why, { why }, 'tools_refused');
}

function unregistered(why: string): HostError {
  return refusal('bad_request', why, { why }, 'tools_not_registered');
}

/** The servers of Claude's form; the real host reads others as well. */
function found(text: string): FoundServer[] {
  const servers = serversIn(text);
  if (servers === null) throw refused('This is not the JSON of a configuration.');
  return Object.entries(servers).map(([name, { command, args = [], env = {} }]) => {
    const line = [command, ...args].join(' ');
    const parts = Object.entries(env).map(([part, value]) => ({ name: part, value }));
    const placeholder = /\$\{[^}]*\}/.exec(line + Object.values(env).join(' '))?.[0];
    const problem = placeholder === undefined ? null : `${placeholder} is not filled in`;
    return { from: '', setup: { name, command: line, parts }, problem };
  });
}

interface Written {
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

function serversIn(text: string): Readonly<Record<string, Written>> | null {
  try {
    const whole: { mcpServers?: Readonly<Record<string, Written>> } = JSON.parse(text);
    return whole.mcpServers ?? null;
  } catch {
    return null;
  }
}

/** Servers in every state, for a browser. */
export function fillToolServers(host: Controls): void {
  const server = (id: string, more: Partial<ToolServer>) => ({ ...OWN, id, name: id, builtin: false, ...more });
  const effects = { read_only: false, destructive: true, open_world: false };
  const notes = [
    tool('read_text_file', 'Read text file', { description: 'Reads the whole of a file as text.', tokens: 210 }),
    tool('write_file', 'Write file', { description: 'Writes over what exists.', effects, tokens: 140, rule: 'ask' }),
  ];
  const weather = tool('forecast', 'Forecast', { effects: { ...effects, destructive: false, open_world: true } });
  const reason = 'It ended while it started. Its last lines:\nenv: ‘node’: No such file or directory';
  const key = { name: 'API_KEY', value: null };
  const problems = ['A second tool named “forecast” was left out.'];
  host.toolServers = [
    OWN,
    server('notes', { command: 'npx -y @modelcontextprotocol/server-filesystem "/home/me/My notes"', tools: notes, roots: ['/home/me/My notes'] }),
    server('weather', { command: 'uvx weather', parts: [key], state: { kind: 'idle' }, tools: [weather], problems }),
    server('memory', { command: 'npx -y server-memory', state: { kind: 'failed', reason }, tools: [] }),
    server('tracker', { command: 'https://mcp.example/mcp', state: { kind: 'needs_sign_in' }, tools: [] }),
    server('search', { command: 'https://search.example/mcp', parts: [key], state: { kind: 'off' }, tools: [] }),
  ];
  const read = { server: 'notes', tool: 'read_text_file' };
  const page = { server: 'ponder', tool: 'fetch_page' };
  host.toolGrants = [
    { tool: read, server_name: 'notes', host: null, granted_at: Date.now() },
    { tool: page, server_name: 'Ponder', host: 'en.wikipedia.org', granted_at: Date.now() },
  ];
  host.toolLog = ['npm warn deprecated node-domexception@1.0.0', 'Secure MCP server running on stdio'];
  const time = { name: 'time', command: 'uvx mcp-server-time', parts: [] };
  const github = { name: 'github', command: 'npx github', parts: [{ name: 'GITHUB_TOKEN', value: '${input:token}' }] };
  host.foundServers = [
    { from: 'Claude Desktop', setup: time, problem: null },
    { from: 'VS Code', setup: github, problem: '${input:token} (GitHub token) is not filled in' },
  ];
}
