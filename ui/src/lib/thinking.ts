/** What the composer offers about a model's reasoning. */

import type { Thinking } from '../bindings/Thinking';
import type { ThinkingControl } from '../bindings/ThinkingControl';

/** An effort level of a model that has levels. */
export type Level = 'low' | 'medium' | 'high';

/** What is offered, and where it stands. `level: null` leaves it to the model. */
export type ThinkingOffer =
  | { kind: 'switch'; on: boolean }
  | { kind: 'levels'; level: Level | null }
  | { kind: 'always' }
  | { kind: 'never' };

/** What the model's template allows, with the chat's setting applied to it. */
export function thinkingOffer(control: ThinkingControl, setting: Thinking | null): ThinkingOffer {
  switch (control.kind) {
    case 'switch':
      return { kind: 'switch', on: setting === null ? control.default_on : setting !== 'off' };
    case 'levels':
      return { kind: 'levels', level: setting === 'low' || setting === 'medium' || setting === 'high' ? setting : null };
    case 'always':
      return { kind: 'always' };
    case 'never':
      return { kind: 'never' };
  }
}
