/** The rules of servers of tools and of calls that run. */

import type { ToolServer } from '../../bindings/ToolServer';
import type { Platform } from '../../host/types';
import { type Case, holds, MISSING, plain, refused, same } from './checks';

async function serverOf(host: Platform, id: string): Promise<ToolServer> {
  const { servers } = await host.tools();
  const found = servers.find((server) => server.id === id);
  if (!found) throw new Error(`the server ${id} is not listed`);
  return found;
}

export const toolCases: readonly Case[] = [
  {
    name: 'tools of a chat that was told of none did not change, and servers that do not exist give nothing',
    async run(host) {
      const { summary } = await host.createChat(plain);
      same(await host.toolsChange(summary.id), null, 'the change of its tools');
      await host.useNewTools(summary.id);
      same(await host.toolsChange(summary.id), null, 'the change of its tools, once the new ones are used');
      await refused('not_found', () => host.toolsChange(MISSING));
      await refused('not_found', () => host.useNewTools(MISSING));
      same(await host.serverResources(), [], 'resources without servers');
      same(await host.serverPrompts(true), { prompts: [], more: false }, 'prompts without servers');
      await refused('not_found', () => host.attachResource(MISSING, 'memo://a', 'a', summary.id));
      await refused('not_found', () => host.serverPrompt(MISSING, 'a', []));
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'no call runs before one was made',
    async run(host) {
      same(await host.runningCalls(), [], 'the calls that run');
    },
  },
  {
    name: 'a server of tools that is changed is off until its command was seen, and keeps its id',
    window: 'settings',
    async run(host) {
      const parts = [{ name: 'MODE', value: 'slow' }];
      const id = await host.addToolServer({ name: 'contract', command: 'sleep 0', parts });
      same((await serverOf(host, id)).state.kind, 'off', 'the state of a new server');
      same((await serverOf(host, id)).roots, [], 'the folders of a new server');
      same(await host.switchToolServer(id, true), true, 'whether it was switched on');
      await host.changeToolServer(id, { name: 'contract 2', command: 'sleep 0', parts });
      let server = await serverOf(host, id);
      same([server.name, server.command], ['contract 2', 'sleep 0'], 'the renamed server');
      holds(server.state.kind !== 'off', 'another name leaves a server on');
      await host.changeToolServer(id, { name: 'contract 2', command: 'sleep 1', parts });
      server = await serverOf(host, id);
      same([server.command, server.state.kind, server.parts], ['sleep 1', 'off', parts], 'the changed server');
      await refused('bad_request', () => host.changeToolServer(id, { name: '', command: '', parts: [] }));
      await refused('not_found', () => host.changeToolServer('no-such-server', { name: '', command: 'true', parts: [] }));
      same((await serverOf(host, id)).command, 'sleep 1', 'the server after refused changes');
      await host.removeToolRoot(id, '/no/such/folder');
      await refused('not_found', () => host.removeToolRoot('no-such-server', '/'));
      await host.removeToolServer(id);
    },
  },
];
