/** The contract as a script for the app's own page, which `tests/contract.rs` runs there. No part of a built app. */

import { cases } from './cases';
import { tauri } from '../../host/tauri';

/** Runs every case against the real host; what is wrong is said beside its name. */
export async function run(): Promise<{ name: string; problem: string | null }[]> {
  const outcomes = [];
  for (const { name, run } of cases) {
    const problem = await run(tauri).then(
      () => null,
      (reason: unknown) => (reason instanceof Error ? reason.message : JSON.stringify(reason)),
    );
    outcomes.push({ name, problem });
  }
  return outcomes;
}
