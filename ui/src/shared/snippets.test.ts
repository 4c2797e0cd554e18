import { describe, expect, it } from 'vitest';

import { completionAt, insertSnippet, isName } from './snippets';

const SNIPPETS = [
  { name: 'translate', text: 'Translate this into German:\n' },
  { name: 'trim', text: 'Make this shorter: ' },
  { name: 'contract', text: 'Look for traps in this contract.' },
];

const names = (text: string, caret = text.length): string[] | null =>
  completionAt(text, caret, SNIPPETS)?.matches.map(({ name }) => name) ?? null;

describe('a name after a slash', () => {
  it('means the snippets that begin with it, then those that hold it', () => {
    expect(names('/')).toEqual(['translate', 'trim', 'contract']);
    expect(names('/TR')).toEqual(['translate', 'trim', 'contract'].slice(0, 2).concat('contract'));
    expect(names('please /tri')).toEqual(['trim']);
    expect(names('a\n/con')).toEqual(['contract']);
  });

  it('is none in a path, in a fraction, or before other letters', () => {
    for (const text of ['', 'and/or', '1/2', '/usr/', '/trim ', 'http://', '/xyz'])
      expect(names(text), text).toBeNull();
    expect(names(`${'x'.repeat(100)}/tr`)).toBeNull();
    expect(completionAt('/', 1, [])).toBeNull();
  });

  it('gives way to the text, where the caret stands', () => {
    const text = 'Hello /tri world';
    const completion = completionAt(text, 10, SNIPPETS);
    expect(completion && insertSnippet(text, completion, 10, SNIPPETS[1]!)).toEqual({
      text: 'Hello Make this shorter:  world',
      caret: 25,
    });
  });

  it('is one word', () => {
    expect(['a', 'Über-setzen_2', '', 'a b', 'a/b', 'x'.repeat(41)].map(isName)).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
  });
});
