/** The composer's choices about a model's reasoning. */

import type { Thinking } from '../../bindings/Thinking';
import type { ThinkingControl } from '../../bindings/ThinkingControl';

/** Sizes of a thought that are offered, in tokens. */
const BUDGETS = [256, 1024, 4096];

/** The largest number that can be set. */
export const LARGEST_BUDGET = 1_000_000;

/** The sizes that matter for a model with this context. */
export function budgetsFor(context: number | null): number[] {
  return BUDGETS.filter((tokens) => context === null || tokens < context);
}

/** A number of one's own, such as `1,500`; `null` if it cannot be set. */
export function budgetOf(typed: string): number | null {
  const digits = typed.replace(/[\s,._’']/g, '');
  if (!/^\d{1,7}$/.test(digits)) return null;
  const tokens = Number(digits);
  return tokens >= 1 && tokens <= LARGEST_BUDGET ? tokens : null;
}

/** True if a budget has an effect: not with thinking off. */
export function canTakeBudget(offer: ThinkingOffer): boolean {
  switch (offer.kind) {
    case 'switch':
      return offer.on;
    case 'levels':
      return offer.level !== 'off';
    case 'always':
    case 'by_request':
      return true;
    case 'never':
      return false;
  }
}

/** The settings of a model's reasoning that differ from this one. */
export function otherThinking(control: ThinkingControl | null, setting: Thinking | null): Thinking[] {
  if (control?.kind === 'switch') {
    const on = setting === null ? control.default_on : setting !== 'off';
    return [on ? 'off' : 'on'];
  }
  if (control?.kind !== 'levels') return [];
  const levels = control.levels.filter((level) => level !== setting);
  return control.off && setting !== 'off' ? [...levels, 'off'] : levels;
}

/** An effort level of a model that has levels, or none at all. */
export type Level = 'off' | 'low' | 'medium' | 'high';

/** The choices, and the current one. `level: null` leaves it to the model. */
export type ThinkingOffer =
  | { kind: 'switch'; on: boolean }
  | { kind: 'levels'; level: Level | null; levels: Level[] }
  | { kind: 'always' }
  | { kind: 'by_request'; on: boolean }
  | { kind: 'never' };

/** The choices of the model's template, with the chat's setting applied. */
export function thinkingOffer(control: ThinkingControl, setting: Thinking | null): ThinkingOffer {
  switch (control.kind) {
    case 'switch':
      return { kind: 'switch', on: setting === null ? control.default_on : setting !== 'off' };
    case 'levels': {
      const levels = (['off', 'low', 'medium', 'high'] as const).filter((level) =>
        level === 'off' ? control.off : control.levels.includes(level),
      );
      return { kind: 'levels', level: levels.find((level) => level === setting) ?? null, levels };
    }
    case 'always':
      return { kind: 'always' };
    case 'by_request':
      return { kind: 'by_request', on: control.default_on };
    case 'never':
      return { kind: 'never' };
  }
}
