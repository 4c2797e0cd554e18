/**
 * The part of the in-memory host that is about the server for other programs. In a browser `?server=starting|on|busy|taken|key|lost|failed`
 * puts it into that state.
 */

import type { ClientSetup } from '../bindings/ClientSetup';
import type { Error as HostError } from '../bindings/Error';
import type { InboundClient } from '../bindings/InboundClient';
import type { PortHolder } from '../bindings/PortHolder';
import type { ServerFigures } from '../bindings/ServerFigures';
import type { ServerSettings } from '../bindings/ServerSettings';
import type { ServerState } from '../bindings/ServerState';
import type { ServerStatus } from '../bindings/ServerStatus';
import type { Settings } from '../bindings/Settings';
import { FakeEndpoints } from './fakeEndpoints';

const IDLE: ServerFigures = { in_flight: 0, connections: 0, tokens_per_second: 0, requests: 0 };

/** The host of everything about the server. */
export class FakeServer extends FakeEndpoints {
  /** Ports that other programs have. */
  readonly taken = new Map<number, PortHolder | null>();
  /** Who has asked. */
  inbound: readonly InboundClient[] = [];
  figures: ServerFigures = IDLE;
  /** What the keychain answers with, if it does not work. */
  keychainProblem: HostError | null = null;
  /** Whether the server takes its time to start. */
  starting = false;
  /** Why the server cannot be started. */
  serverProblem: HostError | null = null;
  /** Whether the key comes from the environment. */
  keyOfEnvironment = false;
  #serverKey: string | null = null;

  override async changeSettings(change: Partial<Settings>): Promise<Settings> {
    if ('server' in change) throw { code: 'bad_request', message: 'server cannot be set like this; there are commands for it' };
    return super.changeSettings(change);
  }

  async serverStatus(): Promise<ServerStatus> {
    const settings = this.app.server;
    const state = this.#state(settings);
    const on = state.kind === 'on';
    return {
      settings,
      state,
      address: `http://127.0.0.1:${settings.port}`,
      network_address: settings.network ? `http://192.168.1.7:${settings.port}` : null,
      key: this.keyOfEnvironment ? 'environment' : settings.key_made_at === null ? 'none' : 'keychain',
      figures: on ? this.figures : IDLE,
      clients: on ? [...this.inbound] : [],
    };
  }

  async setServer(on: boolean, port: number, network: boolean): Promise<ServerStatus> {
    if (port === 0) throw { code: 'bad_request', message: 'a port is a number from 1 to 65535' };
    return this.#set({ ...this.app.server, on, port, network });
  }

  async newServerKey(): Promise<ServerStatus> {
    if (this.keychainProblem) throw this.keychainProblem;
    const made = (this.app.server.key_made_at ?? 0) + 1;
    this.#serverKey = `ponder-${String(made).repeat(8)}`;
    return this.#set({ ...this.app.server, key_made_at: made });
  }

  async forgetServerKey(): Promise<ServerStatus> {
    this.#serverKey = null;
    return this.#set({ ...this.app.server, key_made_at: null });
  }

  async serverKey(): Promise<string | null> {
    return this.#serverKey;
  }

  /** Loses the key, as a keychain does that was emptied. */
  loseServerKey(): void {
    this.#serverKey = null;
  }

  async servedModels(): Promise<string[]> {
    return this.local.filter((model) => model.problem === null).map((model) => model.reference);
  }

  async clientSetups(model: string, withKey: boolean): Promise<ClientSetup[]> {
    const { address, key: source } = await this.serverStatus();
    const key = source === 'none' ? 'local' : withKey ? this.#serverKey : '••••••••';
    const programs = ['Claude Code', 'OpenCode', 'Zed', 'Continue', 'aider', 'LangChain', 'OpenAI SDK for Python', 'OpenAI SDK for JavaScript', 'Anthropic SDK for Python'];
    const codex = { name: 'Codex', file: '~/.codex/config.toml', language: 'toml', text: `model = "${model}"\nmodel_provider = "ponder"\n\n[model_providers.ponder]\nbase_url = "${address}/v1"\nexperimental_bearer_token = "${key}"` };
    return [codex, ...programs.map((name) => ({ name, file: null, language: 'bash', text: `${name}: ${address} ${model} ${key}` }))];
  }

  async #set(server: ServerSettings): Promise<ServerStatus> {
    await super.changeSettings({ server });
    return this.serverStatus();
  }

  #state({ on, port, network, key_made_at }: ServerSettings): ServerState {
    if (!on) return { kind: 'off' };
    if (this.starting) return { kind: 'starting' };
    if (this.serverProblem) return { kind: 'failed', error: this.serverProblem };
    if (!this.keyOfEnvironment && (network || key_made_at !== null) && this.#serverKey === null) return { kind: 'key_needed' };
    const by = this.taken.get(port);
    return by === undefined ? { kind: 'on' } : { kind: 'port_taken', by };
  }
}

/** A server in the state that an address asks for. */
export async function fillServer(host: FakeServer, asked: string | null): Promise<void> {
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
  if (asked === 'failed') host.serverProblem = { code: 'bad_request', message: '127.0.0.1:80 cannot be listened on: permission denied' };
  host.starting = asked === 'starting';
  await host.setServer(true, 8231, asked === 'key' || asked === 'busy');
}
