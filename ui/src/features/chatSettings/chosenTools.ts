/** The tools that a chat's settings name: chosen alone, or with all others of their server. */

import type { ToolRef } from '../../bindings/ToolRef';
import type { ToolServer } from '../../bindings/ToolServer';

function isSame(one: ToolRef, other: ToolRef): boolean {
  return one.server === other.server && one.tool === other.tool;
}

/** All tools of a server. */
function toolsOf({ id, tools }: ToolServer): ToolRef[] {
  return tools.map(({ name }) => ({ server: id, tool: name }));
}

/** The tools of a server that are not switched off in the settings. */
export function usableTools(server: ToolServer): ToolRef[] {
  return toolsOf({ ...server, tools: server.tools.filter(({ on }) => on !== false) });
}

export function isChosen(chosen: readonly ToolRef[], tool: ToolRef): boolean {
  return chosen.some((other) => isSame(other, tool));
}

/** The choice with these tools on or off. */
export function withTools(chosen: readonly ToolRef[], tools: readonly ToolRef[], on: boolean): ToolRef[] {
  const others = chosen.filter((tool) => !isChosen(tools, tool));
  return on ? [...others, ...tools] : others;
}

/** The chosen tools that no server has any more. */
export function goneTools(chosen: readonly ToolRef[], servers: readonly ToolServer[]): ToolRef[] {
  const known = servers.flatMap(toolsOf);
  return chosen.filter((tool) => !isChosen(known, tool));
}

/** The tokens that the declarations of the chosen tools take in a prompt, about. */
export function tokensOf(chosen: readonly ToolRef[], servers: readonly ToolServer[]): number {
  const all = servers.flatMap(({ id, tools }) => tools.map(({ name, tokens }) => ({ server: id, tool: name, tokens })));
  return all.filter((tool) => isChosen(chosen, tool)).reduce((sum, { tokens }) => sum + tokens, 0);
}
