/** The last actions that the user can undo, by the button of a message or by the key. */

import { createContext } from 'svelte';

import { t } from '../locales';
import type { Toasts } from '../design/toasts.svelte';

/** The number of steps that can be undone. */
const DEPTH = 50;

interface Step {
  run: () => Promise<void> | void;
  /** The message that offers it. */
  toast: number | null;
  /** The name of what was done, if it can be taken back in other ways, too. */
  cause: string | null;
  /** The number of edits, at the time of the action, in the field that gets the focus. */
  typed: number;
}

export class Undo {
  #steps: Step[] = [];
  #typed = 0;

  constructor(private readonly toasts: Toasts) {}

  /** Remembers how something is taken back that is seen without a message. */
  push(run: Step['run']): void {
    this.#steps = [...this.#steps.slice(1 - DEPTH), { run, toast: null, cause: null, typed: this.#typed }];
  }

  /**
   * Reports an action and offers to undo it. `cause` names what was done: its report replaces the one before. With
   * `final` it can be undone for as long as the report is shown; then `final` is called.
   */
  offer(text: string, run: Step['run'], cause: string, final: (() => void) | null = null): void {
    this.toasts.settle(cause);
    const step: Step = { run, toast: null, cause, typed: this.#typed };
    const gone = (): void => {
      if (!this.#steps.includes(step)) return;
      this.#steps = this.#steps.filter((other) => other !== step);
      final?.();
    };
    const action = { label: t('common.undo'), run: () => void this.#take(step) };
    step.toast = this.toasts.say(text, action, { cause, gone: final && gone });
    this.#steps = [...this.#steps.slice(1 - DEPTH), step];
  }

  /** Forgets a thing that was taken back in another way: there is nothing to report and to undo. */
  settle(cause: string): void {
    if (this.#steps.some((step) => step.cause === cause))
      this.#steps = this.#steps.filter((step) => step.cause !== cause);
    this.toasts.settle(cause);
  }

  /** Something was written in a field; if that is where the focus comes to rest, the key takes back letters there. */
  wrote(field: EventTarget | null): void {
    if (field instanceof HTMLElement && field.hasAttribute('data-focus-home')) this.#typed += 1;
  }

  /** True if the last action came after the last input in that field. */
  get isNewer(): boolean {
    return this.#steps.at(-1)?.typed === this.#typed;
  }

  /** Takes back the last thing; says so if there is none. */
  async undo(): Promise<void> {
    const step = this.#steps.at(-1);
    if (!step) return void this.toasts.say(t('undo.nothing'));
    await this.#take(step);
  }

  async #take(step: Step): Promise<void> {
    if (!this.#steps.includes(step)) return;
    this.#steps = this.#steps.filter((other) => other !== step);
    if (step.toast !== null) this.toasts.dismiss(step.toast);
    await step.run();
  }
}

/** The actions that this window can undo. */
export const [useUndo, provideUndo] = createContext<Undo>();
