/** A result of a tool that is a JSON list of flat objects, as a table. */

import type { JsonValue } from '../../../bindings/serde_json/JsonValue';

export interface ResultTable {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** The number of rows that are not among them. */
  readonly rest: number;
}

/** A longer result stays text. */
const LONGEST = 200_000;
const MOST_COLUMNS = 12;
const MOST_ROWS = 100;

type Flat = Readonly<Record<string, string | number | boolean | null>>;

/** The table of a result; `null` for one that is better read as text. */
export function tableOf(text: string): ResultTable | null {
  if (text.length > LONGEST || !text.trimStart().startsWith('[')) return null;
  const list = parsed(text);
  if (!Array.isArray(list) || list.length === 0 || !list.every(isFlat)) return null;
  const columns = [...new Set(list.flatMap((row) => Object.keys(row)))];
  if (columns.length === 0 || columns.length > MOST_COLUMNS) return null;
  const rows = list.slice(0, MOST_ROWS).map((row) => columns.map((column) => cell(row, column)));
  return { columns, rows, rest: list.length - rows.length };
}

function parsed(text: string): JsonValue {
  try {
    const value: JsonValue = JSON.parse(text);
    return value;
  } catch {
    return null;
  }
}

/** True for an object of texts, numbers and the like. A number that the page would round stays text. */
function isFlat(row: JsonValue): row is Flat {
  if (typeof row !== 'object' || row === null || Array.isArray(row)) return false;
  return Object.values(row).every((value) => {
    if (typeof value === 'number') return !Number.isInteger(value) || Number.isSafeInteger(value);
    return typeof value !== 'object' || value === null;
  });
}

function cell(row: Flat, column: string): string {
  const value = Object.hasOwn(row, column) ? row[column] : null;
  return value === null || value === undefined ? '' : String(value);
}
