/**
 * The time that a person has to see something before it can be agreed to, so that no key or click that was meant for
 * something else agrees.
 */

/** In milliseconds. */
const LOOK = 500;

export class FirstLook {
  ready = $state(false);
  /** True if the key or the pointer went down before that. */
  #early = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Begins the time anew: the window may have come to the front under a pointer that was about to click. */
  readonly wait = (): void => {
    this.ready = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.ready = true), LOOK);
  };

  stop(): void {
    clearTimeout(this.#timer);
  }

  readonly pointerdown = (): void => void (this.#early = !this.ready);

  readonly keydown = (event: KeyboardEvent): void => {
    // A key that is held down has been pressed for something else.
    if (event.repeat) event.preventDefault();
    else this.#early = !this.ready;
  };

  /** True if a click that came now was meant. */
  counts(): boolean {
    const counts = this.ready && !this.#early;
    this.#early = false;
    return counts;
  }
}
