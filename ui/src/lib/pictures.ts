/** Pictures on their way into a question: what a hand brings, where it is laid down, what it costs. */

/** What a paste or a drop brings. */
export interface TransferredFiles {
  files: File[];
  /** Whether it is an address alone, of which nothing is fetched. */
  address: boolean;
}

const NOTHING: TransferredFiles = { files: [], address: false };

type Carried = Pick<DataTransfer, 'files' | 'getData'>;

/** The files that are dropped. A picture beside its address is the picture; of an address alone nothing is fetched. */
export function dropped(data: Carried): TransferredFiles {
  const files = [...data.files];
  return { files, address: files.length === 0 && (data.getData('text/uri-list') !== '' || isAddress(data.getData('text/plain'))) };
}

/** The pictures that are pasted, if it is for them that a person pastes: a text program adds a picture of the words that were copied there. */
export function pasted(data: Carried): TransferredFiles {
  const files = [...data.files];
  if (files.length === 0) return NOTHING;
  const text = data.getData('text/plain').trim();
  return text === '' || isAddress(text) || namesThem(text, files) ? { files, address: false } : NOTHING;
}

/** Whether a paste could be of a picture that the web view keeps from the page: nothing came that can be read. */
export function pastedUnseen(data: Carried): boolean {
  return data.files.length === 0 && data.getData('text/plain') === '';
}

/** Whether files are pasted that the web view keeps from the page: WebKitGTK only says that addresses are there. */
export function pastedFilesUnseen(data: Carried & { readonly types: readonly string[] }): boolean {
  return data.files.length === 0 && data.types.includes('text/uri-list') && data.getData('text/uri-list') === '' && data.getData('text/plain') === '';
}

/** Whether something that is dragged over the window could be a file. Its contents are not told before it is dropped. */
export function carriesFiles(types: readonly string[]): boolean {
  return types.some((type) => type === 'Files' || type === 'text/uri-list' || type.startsWith('image/'));
}

function isAddress(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\S+$/i.test(text.trim());
}

/** Whether a text is nothing but the names or the paths of the files that come with it, a line for each, as file managers add them. */
function namesThem(text: string, files: readonly File[]): boolean {
  const names = new Set(files.map((file) => file.name));
  return text.split(/\r?\n/).every((line) => names.has(decoded(line.trim()).split(/[\\/]/).at(-1) ?? ''));
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** What a web view calls a picture that was pasted and has no name. */
const UNNAMED = /^image\.(?:png|tiff?|jpe?g|gif|webp)$/i;

/** The name of a file, for people; empty if it is none that a person gave. */
export function nameOf(file: Pick<File, 'name'>): string {
  return UNNAMED.test(file.name) ? '' : file.name;
}

/** The list with one entry at another place. */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  const rest = list.filter((_, index) => index !== from);
  const entry = list[from];
  if (entry === undefined) return [...list];
  return [...rest.slice(0, to), entry, ...rest.slice(to)];
}

/** The place in a list that a point lies over, whose entries flow in rows, from left to right or from right to left; as many as there are entries if it lies after the last. */
export function placeAt(boxes: readonly Pick<DOMRect, 'left' | 'right' | 'top' | 'bottom'>[], x: number, y: number, rightToLeft = false): number {
  const before = boxes.findIndex(({ left, right, top, bottom }) => y < top || (y <= bottom && (x < (left + right) / 2) !== rightToLeft));
  return before < 0 ? boxes.length : before;
}

/** The share of a context from which pictures leave little room for words. */
const CROWDED = 0.5;

/** The share of a context that tokens take, as a whole percentage, and whether that is much. */
export function shareOf(tokens: number, context: number): { percent: number; crowded: boolean } {
  const share = tokens / context;
  return { percent: Math.max(1, Math.round(share * 100)), crowded: share > CROWDED };
}
