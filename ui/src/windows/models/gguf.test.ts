/** GGUF files of other programs in the Models window. */

import { describe, expect, it } from 'vitest';

import { all, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

async function openLocal(): Promise<void> {
  await open('models');
  await click('tab-local');
  await pass(0);
}

function row(name: string): HTMLElement {
  const found = all('gguf-row').find((one) => one.textContent?.includes(name));
  if (!found) throw new Error(`no row of ${name}`);
  return found;
}

function press(name: string, test: string): void {
  row(name).querySelector<HTMLElement>(`[data-testid="${test}"]`)?.click();
}

describe('models of other programs', () => {
  it('are listed with their program, size and what is wrong', async () => {
    await openLocal();
    expect(all('gguf-row').map((one) => one.querySelector('p')?.textContent)).toEqual([
      'Ollama · 2.0 GB',
      'Ollama · 274 MB',
      'LM Studio · 2.5 GB',
    ]);
    expect(row('nomic-embed').textContent).toContain('architecture nomic-bert');
    expect(row('nomic-embed').querySelector('[data-testid="import-gguf"]')).toBeNull();
  });

  it('become models, with the progress and the loss', async () => {
    await openLocal();
    press('Qwen3-4B', 'import-gguf');
    await pass(50);
    expect(the('gguf-running').textContent).toContain('Importing');
    await pass(10_000);
    expect(row('Qwen3-4B').textContent).toContain('changed by 0.02% on average');
    press('llama3.2', 'import-gguf');
    await pass(10_000);
    expect(row('llama3.2').textContent).toContain('Imported without loss.');
    expect(all('model-row').some((one) => one.dataset['reference'] === '/data/models/llama3.2-3b')).toBe(true);
    press('llama3.2', 'chat-with-gguf');
    await pass(0);
    expect(host.chatsWith).toEqual(['/data/models/llama3.2-3b']);
  });

  it('can be stopped, and say why they failed', async () => {
    await openLocal();
    press('llama3.2', 'import-gguf');
    await pass(50);
    await click('stop-gguf');
    await pass(10_000);
    expect(row('llama3.2').querySelector('[data-testid="import-gguf"]')).not.toBeNull();
    host.chosenFiles = ['/downloads/broken.gguf'];
    await click('choose-gguf');
    await pass(10_000);
    expect(row('broken.gguf').querySelector('[data-testid="gguf-failed"]')).not.toBeNull();
    press('broken.gguf', 'import-gguf');
    await pass(50);
    expect(row('broken.gguf').querySelector('[data-testid="gguf-running"]')).not.toBeNull();
  });

  it('are made of files that are dropped on the window', async () => {
    await openLocal();
    const folders = all('own-folder').length;
    host.drop('/downloads/Tiny.GGUF');
    await pass(10_000);
    expect(row('Tiny').textContent).toContain('Imported');
    expect(all('own-folder')).toHaveLength(folders);
  });

  it('that are imported already say so', async () => {
    await openLocal();
    press('llama3.2', 'import-gguf');
    await pass(10_000);
    await openLocal();
    await pass(0);
    expect(row('llama3.2').textContent).toMatch(/Imported/);
  });
});
