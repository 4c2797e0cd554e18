/** Images for tests: small files with the right beginning, and the events that bring them. */

/** The bytes of a PNG file of this size, as far as a header goes; `mark` makes it another image. */
export function png(width: number, height: number, mark = 0): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(32);
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]);
  const view = new DataView(bytes.buffer);
  view.setUint32(16, width);
  view.setUint32(20, height);
  bytes[31] = mark;
  return bytes;
}

/** A file that holds these bytes. The test's page has files, but cannot read them. */
export function fileOf(bytes: Uint8Array<ArrayBuffer>, name: string): File {
  return Object.assign(new File([bytes], name), { arrayBuffer: async () => bytes.slice().buffer });
}

/** A PNG file of this size. */
export function pngFile(name: string, width = 640, height = 480, mark = 0): File {
  return fileOf(png(width, height, mark), name);
}

/** An event of the clipboard or of a drag, of which the test's page has no kind of its own. */
export function carrying(
  type: 'paste' | 'dragenter' | 'dragover' | 'dragleave' | 'drop',
  files: readonly File[],
  texts: Record<string, string> = {},
): Event {
  const event = new Event(type, { bubbles: true, cancelable: true });
  const carried = {
    files,
    types: [...(files.length > 0 ? ['Files'] : []), ...Object.keys(texts)],
    getData: (kind: string) => texts[kind] ?? '',
    dropEffect: 'none',
  };
  return Object.assign(event, { [type === 'paste' ? 'clipboardData' : 'dataTransfer']: carried });
}
