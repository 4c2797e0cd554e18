/**
 * A text cut into sections that are lexed one by one. A lexer costs, at worst, the length of its text times the marks
 * in it, or times its depth; a section is bounded in all three, so that the cost of a text grows with its length alone.
 * A section over the bounds stays plain text.
 *
 * A section ends where Markdown ends every block: after a blank line whose next line continues nothing, and around
 * blocks that may hold blank lines themselves (fences, formulas, comments). A long table is cut into parts, whose rows
 * are lexed under its head.
 */

/** A stretch of a text, with the blank lines after it. */
export interface Section {
  source: string;
  /** True if it stays plain. */
  plain: boolean;
  /** The head of the table that its rows continue; `null` if it continues none. */
  head: string | null;
  /** The head of the table whose rows follow it. */
  next: string | null;
}

/** The longest section that is lexed, fences aside: their cost is their length. */
export const LONGEST_SECTION = 16_384;
/** The maximum number of special characters in one run of text. */
export const MOST_MARKS = 500;
/** The deepest nesting of lists and quotations. */
export const DEEPEST = 20;
/** The longest formula. */
export const LONGEST_FORMULA = 4000;
/** The most of them in a section, whatever its runs. */
const MOST_MARKS_IN_ALL = 4 * MOST_MARKS;
/** The maximum number of unclosed formulas in a section. */
const MOST_UNCLOSED = 20;
/** The longest gap between two words. */
const WIDEST_GAP = 256;
/** The maximum number of rows in a part of a table, and of cells, which rows of fewer cells get as well. */
export const PART_ROWS = 50;
const PART_CELLS = 1000;
/** The longest part of a table, and the longest head, which each part is lexed with. */
const LONGEST_PART = LONGEST_SECTION / 2;
const LONGEST_HEAD = 2000;

