import { describe, expect, it } from 'vitest';

import { addressOf, misleads } from './link';
import { directionOf, plainName } from './displayNames';

describe('an address', () => {
  it.each([
    ['https://example.org/a?b#c', 'https://example.org/a?b#c', 'example.org'],
    ['HTTP://EXAMPLE.org:8080', 'http://example.org:8080/', 'example.org:8080'],
    ['https://аррle.com/', 'https://xn--le-6kcf5cb.com/', null],
    ['mailto:a@example.org', 'mailto:a@example.org', 'a@example.org'],
    [
      'mailto:a@example.org,b%40example.org?subject=Hi%0AX&body=one%0Atwo&attach=/etc/passwd&bcc=c@example.org',
      'mailto:a@example.org,b@example.org?subject=Hi%20X&body=one%0Atwo',
      'a@example.org, b@example.org',
    ],
  ])('%s is rebuilt of what was understood', (href, url, who) => {
    const address = addressOf(href);
    if (who !== null) expect(address).toMatchObject({ url, who });
    // Letters of another script are shown as the network knows them.
    else expect(address?.who).toMatch(/^xn--/);
  });

  it.each([
    'javascript:alert(1)',
    'file:///etc/passwd',
    'data:text/html,x',
    'ponder:quit',
    'https://',
    'https:///',
    '//example.org',
    'x-apple.systempreferences:',
    'vbscript:x',
    'mailto:',
    'mailto:-oProxyCommand',
    'mailto:a@b@c',
    'mailto:a b@example.org',
    'mailto:?attach=/etc/passwd',
    'mailto:a@example.org%0Ab@example.org',
    'mailto:%22x%22@example.org',
    'https://example.org/\u0000',
    'https://exa mple.org',
    `https://example.org/${'a'.repeat(9000)}`,
  ])('%j is none', (href) => expect(addressOf(href)).toBeNull());
});

describe('the words of a link', () => {
  const differ = (words: string, href: string): boolean => {
    const address = addressOf(href);
    if (!address) throw new Error('no address');
    return misleads(words, address);
  };

  it.each([
    ['example.org', 'https://evil.example/'],
    ['https://example.org/login', 'https://example.org.evil.example/login'],
    ['www.example.org', 'https://example.com'],
    ['Click', 'https://example.org@evil.example/'],
    ['a@example.org', 'mailto:b@example.org'],
    ['exam\u200bple.org', 'https://evil.example/'],
    ['\u202egro.elpmaxe', 'https://example.org@evil.example'],
  ])('%j do not tell of %s', (words, href) => expect(differ(words, href)).toBe(true));

  it.each([
    ['example.org', 'https://example.org/a/b'],
    ['www.example.org/a', 'https://example.org/'],
    ['example.org', 'https://docs.example.org/'],
    ['the book', 'https://example.org/'],
    ['main.rs', 'https://example.org/src/main.rs'],
    ['https://müller.de', 'https://xn--mller-kva.de/'],
    ['a@example.org', 'mailto:A@example.org'],
  ])('%j may stand for %s', (words, href) => expect(differ(words, href)).toBe(false));
});

it.each([
  ['a\u202egpj.exe', 'agpj.exe'],
  ['\u2066\u2069Name\u200f', 'Name'],
  ['two\nlines', 'two lines'],
  ['שלום', 'שלום'],
])('the name %j is shown as %j', (name, shown) => expect(plainName(name)).toBe(shown));

it('the direction of a long text is told by its beginning, however long it is', () => {
  expect(
    ['abc', 'שלום '.repeat(1000), 'abc '.repeat(1000), '1. שלום '.repeat(1000), '['.repeat(1_000_000)].map(directionOf),
  ).toEqual(['auto', 'rtl', 'ltr', 'rtl', 'ltr']);
});
