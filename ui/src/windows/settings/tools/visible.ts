/** Texts of strangers as a person has to see them: nothing is invisible or turns the order of letters around. */

/** Signs that show nothing, move their neighbors or look like a space. Line feeds, tabs and spaces stay. */
const HIDDEN =
  /(?![\n\t ])[\p{Cc}\p{Co}\p{Cn}\p{Z}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800\ufff9-\ufffc]/gu;

/** A command of a terminal that colors text or moves the cursor. */
const TERMINAL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g;

/** The text with every hidden sign written as `⟨U+202E⟩`, as the host writes it where it asks for consent. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (sign) => `⟨U+${hexadecimal(sign)}⟩`);
}

/** The lines of a program as a text, without the colors that a terminal would show. */
export function logText(lines: readonly string[]): string {
  return visible(lines.map((line) => line.replace(TERMINAL, '').replace(/\r$/, '')).join('\n'));
}

function hexadecimal(sign: string): string {
  return (sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
}
