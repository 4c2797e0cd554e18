import { expect, it } from 'vitest';

import { filledTemplate } from './uriTemplate';

it('fills in variables as RFC 6570 says', () => {
  const values = new Map([
    ['path', 'foo/bar'],
    ['x', '1024'],
    ['hello', 'Hello World!'],
    ['empty', ''],
  ]);
  // Examples of its sections 3.2.2 to 3.2.9.
  for (const [template, filled] of [
    ['demo://{x}/end', 'demo://1024/end'],
    ['{hello}', 'Hello%20World!'],
    ['{path}', 'foo%2Fbar'],
    ['{+path}/here', 'foo/bar/here'],
    ['X{#hello}', 'X#Hello%20World!'],
    ['{x,hello}', '1024,Hello%20World!'],
    ['X{.x}', 'X.1024'],
    ['{/x,empty,path}', '/1024/foo%2Fbar'],
    ['{;x}', ';x=1024'],
    ['{?x,empty}', '?x=1024'],
    ['?a=b{&x}', '?a=b&x=1024'],
    ['{hello:5}', 'Hello'],
    ['{missing}{?missing}', ''],
    ['a{b', 'a{b'],
    ['{}', ''],
  ] as const)
    expect(filledTemplate(template, values), template).toBe(filled);
});
