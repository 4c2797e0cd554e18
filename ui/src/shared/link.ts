/** Links that models write: the intended one, its real target, and a check that its text agrees. */

import { plainName } from './displayNames';

/** The link that holds an event's target. */
export function linkOf(target: EventTarget | null): HTMLAnchorElement | null {
  const link = target instanceof Element ? target.closest('a[href]') : null;
  return link instanceof HTMLAnchorElement ? link : null;
}

/** An address that may be opened. */
export interface Address {
  kind: 'web' | 'mail';
  /** Rebuilt from the parsed parts. */
  url: string;
  /** The target: the host as the network knows it, with its port, or the mail addresses. */
  who: string;
  /** True if it starts with a name that looks like a host and is none: `https://bank.example@evil.example`. */
  disguised: boolean;
}

const LONGEST = 8000;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f]/;
const MAILBOX = /^[^\s@<>()[\]"'`,;:\\/?#&=%]+@[^\s@<>()[\]"'`,;:\\/?#&=%]+$/;

/** The parsed address; `null` if it may not be opened. */
export function addressOf(href: string): Address | null {
  if (href.length > LONGEST || CONTROL.test(href)) return null;
  let url: URL;
  try {
    url = new URL(href);
  } catch {
    return null;
  }
  if (url.protocol === 'mailto:') return mailOf(url);
  if ((url.protocol !== 'https:' && url.protocol !== 'http:') || url.hostname === '') return null;
  const disguised = url.username !== '' || url.password !== '';
  return { kind: 'web', url: url.href, who: url.host, disguised };
}

/** A mail with subject and text; no attachments, no hidden recipients. */
function mailOf(url: URL): Address | null {
  const people = url.pathname.split(',').map((part) => decoded(part)?.trim() ?? '');
  if (people.some((person) => !MAILBOX.test(person))) return null;
  const query = (['subject', 'body'] as const).flatMap((name) => {
    const value = url.searchParams.get(name);
    if (!value) return [];
    return `${name}=${encodeURIComponent(name === 'subject' ? plainName(value) : value)}`;
  });
  const who = people.join(', ');
  return {
    kind: 'mail',
    url: `mailto:${people.map(encodeURI).join(',')}${query.length > 0 ? `?${query.join('&')}` : ''}`,
    who,
    disguised: false,
  };
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

// Endings under which a name alone is read as a web address; `main.rs` is read as a file.
const ENDINGS =
  /\.(?:com|org|net|edu|gov|mil|int|info|io|ai|app|dev|de|uk|fr|eu|ch|at|nl|it|es|ru|cn|jp|br|in|us|ca|au|co|me|tv|xyz)$/i;

/** The host that the text of a link claims; `null` if it claims none. */
function claimedHost(words: string): string | null {
  const text = plainName(words).trim();
  const match = /^(https?:\/\/|www\.)?([^\s/?#:@]+)(?::\d+)?(?:[/?#]\S*)?$/i.exec(text);
  if (!match?.[2] || (!match[1] && !ENDINGS.test(match[2]))) return null;
  try {
    return new URL(/^https?:/i.test(text) ? text : `https://${text}`).hostname;
  } catch {
    return null;
  }
}

/** True if the text of a link names another host than its target, or its address is disguised. */
export function misleads(words: string, address: Address): boolean {
  if (address.disguised) return true;
  const bare = (host: string): string => host.replace(/^www\./, '');
  if (address.kind === 'mail') {
    const claimed = plainName(words).trim();
    return MAILBOX.test(claimed) && claimed.toLowerCase() !== address.who.toLowerCase();
  }
  const claimed = claimedHost(words);
  const real = new URL(address.url).hostname;
  return claimed !== null && bare(real) !== bare(claimed) && !real.endsWith(`.${bare(claimed)}`);
}
