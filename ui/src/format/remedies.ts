/** The next step after an error, if a window can offer it. Pure. */

import type { Error as HostError } from '../bindings/Error';
import type { WindowPage } from '../bindings/WindowPage';
import type { Key } from '../locales';

/**
 * A step as a button: a page of a window. Never an address, because an imported chat can hold an error with any
 * arguments.
 */
export interface Remedy {
  readonly labelKey: Extract<Key, `remedy.${string}`>;
  readonly page: WindowPage;
}

const TO_LOCAL: Remedy = { labelKey: 'remedy.repair', page: 'local' };
const TO_DISCOVER: Remedy = { labelKey: 'remedy.otherModel', page: 'discover' };
const TO_LOADED: Remedy = { labelKey: 'remedy.eject', page: 'models' };
const TO_DEVICE: Remedy = { labelKey: 'remedy.device', page: 'models' };
const TO_ACCESS: Remedy = { labelKey: 'remedy.access', page: 'discover' };
const TO_TOKEN: Remedy = { labelKey: 'remedy.token', page: 'models' };
const TO_CONNECTIONS: Remedy = { labelKey: 'remedy.connections', page: 'connections' };
const TO_SERVER: Remedy = { labelKey: 'remedy.server', page: 'server' };
const TO_NETWORK: Remedy = { labelKey: 'remedy.network', page: 'privacy' };
const TO_STORAGE: Remedy = { labelKey: 'remedy.storage', page: 'privacy' };

const BY_REASON: { readonly [R in NonNullable<HostError['reason']>]?: Remedy } = {
  memory_beside_loaded: TO_LOADED,
  card_memory: TO_DEVICE,
  endpoint_missing: TO_CONNECTIONS,
  endpoint_model_missing: TO_CONNECTIONS,
  endpoint_unreadable: TO_CONNECTIONS,
  key_unencrypted: TO_CONNECTIONS,
  access_declined: TO_TOKEN,
  not_on_hugging_face: TO_TOKEN,
  server_needs_key: TO_SERVER,
  port_taken: TO_SERVER,
  port_taken_unknown: TO_SERVER,
};

const BY_CODE: { readonly [C in HostError['code']]?: Remedy } = {
  model_broken: TO_LOCAL,
  model_not_found: TO_DISCOVER,
  model_unsupported: TO_DISCOVER,
  memory_short: TO_DISCOVER,
  gated: TO_ACCESS,
  key_refused: TO_CONNECTIONS,
  offline: TO_NETWORK,
  disk_full: TO_STORAGE,
};

/** The remedy of an error; `null` if there is none but trying again. */
export function remedyOf({ code, reason }: HostError): Remedy | null {
  return (reason && BY_REASON[reason]) ?? BY_CODE[code] ?? null;
}
