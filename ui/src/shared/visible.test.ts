import { describe, expect, it } from 'vitest';

import { hides, meant, visible, visibleJson } from './visible';

const HIDDEN = ['\u0000', '\u00a0', '\u00ad', '\u061c', '\u115f', '\u200b', '\u200d', '\u202e', '\u2028', '\u2066', '\u2800',
  '\u3000', '\u3164', '\ufe0f', '\ufeff', '\ue000', '\u{e0041}', '\u{f0000}', '\r'];

describe('text of strangers', () => {
  it.each(HIDDEN)('hides nothing: %j', (sign) => {
    const text = `a${sign}b`;
    expect(visible(text)).toBe(`a⟨U+${sign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}⟩b`);
    expect(meant(visible(text))).toBe(text);
    const json = visibleJson(JSON.stringify({ text }));
    expect(json).toMatch(/^[\x20-\x7e]*$/);
    expect(JSON.parse(json)).toEqual({ text });
    expect(hides(JSON.stringify({ text }))).toBe(true);
  });

  it.each(['Hello,\n\tworld', 'größer', '日本語', 'שלום', 'a+b=≤√', '👍🏽', 'C:\\users'])('is left alone: %j', (text) => {
    expect(visible(text)).toBe(text);
    expect(visibleJson(JSON.stringify(text))).toBe(JSON.stringify(text));
    expect(hides(JSON.stringify(text))).toBe(false);
  });

  it('cannot imitate a written sign', () => {
    expect(visible('⟨U+202E⟩')).not.toBe(visible('\u202e'));
    expect(meant(visible('⟨U+202E⟩'))).toBe('⟨U+202E⟩');
    expect(meant('⟨U+FFFFFF⟩ ⟨ ⟩')).toBe('⟨U+FFFFFF⟩ ⟨ ⟩');
  });
});
