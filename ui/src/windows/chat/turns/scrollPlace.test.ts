import { afterEach, describe, expect, it } from 'vitest';

import { align, placeIn } from './scrollPlace';
import { tableText } from '../../../shared/visibleText';

/** An area at 100 pixels with messages of 200 pixels each, scrolled by `top` pixels. */
function area(scrolled: number): HTMLElement {
  const element = document.createElement('div');
  element.getBoundingClientRect = () => new DOMRect(0, 100, 500, 300);
  element.scrollTop = scrolled;
  for (let index = 0; index < 5; index++) {
    const message = document.createElement('article');
    message.dataset['messageId'] = `m${index}`;
    message.getBoundingClientRect = () => new DOMRect(0, 100 + index * 200 - element.scrollTop, 500, 200);
    element.append(message);
  }
  document.body.append(element);
  return element;
}

afterEach(() => document.body.replaceChildren());

describe('the place that a chat is scrolled to', () => {
  it('is its first message in sight, and is found again whatever was scrolled since', () => {
    const place = placeIn(area(450));
    expect(place).toEqual({ message: 'm2', offset: 50 });
    const other = area(0);
    expect(place && align(other, place)).toBe(true);
    expect(other.scrollTop).toBe(450);
    expect(align(other, { message: 'gone', offset: 0 })).toBe(false);
    expect(placeIn(document.createElement('div'))).toBeNull();
  });
});

describe('a table', () => {
  it('is copied as lines of cells', () => {
    document.body.innerHTML =
      '<table><thead><tr><th>n</th><th>square</th></tr></thead><tbody><tr><td> 1 </td><td><b>one</b>\n two</td></tr></tbody></table>';
    const table = document.querySelector('table');
    expect(table && tableText(table)).toBe('n\tsquare\n1\tone two');
  });
});
