/** Images on their way into a question: what a hand brings, where it is laid down, what it costs. */

/** The files of a paste or a drop. */
export interface DroppedFiles {
  files: File[];
  /** True if it is only an address, of which nothing is fetched. */
  address: boolean;
}

const NOTHING: DroppedFiles = { files: [], address: false };

type Carried = Pick<DataTransfer, 'files' | 'getData'>;

/** The files that are dropped. An image beside its address is the image; of an address alone nothing is fetched. */
export function dropped(data: Carried): DroppedFiles {
  const files = [...data.files];
  return {
    files,
    address: files.length === 0 && (data.getData('text/uri-list') !== '' || isAddress(data.getData('text/plain'))),
  };
}

/**
 * The images that are pasted, if it is for them that a person pastes: a text program adds an image of the words that
 * were copied there.
 */
export function pasted(data: Carried): DroppedFiles {
  const files = [...data.files];
  if (files.length === 0) return NOTHING;
  const text = data.getData('text/plain').trim();
  return text === '' || isAddress(text) || namesThem(text, files) ? { files, address: false } : NOTHING;
}

/** True if the web view may hide an image of the clipboard from the page: nothing readable came. */
export function pastedUnseen(data: Carried): boolean {
  return data.files.length === 0 && data.getData('text/plain') === '';
}

/** True if the web view hides pasted files from the page: WebKitGTK only says that there are addresses. */
export function pastedFilesUnseen(data: Carried & { readonly types: readonly string[] }): boolean {
  return (
    data.files.length === 0 &&
    data.types.includes('text/uri-list') &&
    data.getData('text/uri-list') === '' &&
    data.getData('text/plain') === ''
  );
}

/** True if a dragged item could be a file. Its content is unknown until it is dropped. */
export function carriesFiles(types: readonly string[]): boolean {
  return types.some((type) => type === 'Files' || type === 'text/uri-list' || type.startsWith('image/'));
}

function isAddress(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\S+$/i.test(text.trim());
}

/** True if a text only lists the names or the paths of its files, one per line, as file managers add them. */
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

/** The name that a web view gives a pasted image without one. */
const UNNAMED = /^image\.(?:png|tiff?|jpe?g|gif|webp)$/i;

/** The display name of a file; empty if the user did not choose one. */
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

/**
 * The index at a point in a list whose entries flow in rows, left to right or right to left; the number of entries
 * after the last.
 */
export function placeAt(
  boxes: readonly Pick<DOMRect, 'left' | 'right' | 'top' | 'bottom'>[],
  x: number,
  y: number,
  rightToLeft = false,
): number {
  const before = boxes.findIndex(
    ({ left, right, top, bottom }) => y < top || (y <= bottom && x < (left + right) / 2 !== rightToLeft),
  );
  return before < 0 ? boxes.length : before;
}
