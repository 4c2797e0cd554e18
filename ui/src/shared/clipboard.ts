/** Copies an image, as a PNG, which every program can paste; false if the web view refused. */
export async function copyImage(url: string): Promise<boolean> {
  try {
    // The promise itself is handed over, because the clipboard may only be written right after the press.
    await navigator.clipboard.write([new ClipboardItem({ 'image/png': asPng(url) })]);
    return true;
  } catch {
    return false;
  }
}

async function asPng(url: string): Promise<Blob> {
  const image = new Image();
  // Without this the canvas could not be read.
  image.crossOrigin = 'anonymous';
  image.src = url;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  canvas.getContext('2d')?.drawImage(image, 0, 0);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('no image'))), 'image/png'),
  );
}

/** Copies text; false if the web view refused. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Web views without the clipboard interface still know the older way, which needs a selection.
    const area = document.createElement('textarea');
    area.value = text;
    area.style.position = 'fixed';
    area.style.opacity = '0';
    const focused = document.activeElement;
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return copied;
  }
}
