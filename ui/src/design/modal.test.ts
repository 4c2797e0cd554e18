import { afterEach, expect, it, vi } from 'vitest';

import { modal } from './modal';

afterEach(() => vi.unstubAllGlobals());

/** The range of this text on the page. */
function place(words: string): Range {
  const paragraph = document.createElement('p');
  paragraph.textContent = words;
  document.body.append(paragraph);
  const range = document.createRange();
  range.selectNodeContents(paragraph);
  return range;
}

it('rests with what is marked below, and has it marked again afterwards where it is still there', () => {
  // The test's browser has no highlights; a highlight is a set of ranges, by its name.
  const highlights = new Map<string, Set<Range>>();
  vi.stubGlobal('Highlight', Set);
  vi.stubGlobal('CSS', { highlights });
  const gone = place('gone');
  highlights.set('found', new Set([place('kept')]));
  highlights.set('found-now', new Set([gone]));
  const dialog = document.createElement('dialog');
  Object.assign(dialog, { showModal: () => expect(highlights.size).toBe(0), close: () => {} });
  document.body.append(dialog);
  const close = modal(() => {}, { byBackdrop: true })(dialog);
  expect(highlights.size).toBe(0);
  gone.startContainer.parentNode?.removeChild(gone.startContainer);
  close?.();
  expect([...highlights.keys()]).toEqual(['found']);
});
