/** Reads a typed number, `0,7` and `1 024` too; `null` if it is none, `undefined` if the field is empty. */
export function numberOf(typed: string, whole: boolean): number | null | undefined {
  const text = typed.trim().replace(/[\s\u2019']/g, '');
  if (text === '') return undefined;
  if (whole) return /^[+-]?\d{1,15}$/.test(text) ? Number(text) : null;
  const number = text.replace(',', '.');
  return /^[+-]?(\d+\.?\d*|\.\d+)$/.test(number) ? Number(number) : null;
}
