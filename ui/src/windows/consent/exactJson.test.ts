import { describe, expect, it } from 'vitest';

import { exactText, parseExact } from './exactJson';

describe('JSON with large numbers', () => {
  it.each([
    '{"a":12345678901234567890,"b":[-9223372036854775809,1.5,0.25,0],"c":"12345678901234567890"}',
    '12345678901234567890',
    '"number:1 and \\"12345678901234567890\\" \\\\"',
    '{"number:1":"number::2","d":99999999999999999999}',
    '{"__proto__":1}',
    'null',
  ])('is written as it was read: %s', (text) => {
    const value = parseExact(text);
    expect(value === undefined ? undefined : exactText(value)).toBe(text);
  });

  it.each(['', '{', '01', '{"a":}', 'NaN', '[1,]', "{'a':1}", '12345678901234567890 1'])('that is none says nothing: %s', (text) => {
    expect(parseExact(text)).toBeUndefined();
  });

  it('is told from text', () => {
    expect(parseExact('[9007199254740991, 9007199254740993, "9007199254740993"]')).toEqual([
      9007199254740991,
      9007199254740993n,
      '9007199254740993',
    ]);
  });
});
