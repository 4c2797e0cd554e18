/** A model's card as it can be read here. */

import { t } from '../../locales';

/** More of a card than this is not drawn; the hub's own page has the rest. */
export const LONGEST = 60_000;

/**
 * The text without its table of metadata, with absolute addresses for files of the repository, cut if it is too long.
 * `page` is the model's page on the hub.
 */
export function readableCard(card: string, page: string): string {
  const body = card.replace(/\r\n?/g, '\n').replace(/^\s*---\n[\s\S]*?\n---(?:\n|$)/, '');
  const whole = body.replace(
    /(\]\()(\.{0,2}\/?)(?!\w+:|#|\/\/)([^)\s]+)/g,
    (match, open: string, lead: string, path: string) =>
      lead.startsWith('..') ? match : `${open}${page}/blob/main/${path}`,
  );
  const text = whole.trim();
  if (text.length <= LONGEST) return text;
  const cut = text.lastIndexOf('\n\n', LONGEST);
  return `${text.slice(0, cut > LONGEST / 2 ? cut : LONGEST)}\n\n[${t('card.cut')}](${page})`;
}
