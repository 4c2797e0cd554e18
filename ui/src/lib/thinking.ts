/** What the composer offers about a model's reasoning. */

import type { Thinking } from '../bindings/Thinking';
import type { ThinkingControl } from '../bindings/ThinkingControl';

/** An effort level of a model that has levels, or none at all. */
export type Level = 'off' | 'low' | 'medium' | 'high';

/** What is offered, and where it stands. `level: null` leaves it to the model. */
export type ThinkingOffer =
  | { kind: 'switch'; on: boolean }
  | { kind: 'levels'; level: Level | null; levels: Level[] }
  | { kind: 'always' }
  | { kind: 'by_request'; on: boolean }
  | { kind: 'never' };

/** What the model's template allows, with the chat's setting applied to it. */
export function thinkingOffer(control: ThinkingControl, setting: Thinking | null): ThinkingOffer {
  switch (control.kind) {
    case 'switch':
      return { kind: 'switch', on: setting === null ? control.default_on : setting !== 'off' };
    case 'levels': {
      const levels = (['off', 'low', 'medium', 'high'] as const).filter((level) => (level === 'off' ? control.off : control.levels.includes(level)));
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
