/** The part of the in-memory host that is about servers of models. */

import type { Endpoint } from '../bindings/Endpoint';
import type { EndpointAddress } from '../bindings/EndpointAddress';
import type { EndpointInfo } from '../bindings/EndpointInfo';
import type { EndpointModels } from '../bindings/EndpointModels';
import type { Error as HostError } from '../bindings/Error';
import { FakeHub } from './fakeHub';

/** What a server of this host is like, if it is not one that answers with a model. */
export type ServerCondition = 'silent' | 'empty' | 'slow' | { key: string };

/** The host of everything about endpoints. */
export class FakeEndpoints extends FakeHub {
  /** Servers that are not as the others, by their endpoints' names. */
  readonly servers = new Map<string, ServerCondition>();
  readonly #keys = new Map<string, string>();

  async endpoints(): Promise<EndpointInfo[]> {
    return this.app.endpoints.map(({ name, base_url, has_key }) => ({ name, address: meaning(base_url), key: has_key ? 'keychain' : 'none' }));
  }

  async endpointAddress(url: string): Promise<EndpointAddress> {
    return meaning(checked(url));
  }

  async endpointModels(): Promise<EndpointModels[]> {
    return Promise.all(this.app.endpoints.map(async (endpoint) => this.#ask(endpoint)));
  }

  async testEndpoint(name: string): Promise<EndpointModels> {
    return this.#ask(this.#find(name));
  }

  async addEndpoint(name: string, url: string, key: string | null): Promise<void> {
    const base_url = checked(url);
    if (!/^[\w.-]{1,40}$/.test(name)) throw { code: 'bad_request', message: `\`${name}\` cannot be the name of an endpoint.` };
    if (this.app.endpoints.some((known) => known.name === name)) throw { code: 'bad_request', message: `There is an endpoint called ${name} already.` };
    if (key !== null) this.#keys.set(name, key);
    await this.changeSettings({ endpoints: [...this.app.endpoints, { name, base_url, has_key: key !== null }] });
  }

  async setEndpointKey(name: string, key: string | null): Promise<void> {
    this.#find(name);
    if (key === null) this.#keys.delete(name);
    else this.#keys.set(name, key);
    await this.changeSettings({ endpoints: this.app.endpoints.map((known) => (known.name === name ? { ...known, has_key: key !== null } : known)) });
  }

  async removeEndpoint(name: string): Promise<void> {
    this.#keys.delete(name);
    await this.changeSettings({ endpoints: this.app.endpoints.filter((known) => known.name !== name) });
  }

  #find(name: string): Endpoint {
    const endpoint = this.app.endpoints.find((known) => known.name === name);
    if (!endpoint) throw { code: 'model_not_found', message: `there is no endpoint called ${name}; add it, or choose another model` };
    return endpoint;
  }

  async #ask(endpoint: Endpoint): Promise<EndpointModels> {
    const { leaves_computer } = meaning(endpoint.base_url);
    const server = this.servers.get(endpoint.name);
    if (server === 'slow') await new Promise((done) => setTimeout(done, 5000));
    const problem = this.net.offline && leaves_computer ? { code: 'offline', message: 'Ponder is offline.' } as const : this.#refusal(endpoint.name, server);
    const model = { reference: `endpoint:${endpoint.name}/big`, endpoint: endpoint.name, name: 'big', context: 32_768, leaves_computer };
    const models = problem || server === 'empty' ? [] : [{ ...model, thinking: { kind: 'by_request', default_on: true } as const }];
    return { endpoint, leaves_computer, models, problem };
  }

  #refusal(name: string, server: ServerCondition | undefined): HostError | null {
    if (server === 'silent') return { code: 'network', message: '127.0.0.1:8080 cannot be reached: connection refused; nothing was lost, try again' };
    if (typeof server !== 'object' || this.#keys.get(name) === server.key) return null;
    return { code: 'key_refused', message: `the endpoint ${name} ${this.#keys.has(name) ? 'did not accept its key; store the right one' : 'asks for a key; store one with it'}` };
  }
}

function checked(url: string): string {
  if (!/^https?:\/\/\S+$/.test(url.trim())) throw { code: 'bad_request', message: `\`${url}\` is not the address of an endpoint.` };
  const base = url.trim().replace(/\/$/, '');
  return new URL(base).pathname === '/' ? `${base}/v1` : base;
}

/** The real host has a rule; the addresses of tests and examples need no more than this. */
function meaning(base_url: string): EndpointAddress {
  const leaves_computer = !/^https?:\/\/(?:127\.0\.0\.1|localhost)(?:[:/]|$)/.test(base_url);
  return { base_url, leaves_computer, unencrypted: leaves_computer && !base_url.startsWith('https:') };
}
