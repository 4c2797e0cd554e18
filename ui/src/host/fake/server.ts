/**
 * The fake host's server for other programs. In a browser `?server=starting|on|busy|taken|key|lost|failed` puts it into that
 * state.
 */

import type { Error as HostError } from '../../bindings/Error';
import type { InboundClient } from '../../bindings/InboundClient';
import type { PortHolder } from '../../bindings/PortHolder';
import type { ServerFigures } from '../../bindings/ServerFigures';
import type { ServerSettings } from '../../bindings/ServerSettings';
import type { ServerState } from '../../bindings/ServerState';
import type { ServerStatus } from '../../bindings/ServerStatus';
import type { Platform } from '../types';
import { ask, refusal, storeSettings, type Shared } from './shared';

const IDLE: ServerFigures = { in_flight: 0, connections: 0, tokens_per_second: 0, requests: 0 };

export const serverControls = () => ({
  /** Ports that other programs hold. */
  taken: new Map<number, PortHolder | null>(),
  /** The clients so far. */
  inbound: [] as readonly InboundClient[],
  figures: IDLE,
  /** The error of a keychain that does not work. */
  keychainProblem: null as HostError | null,
  /** True while the server takes its time to start. */
  starting: false,
  /** The reason why the server cannot be started. */
  serverProblem: null as HostError | null,
  /** True if the key comes from the environment. */
  keyOfEnvironment: false,
});

export function server(host: Shared & ReturnType<typeof serverControls>) {
  let stored: string | null = null;
  const stateOf = ({ on, port, network, key_made_at }: ServerSettings): ServerState => {
    if (!on) return { kind: 'off' };
    if (host.starting) return { kind: 'starting' };
    if (host.serverProblem) return { kind: 'failed', error: host.serverProblem };
    if (!host.keyOfEnvironment && (network || key_made_at !== null) && stored === null) return { kind: 'key_needed' };
    const by = host.taken.get(port);
    return by === undefined ? { kind: 'on' } : { kind: 'port_taken', by };
  };
  const status = (): ServerStatus => {
    const settings = host.app.server;
    const state = stateOf(settings);
    const on = state.kind === 'on';
    return {
      settings,
      state,
      address: `http://127.0.0.1:${settings.port}`,
      network_address: settings.network ? `http://192.168.1.7:${settings.port}` : null,
      key: host.keyOfEnvironment ? 'environment' : settings.key_made_at === null ? 'none' : 'keychain',
      figures: on ? host.figures : IDLE,
      clients: on ? [...host.inbound] : [],
    };
  };
  const store = (change: Partial<ServerSettings>): ServerStatus => {
    storeSettings(host, { server: { ...host.app.server, ...change } });
    return status();
  };
  /** Makes a key, and returns when. */
  const makeKey = (): number => {
    if (host.keychainProblem) throw host.keychainProblem;
    const key_made_at = (host.app.server.key_made_at ?? 0) + 1;
    stored = `ponder-${String(key_made_at).repeat(8)}`;
    return key_made_at;
  };
  const calls = {
    async serverStatus() {
      return status();
    },
    async setServer(on, port, network) {
      if (port === 0) throw refusal('bad_request', 'a port is a number from 1 to 65535');
      const before = host.app.server;
      const keyless = before.key_made_at === null && !host.keyOfEnvironment;
      const key_made_at = on && !before.on && keyless && !host.keychainProblem ? makeKey() : before.key_made_at;
      const opens = on && network && !(before.on && before.network);
      return store({ on, port, network: network && (!opens || ask(host, 'network') !== 'no'), key_made_at });
    },
    async newServerKey() {
      return store({ key_made_at: makeKey() });
    },
    async forgetServerKey() {
      stored = null;
      return store({ key_made_at: null });
    },
    async serverKey() {
      return stored;
    },
    async allowServerCollections(collections) {
      return store({ collections });
    },
    async servedModels() {
      return host.local.filter((model) => model.problem === null).map((model) => model.reference);
    },
    async clientSetups(model, withKey) {
      const { address, key: source } = status();
      const key = source === 'none' ? 'local' : withKey ? stored : '••••••••';
      const programs = ['Claude Code', 'OpenCode', 'Zed', 'Continue', 'aider', 'LangChain', 'OpenAI SDK for Python', 'OpenAI SDK for JavaScript', 'Anthropic SDK for Python'];
      const codex = { name: 'Codex', file: '~/.codex/config.toml', language: 'toml', text: `model = "${model}"\nmodel_provider = "ponder"\n\n[model_providers.ponder]\nbase_url = "${address}/v1"\nexperimental_bearer_token = "${key}"` };
      return [codex, ...programs.map((name) => ({ name, file: null, language: 'bash', text: `${name}: ${address} ${model} ${key}` }))];
    },
  } satisfies Partial<Platform>;
  return {
    ...calls,
    /** Loses the key, as a keychain does that was emptied. */
    loseServerKey(): void {
      stored = null;
    },
  };
}

/** Puts the server into the state that an address asks for. */
export async function fillServer(host: ReturnType<typeof serverControls> & Pick<ReturnType<typeof server>, 'loseServerKey' | 'newServerKey' | 'forgetServerKey' | 'setServer'>, asked: string | null): Promise<void> {
  if (asked === null) return;
  const minutes = (count: number): number => Date.now() - count * 60_000;
  if (asked === 'busy') {
    host.figures = { in_flight: 2, connections: 5, tokens_per_second: 41.6, requests: 214 };
    host.inbound = [
      { name: 'Claude Code', requests: 182, prompt_tokens: 2_841_210, completion_tokens: 31_204, last_seen_at: minutes(0) },
      { name: 'OpenAI SDK for Python', requests: 31, prompt_tokens: 12_080, completion_tokens: 8_411, last_seen_at: minutes(7) },
      { name: 'curl', requests: 1, prompt_tokens: 24, completion_tokens: 12, last_seen_at: minutes(180) },
    ];
    await host.newServerKey();
  }
  if (asked === 'taken') host.taken.set(8231, { name: 'python3', process: 4711 });
  if (asked === 'lost') {
    await host.newServerKey();
    host.loseServerKey();
  }
  if (asked === 'failed') host.serverProblem = { code: 'bad_request', reason: 'server_address', arguments: { address: '127.0.0.1:80' }, message: '127.0.0.1:80 cannot be listened on: permission denied' };
  host.starting = asked === 'starting';
  await host.setServer(true, 8231, asked === 'key' || asked === 'busy');
  if (asked === 'key') await host.forgetServerKey();
}
