/** Servers of tools on the page of the settings, as its tests open and read them. */

import type { ToolServer } from '../bindings/ToolServer';
import { tool } from '../host/fake/toolServers';
import { all, click, host, open, pass, the } from './window';

/** A server that runs. */
export const FILES: ToolServer = {
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

/** Opens the page with these servers after Ponder's own. */
export async function openTools(...servers: ToolServer[]): Promise<void> {
  host.toolServers = [...host.toolServers, ...servers];
  await open('settings');
  await click('tab-tools');
  await pass(0);
}

/** The row of a server. */
export function row(id: string): HTMLElement {
  const found = all('tool-server').find(({ dataset }) => dataset['id'] === id);
  if (!found) throw new Error(`no server ${id} is listed`);
  return found;
}

/** A part of a server's row. */
export function part(id: string, name: string): HTMLElement | null {
  return row(id).querySelector<HTMLElement>(`[data-testid="${name}"]`);
}

/** The text of an element, in one line. */
export const said = (element: HTMLElement | null): string | undefined => element?.textContent?.replace(/\s+/g, ' ').trim();

/** Writes into a field of several lines. */
export async function fill(name: string, text: string): Promise<void> {
  const area = the(name);
  if (!(area instanceof HTMLTextAreaElement)) throw new Error(`${name} is no text area`);
  area.value = text;
  area.dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(0);
}
