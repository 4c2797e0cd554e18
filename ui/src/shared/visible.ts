/** Texts of strangers as a person has to see them: nothing is invisible or turns the order of letters around. */

/** Signs that show nothing, move their neighbors or look like a space. Line feeds, tabs and spaces stay. */
const HIDDEN =
  /(?![\n\t ])[\p{Cc}\p{Co}\p{Cn}\p{Z}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800\ufff9-\ufffc]/gu;

/** A command of a terminal that colors text or moves the cursor. */
const TERMINAL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g;

/** A hidden sign as it is written. The brackets themselves are written so, too, so that nobody can imitate it. */
const WRITTEN = /⟨U\+([0-9A-F]{4,6})⟩/g;

/** The text with every hidden sign written as `⟨U+202E⟩`, as the host writes it where it asks for consent. */
export function visible(text: string): string {
  return text.replace(/[⟨⟩]/g, written).replace(HIDDEN, written);
}

/** The text that `visible` shows in this way. */
export function meant(text: string): string {
  return text.replace(WRITTEN, (all, digits: string) => {
    const point = Number.parseInt(digits, 16);
    return point > 0x10ffff ? all : String.fromCodePoint(point);
  });
}

/** JSON with every hidden sign as JSON itself writes it, such as `\u202e`; it says the same. */
export function visibleJson(json: string): string {
  return json.replace(HIDDEN, (sign) =>
    [...Array(sign.length).keys()].map((at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** True if a JSON text has a sign in it that cannot be seen, raw or as JSON writes it. */
export function hides(json: string): boolean {
  return json.search(HIDDEN) >= 0 || /[⟨⟩]|(?<!\\)(?:\\\\)*\\[bfru]/.test(json);
}

/** The lines of a program as a text, without the colors that a terminal would show. */
export function logText(lines: readonly string[]): string {
  return visible(lines.map((line) => line.replace(TERMINAL, '').replace(/\r$/, '')).join('\n'));
}

function written(sign: string): string {
  return `⟨U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;
}
