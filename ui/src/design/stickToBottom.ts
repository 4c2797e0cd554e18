/**
 * Keeps a scroll area at its end while the user is there. The one owner of its scroll position.
 *
 * The mechanism uses positions, no timers. Scrolling up releases the end; scrolling back to it holds it again. While
 * held, the view follows content that grows. If the content became shorter (a thought that folds), the position went up
 * but is at the very end, or the content's height changed since the last event; that distinguishes it from a user's
 * scrolling. A wheel that turns up releases at once, before any position changes: otherwise a fast stream would pull
 * the view back within the same frame. So do dragging the scroll bar and moving the view by script.
 */

/** The event that scrolling away from the end on the user's behalf sends to the area. */
const LEAVES = 'leaves-end';

/** The distance from the end that counts as there when the user scrolls down. */
const NEAR = 24;

/** The part of an element that is used; a real one satisfies it. */
export interface Scrollable {
  scrollTop: number;
  readonly scrollHeight: number;
  readonly clientHeight: number;
}

/** Decides whether the end is followed. */
export class StickToBottom {
  #held = true;
  #top = 0;
  #height = 0;
  #dragged = false;

  constructor(
    private readonly area: Scrollable,
    /** Told when following begins or ends. */
    private readonly changed: (held: boolean) => void = () => {},
  ) {}

  /** True while the end is followed. */
  get held(): boolean {
    return this.#held;
  }

  /** Called for every change of the position. */
  scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.area;
    const distance = scrollHeight - clientHeight - scrollTop;
    const clamped = this.#held && !this.#dragged && scrollHeight !== this.#height;
    if (scrollTop < this.#top - 0.5) this.#hold(distance <= 1 || clamped);
    else if (distance < NEAR) this.#hold(true);
    this.#top = scrollTop;
    this.#height = scrollHeight;
  }

  /** The bar of the area is pressed, or no longer. */
  drag(pressed: boolean): void {
    this.#dragged = pressed;
  }

  /** The user asked to go up. */
  letGo(): void {
    if (this.area.scrollHeight > this.area.clientHeight) this.#hold(false);
  }

  /** The view moves elsewhere. */
  release(): void {
    this.#hold(false);
  }

  /** The content or the area changed its size. */
  resized(): void {
    if (this.#held) this.#toEnd();
    else this.#height = this.area.scrollHeight;
  }

  /** Goes to the end and follows it. */
  hold(): void {
    this.#hold(true);
    this.#toEnd();
  }

  #toEnd(): void {
    this.area.scrollTop = this.area.scrollHeight;
    this.#top = this.area.scrollTop;
    this.#height = this.area.scrollHeight;
  }

  #hold(held: boolean): void {
    if (held === this.#held) return;
    this.#held = held;
    this.changed(held);
  }
}

/** Says that an area is scrolled to something else than its end. */
export function leaveEnd(area: HTMLElement): void {
  area.dispatchEvent(new Event(LEAVES));
}

/** Connects a scroll area and its content; the returned function removes the listeners. */
export function follow(area: HTMLElement, content: HTMLElement, stick: StickToBottom): () => void {
  const scrolled = () => stick.scrolled();
  const wheel = (event: WheelEvent) => {
    if (event.deltaY < 0) stick.letGo();
  };
  const key = (event: KeyboardEvent) => {
    if (
      event.key === 'PageUp' ||
      event.key === 'Home' ||
      event.key === 'ArrowUp' ||
      (event.key === ' ' && event.shiftKey)
    )
      stick.letGo();
  };
  const press = () => stick.drag(true);
  const lift = () => stick.drag(false);
  const leave = () => stick.release();
  area.addEventListener('scroll', scrolled, { passive: true });
  area.addEventListener('pointerdown', press);
  window.addEventListener('pointerup', lift);
  window.addEventListener('pointercancel', lift);
  area.addEventListener(LEAVES, leave);
  area.addEventListener('wheel', wheel, { passive: true });
  area.addEventListener('keydown', key);
  const observer = new ResizeObserver(() => stick.resized());
  observer.observe(area);
  observer.observe(content);
  return () => {
    area.removeEventListener('scroll', scrolled);
    area.removeEventListener('pointerdown', press);
    window.removeEventListener('pointerup', lift);
    window.removeEventListener('pointercancel', lift);
    area.removeEventListener(LEAVES, leave);
    area.removeEventListener('wheel', wheel);
    area.removeEventListener('keydown', key);
    observer.disconnect();
  };
}
