/** Passages of documents in words. */

import type { Coverage } from '../bindings/Coverage';
import type { QuotedPassage } from '../bindings/QuotedPassage';
import { t } from '../locales';
import { plainName } from '../shared/displayNames';
import { countFiles, isWhole, OWN_CHATS } from '../shared/passages';

/** Stands between headings. */
const BETWEEN_HEADINGS = ' › ';

/** The digits of a hash that are shown. */
const DIGITS = 12;

/** The page of a passage, or its lines. */
export function spotOf({ page, first_line, last_line }: QuotedPassage): string {
  if (page !== null) return t('passages.page', { page });
  if (first_line === last_line) return t('passages.line', { line: first_line });
  return t('passages.lines', { first: first_line, last: last_line });
}

/** `notes/tides.md, lines 3–9` */
export function placeOf(passage: QuotedPassage): string {
  return `${nameOf(passage)}, ${spotOf(passage)}`;
}

/** The file of a passage; of the user's own chats the title. */
export function nameOf({ collection, file, headings }: QuotedPassage): string {
  return plainName(collection === OWN_CHATS ? (headings.split(BETWEEN_HEADINGS)[0] ?? '') : file);
}

/** `7 passages from 3 files` */
export function passagesText(passages: readonly QuotedPassage[]): string {
  if (passages.length === 0) return t('passages.none');
  return t('passages.from', {
    passages: t('documents.passages', { count: passages.length }),
    files: t('amount.files', { count: countFiles(passages) }),
  });
}

/** The part of the documents that was read: `Read 7 of 212 passages in 3 of 40 files · 2 files were not read`. */
export function coverageText(coverage: Coverage): string {
  const { passages, of_passages, files, of_files, unread } = coverage;
  const left = unread > 0 ? [t('passages.unread', { count: unread })] : [];
  const read = ((): string => {
    if (of_files === 0) return t('passages.noneRead');
    if (isWhole(coverage)) return t('passages.whole', { count: of_files });
    if (passages === 0) return t('passages.nothing', { count: of_files });
    return t('passages.coverage', { passages, of: of_passages, files, count: of_files });
  })();
  return [read, ...left].join(' · ');
}

/** The sources of a text, as a list that follows it when it is copied; empty without any. */
export function sourcesText(cited: readonly QuotedPassage[]): string {
  if (cited.length === 0) return '';
  const lines = cited.map((passage) =>
    t('citation.copied', { number: passage.number, place: placeOf(passage), hash: passage.file_hash.slice(0, DIGITS) }),
  );
  return [`${t('citation.sources')}:`, ...lines].join('\n');
}
