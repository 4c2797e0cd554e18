/** The fake host's endpoints. */

import type { Endpoint } from '../../bindings/Endpoint';
import type { EndpointAddress } from '../../bindings/EndpointAddress';
import type { EndpointModels } from '../../bindings/EndpointModels';
import type { Error as HostError } from '../../bindings/Error';
import type { Platform } from '../types';
import type { hubControls } from './hub';
import { ask as question, pause, refusal, storeSettings, type Shared } from './shared';

/** The condition of a server that does not simply answer with a model. */
export type ServerCondition = 'silent' | 'empty' | 'slow' | { key: string };

export const endpointControls = () => ({
  /** Servers in a condition, by their endpoints' names. */
  servers: new Map<string, ServerCondition>(),
});

export function endpoints(host: Shared & ReturnType<typeof endpointControls> & ReturnType<typeof hubControls>) {
  const keys = new Map<string, string>();
  const find = (name: string): Endpoint => {
    const endpoint = host.app.endpoints.find((known) => known.name === name);
    if (!endpoint) throw refusal('model_not_found', `there is no endpoint called ${name}; add it, or choose another model`, { name }, 'endpoint_missing');
    return endpoint;
  };
  const refusalOf = (name: string, server: ServerCondition | undefined): HostError | null => {
    if (server === 'silent') return refusal('network', '127.0.0.1:8080 cannot be reached: connection refused; nothing was lost, try again');
    if (typeof server !== 'object' || keys.get(name) === server.key) return null;
    return refusal('key_refused', `the endpoint ${name} ${keys.has(name) ? 'did not accept its key; store the right one' : 'asks for a key; store one with it'}`, { endpoint: name });
  };
  const ask = async (endpoint: Endpoint): Promise<EndpointModels> => {
    const { leaves_computer } = meaning(endpoint.base_url);
    const server = host.servers.get(endpoint.name);
    if (server === 'slow') await pause(5000);
    const held = isHeldBack(endpoint) ? heldBack(endpoint.name) : null;
    const problem = held ?? (host.net.offline && leaves_computer ? refusal('offline', 'Ponder is offline.') : refusalOf(endpoint.name, server));
    const model = { reference: `endpoint:${endpoint.name}/big`, endpoint: endpoint.name, name: 'big', context: 32_768, leaves_computer };
    const models = problem || server === 'empty' ? [] : [{ ...model, thinking: { kind: 'by_request', default_on: true } as const }];
    return { endpoint, leaves_computer, models, problem };
  };
  return {
    async endpoints() {
      return host.app.endpoints.map((known) => ({ name: known.name, address: meaning(known.base_url), key: known.has_key ? 'keychain' : 'none', key_held_back: isHeldBack(known), personal: known.personal }));
    },
    async endpointAddress(url) {
      return meaning(checked(url));
    },
    async endpointModels() {
      return Promise.all(host.app.endpoints.map(ask));
    },
    async testEndpoint(name) {
      return ask(find(name));
    },
    async addEndpoint(name, url, key, unencrypted_key) {
      const base_url = checked(url);
      if (!/^[\w.-]{1,40}$/.test(name)) throw refusal('bad_request', `\`${name}\` cannot be the name of an endpoint.`, { name }, 'endpoint_name');
      if (host.app.endpoints.some((known) => known.name === name)) throw refusal('bad_request', `There is an endpoint called ${name} already.`, { name }, 'endpoint_name_taken');
      const added: Endpoint = { name, base_url, has_key: key !== null, unencrypted_key, personal: false };
      if (isHeldBack(added)) throw heldBack(name);
      const far = ({ base_url }: Pick<Endpoint, 'base_url'>): boolean => meaning(base_url).leaves_computer;
      if (far(added) && !host.app.endpoints.some(far) && question(host, 'endpoint') === 'no') return false;
      if (key !== null) keys.set(name, key);
      storeSettings(host, { endpoints: [...host.app.endpoints, added] });
      return true;
    },
    async setEndpointKey(name, key, unencrypted) {
      const changed: Endpoint = { ...find(name), has_key: key !== null, unencrypted_key: key !== null && unencrypted };
      if (isHeldBack(changed)) throw heldBack(name);
      if (key === null) keys.delete(name);
      else keys.set(name, key);
      storeSettings(host, { endpoints: host.app.endpoints.map((known) => (known.name === name ? changed : known)) });
    },
    async setEndpointPersonal(name, personal) {
      const changed: Endpoint = { ...find(name), personal };
      storeSettings(host, { endpoints: host.app.endpoints.map((known) => (known.name === name ? changed : known)) });
    },
    async removeEndpoint(name) {
      keys.delete(name);
      storeSettings(host, { endpoints: host.app.endpoints.filter((known) => known.name !== name) });
    },
  } satisfies Partial<Platform>;
}

/** True if its key would be sent unencrypted, which was not allowed. */
function isHeldBack({ base_url, has_key, unencrypted_key }: Endpoint): boolean {
  return has_key && !unencrypted_key && meaning(base_url).unencrypted;
}

function heldBack(endpoint: string): HostError {
  return refusal('bad_request', `The endpoint ${endpoint} is not encrypted, so its key was not sent.`, { endpoint }, 'key_unencrypted');
}

function checked(url: string): string {
  if (!/^https?:\/\/\S+$/.test(url.trim())) throw refusal('bad_request', `\`${url}\` is not the address of an endpoint.`, { url }, 'endpoint_address');
  const base = url.trim().replace(/\/$/, '');
  return new URL(base).pathname === '/' ? `${base}/v1` : base;
}

/** The real host has a rule; the addresses of tests and examples need no more than this. */
function meaning(base_url: string): EndpointAddress {
  const leaves_computer = !/^https?:\/\/(?:127\.0\.0\.1|localhost)(?:[:/]|$)/.test(base_url);
  return { base_url, leaves_computer, unencrypted: leaves_computer && !base_url.startsWith('https:') };
}