const FENCE = /^( {0,3})(`{3,}(?=[^`\n]*(?:\n|$))|~{3,})/;
const LIST = /^[ \t]*(?:[*+-]|\d{1,9}[.)])(?=[ \t\n]|$)/;
const RAW = /^ {0,3}<(?:(script|pre|style|textarea)(?=[\s>])|(!--)|(\?)|(!\[CDATA\[)|(![A-Za-z]))/i;
const FORMULA = /^ {0,3}(\$\$|\\\[)/;
const OUTER = 4;
const DELIMITERS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\n?$/;
/** The line after the last row of a table. */
const NO_ROW =
  /^(?:[ \t]*\n?$| {4}| {0,3}(?:\t|#{1,6}[ \t\n]|>|`{3}|~{3}|(?:[*+-]|1[.)])[ \t]|([*_-])(?:[ \t]*\1){2,}[ \t]*\n?$))/;

/** The end of the formula of a block of its own that begins here, after its mark; `null` if there is none. */
export function formulaAt(source: string): { tex: string; end: number } | null {
  const open = FORMULA.exec(source);
  if (!open) return null;
  const start = open[0].length;
  const near = source.slice(start, start + LONGEST_FORMULA);
  const close = near.indexOf(open[1] === '$$' ? '$$' : '\\]');
  if (close < 1) return null;
  const tex = near.slice(0, close);
  const rest = /^[ \t]*(?:\n+|$)/.exec(source.slice(start + close + 2, start + close + 2 + LONGEST_FORMULA));
  return rest ? { tex, end: start + close + 2 + rest[0].length } : null;
}

/**
 * The sections of a text, in order; all of it is in one of them. If the text begins in the middle of a table, `head` is
 * the head of that.
 */
export function* sectionsOf(source: string, head: string | null = null): Generator<Section> {
  let start = 0;
  if (head !== null) start = yield* partsOf(source, { start: 0, rows: 0, head }, source.length);
  while (start < source.length) {
    const { end, whole } = sectionEnd(source, start);
    if (whole) yield { source: source.slice(start, end), plain: false, head: null, next: null };
    else yield* withTables(source, start, end);
    start = end;
  }
}

/** A section, in which tables stand apart that are long, or whose marks would keep all of it plain. */
function* withTables(source: string, start: number, end: number): Generator<Section> {
  const section = (from: number, to: number): Section => {
    const text = source.slice(from, to);
    return { source: text, plain: exceeds(text), head: null, next: null };
  };
  const least = exceeds(source.slice(start, end)) ? 1 : 2;
  let at = start;
  for (;;) {
    const table = tableIn(source, at, end, least);
    if (!table) break;
    if (table.start > at) yield section(at, table.start);
    at = yield* partsOf(source, table, end);
  }
  if (at < end) yield section(at, end);
}

/** A table: its start, that of its rows, and its head, which is before both if it began earlier. */
interface Table {
  start: number;
  rows: number;
  head: string;
}

/** The parts of a table, one after the other; returns its end. */
function* partsOf(source: string, { start, rows, head }: Table, end: number): Generator<Section, number> {
  const ends = rowEnds(source, rows, end, cellsIn(head));
  let from = start;
  let now = ends.next();
  while (!now.done) {
    const next = ends.next();
    const to = next.done ? afterBlank(source, now.value) : now.value;
    const text = source.slice(from, to);
    yield {
      source: text,
      plain: exceeds(text, true),
      // The first part holds the head itself.
      head: from < rows ? null : head,
      next: next.done ? null : head,
    };
    from = to;
    now = next;
  }
  return from;
}

/** The first table between these places that is cut into at least so many parts. */
function tableIn(source: string, from: number, end: number, least: number): Table | null {
  let before = end;
  for (let at = from; at < end;) {
    const next = lineEnd(source, at);
    const head = next - before <= LONGEST_HEAD ? source.slice(before, next) : '';
    const line = head.slice(at - before);
    if (head !== '' && line.includes('|') && DELIMITERS.test(line)) {
      const ends = cellsIn(line) === cellsIn(head) ? rowEnds(source, next, end, cellsIn(head)) : null;
      let parts = 0;
      while (ends && parts < least && !ends.next().done) parts += 1;
      if (parts === least) return { start: before, rows: next, head };
    }
    before = at;
    at = next;
  }
  return null;
}

/** The ends of the parts that the rows from here on make up, of a table that is so many cells wide. */
function* rowEnds(source: string, from: number, end: number, cells: number): Generator<number, void> {
  const most = Math.max(1, Math.min(PART_ROWS, Math.floor(PART_CELLS / cells)));
  let [rows, characters, marks] = [0, 0, 0];
  let at = from;
  while (at < end) {
    const next = Math.min(end, lineEnd(source, at));
    if (NO_ROW.test(source.slice(at, Math.min(next, at + LONGEST_HEAD)))) break;
    const more = marksIn(source, at, next);
    if (rows > 0 && (rows >= most || characters + next - at > LONGEST_PART || marks + more > MOST_MARKS_IN_ALL)) {
      yield at;
      [rows, characters, marks] = [0, 0, 0];
    }
    [rows, characters, marks] = [rows + 1, characters + next - at, marks + more];
    at = next;
  }
  if (rows > 0) yield at;
}

/** The number of cells in the first of these lines. */
function cellsIn(lines: string): number {
  return lines
    .slice(0, lineEnd(lines, 0))
    .trim()
    .replace(/^\||(?<!\\)\|$/g, '')
    .split(/(?<!\\)\|/).length;
}

function marksIn(source: string, from: number, to: number): number {
  let marks = 0;
  for (let at = from; at < to; at++) if (MARKS.has(source.charCodeAt(at))) marks += 1;
  return marks;
}

/** The end of the section that starts here, and whether it is a fence or a formula, which cost only their length. */
function sectionEnd(source: string, start: number): { end: number; whole: boolean } {
  let listed = false;
  let blank = false;
  let unclosed = 0;
  for (let at = start; at < source.length;) {
    const next = lineEnd(source, at);
    // The deciding characters are at the start of a line.
    const line = source.slice(at, Math.min(next, at + 64));
    if (line.trim() === '' && next - at <= 64) {
      blank = true;
      at = next;
      continue;
    }
    const indented = line[0] === ' ' || line[0] === '\t';
    if (blank && !continues(line, listed)) return { end: at, whole: false };
    blank = false;
    // Inside a list, indented text may belong to an item.
    if (!listed || !indented) {
      const formula = unclosed < MOST_UNCLOSED && FORMULA.test(line);
      const end = rawEnd(source, at, line, formula);
      unclosed += formula ? 1 : 0;
      if (end !== null) return at > start ? { end: at, whole: false } : end;
    }
    listed ||= LIST.test(line);
    at = next;
  }
  return { end: source.length, whole: false };
}

/** True if a line after a blank one may continue the section before it. */
function continues(line: string, listed: boolean): boolean {
  if (listed) return /^[ \t]/.test(line) || LIST.test(line);
  return line.startsWith(' '.repeat(OUTER)) || /^ {0,3}\t/.test(line);
}

/** The end of a block that may hold blank lines, if this line begins one. */
function rawEnd(source: string, at: number, line: string, formula: boolean): { end: number; whole: boolean } | null {
  const fence = FENCE.exec(line);
  // The info string after the fence may be longer than the examined part.
  if (fence && (fence[2]?.[0] === '~' || !source.slice(at + fence[0].length, lineEnd(source, at)).includes('`'))) {
    return { end: afterBlank(source, fenceEnd(source, lineEnd(source, at), fence[2] ?? '')), whole: true };
  }
  const raw = RAW.exec(line);
  if (raw) {
    const closing = raw[1] ? new RegExp(`</${raw[1]}>`, 'i') : null;
    const close = raw[2] ? '-->' : raw[3] ? '?>' : raw[4] ? ']]>' : '>';
    const from = at + raw[0].length;
    const found = closing ? indexAfter(source, from, closing) : source.indexOf(close, raw[2] ? from - 2 : from);
    return { end: found < 0 ? source.length : afterBlank(source, lineEnd(source, found)), whole: false };
  }
  const found = formula ? formulaAt(source.slice(at, at + 2 * LONGEST_FORMULA + 16)) : null;
  return found && { end: at + found.end, whole: true };
}

function indexAfter(source: string, from: number, wanted: RegExp): number {
  const found = source.slice(from).search(wanted);
  return found < 0 ? -1 : from + found;
}

function fenceEnd(source: string, from: number, mark: string): number {
  for (let at = from; at < source.length;) {
    const next = lineEnd(source, at);
    const closing = /^ {0,3}(`+|~+) *\n?$/.exec(source.slice(at, Math.min(next, at + 512)));
    if (closing?.[1]?.startsWith(mark)) return next;
    at = next;
  }
  return source.length;
}

/** The start of the next line. */
function lineEnd(source: string, at: number): number {
  const end = source.indexOf('\n', at);
  return end < 0 ? source.length : end + 1;
}

function afterBlank(source: string, at: number): number {
  let end = at;
  while (end < source.length) {
    const next = lineEnd(source, end);
    if (next - end > 64 || source.slice(end, next).trim() !== '') return end;
    end = next;
  }
  return end;
}

const MARKS = new Set([...'[]!<>&*_~`$\\@('].map((mark) => mark.charCodeAt(0)));
const [SPACE, TAB, NEWLINE, PIPE, QUOTE] = [' ', '\t', '\n', '|', '>'].map((mark) => mark.charCodeAt(0));

/** True if parsing it would cost more than its length. Each row of a table is a run of text of its own. */
function exceeds(section: string, table = false): boolean {
  if (section.length > LONGEST_SECTION) return true;
  let marks = 0;
  let all = 0;
  for (let at = 0; at < section.length;) {
    const next = lineEnd(section, at);
    const { depth, item, words } = prefix(section, at, next);
    if (depth > DEEPEST) return true;
    // Items, rows and blank lines begin a new run of text.
    if (table || item || words >= next - 1 || section.charCodeAt(words) === PIPE) marks = 0;
    let gap = 0;
    for (let index = words; index < next; index++) {
      const code = section.charCodeAt(index);
      gap = code === SPACE || code === TAB ? gap + 1 : 0;
      if (gap > WIDEST_GAP) return true;
      if (!MARKS.has(code)) continue;
      marks += 1;
      all += 1;
      if (marks > MOST_MARKS || all > MOST_MARKS_IN_ALL) return true;
    }
    at = next;
  }
  return false;
}

/** The depth of a line, a flag if it begins an item, and the start of its text. */
function prefix(section: string, start: number, end: number): { depth: number; item: boolean; words: number } {
  let at = start;
  let depth = 0;
  let item = false;
  let columns = 0;
  for (;;) {
    for (; at < end; at++) {
      const code = section.charCodeAt(at);
      if (code === SPACE) columns += 1;
      else if (code === TAB) columns += OUTER;
      else break;
    }
    if (at >= end || section.charCodeAt(at) === NEWLINE) return { depth, item, words: at };
    const quote = section.charCodeAt(at) === QUOTE;
    const mark = quote ? 1 : (LIST.exec(section.slice(at, Math.min(end, at + 12)))?.[0].length ?? 0);
    if (mark === 0) return { depth: depth && depth + Math.floor(columns / 2), item, words: at };
    item ||= !quote;
    depth += 1;
    // Blanks after a mark are no depth of their own.
    columns -= 1;
    at += mark;
  }
}
