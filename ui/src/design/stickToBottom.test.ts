import { beforeEach, describe, expect, it } from 'vitest';

import { StickToBottom, type Scrollable } from './stickToBottom';

/** A scroll area that clamps its position as a browser does. */
class Area implements Scrollable {
  #top = 0;
  clientHeight = 100;
  scrollHeight = 1000;

  get scrollTop(): number {
    return this.#top;
  }
  set scrollTop(value: number) {
    this.#top = Math.max(0, Math.min(value, this.scrollHeight - this.clientHeight));
  }
}

describe('StickToBottom', () => {
  let area: Area;
  let stick: StickToBottom;
  let changes: boolean[];

  function scrollTo(top: number): void {
    area.scrollTop = top;
    stick.scrolled();
  }
  function grow(height: number): void {
    area.scrollHeight = height;
    area.scrollTop = Math.min(area.scrollTop, height);
    stick.resized();
  }

  beforeEach(() => {
    area = new Area();
    changes = [];
    stick = new StickToBottom(area, (held) => changes.push(held));
    stick.hold();
  });

  it('follows content that grows', () => {
    grow(1500);
    stick.scrolled();
    expect(area.scrollTop).toBe(1400);
  });

  it('lets go when the user scrolls up, and stays there', () => {
    scrollTo(850);
    grow(1500);
    expect(area.scrollTop).toBe(850);
    expect(changes).toEqual([false]);
  });

  it('lets go of a small turn of the wheel although the end is near', () => {
    stick.letGo();
    scrollTo(895);
    grow(1500);
    expect(area.scrollTop).toBe(895);
  });

  it('holds on again near the end', () => {
    scrollTo(500);
    scrollTo(880);
    grow(1500);
    expect(area.scrollTop).toBe(1400);
    expect(changes).toEqual([false, true]);
  });

  it('is not let go by content that becomes shorter', () => {
    area.scrollHeight = 700;
    scrollTo(area.scrollTop);
    stick.resized();
    grow(900);
    expect(area.scrollTop).toBe(800);
    expect(changes).toEqual([]);
  });

  it('is not let go by content that became shorter and longer again before the scroll event came', () => {
    area.scrollHeight = 998;
    area.scrollTop = 898;
    area.scrollHeight = 1018;
    stick.scrolled();
    stick.resized();
    expect(area.scrollTop).toBe(918);
    expect(changes).toEqual([]);
  });

  it('is let go by the bar while the content grows', () => {
    stick.drag(true);
    area.scrollHeight = 1018;
    scrollTo(850);
    expect(changes).toEqual([false]);
  });

  it('is not let go by content that grew before the scroll event came', () => {
    area.scrollHeight = 1600;
    stick.scrolled();
    expect(stick.held).toBe(true);
  });

  it('has nothing to let go of if all is visible', () => {
    area.scrollHeight = 100;
    stick.letGo();
    expect(stick.held).toBe(true);
  });
});
