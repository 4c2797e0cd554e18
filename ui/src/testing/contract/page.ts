/** The contract as a script for the app's own pages, which `tests/contract.rs` runs there. No part of a built app. */

import type { WindowName } from '../../bindings/WindowName';
import { cases } from './cases';
import { COMMAND_WINDOWS, type Commands } from '../../host/generated';
import { tauri } from '../../host/tauri';

const reasonOf = (reason: unknown): string => (reason instanceof Error ? reason.message : JSON.stringify(reason));

/** Runs every case of this window against the real host; what is wrong is said beside its name. */
export async function run(window: WindowName): Promise<{ name: string; problem: string | null }[]> {
  const outcomes = [];
  for (const { name, run } of cases.filter(({ window: own = 'chat' }) => own === window)) {
    const problem = await run(tauri).then(() => null, reasonOf);
    outcomes.push({ name, problem });
  }
  return outcomes;
}

/** Calls every command that this window's page may not call; those that are not refused for that reason alone. */
export async function reachable(window: WindowName): Promise<string[]> {
  const forbidden = (Object.keys(COMMAND_WINDOWS) as (keyof Commands)[]).filter(
    (command) => !COMMAND_WINDOWS[command].includes(window),
  );
  const reached = [];
  for (const command of forbidden) {
    // Arguments that mean nothing: a command that is reached all the same does no harm.
    const call = tauri[command] as (...args: unknown[]) => Promise<unknown>;
    const outcome = await call(new Uint8Array(), '', '').then(() => 'it was done', reasonOf);
    if (!outcome.includes('not allowed')) reached.push(`${command}: ${outcome}`);
  }
  return reached;
}
