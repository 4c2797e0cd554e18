/** Quantized copies in the Models window. */

import { describe, expect, it } from 'vitest';

import { all, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

/** Opens the list with a model in 16-bit floats, and its sheet. */
async function openSheet(name = 'Original'): Promise<void> {
  const pebble = host.local.find(({ built_in }) => built_in);
  if (!pebble) throw new Error('no Pebble');
  const path = `/models/${name}`;
  const original = { ...pebble, reference: path, path, name, built_in: false, bytes: 8_000_000_000, quantization: 'bfloat16', quantizable: true };
  host.local = [original];
  await open('models');
  await click('tab-local');
  await pass(0);
  await click('model-menu');
  await click('quantize');
  await pass(0);
}

describe('a quantized copy', () => {
  it('is offered for models that can be quantized', async () => {
    await open('models');
    await click('tab-local');
    await pass(0);
    await click('model-menu');
    expect(all('quantize')).toEqual([]);
  });

  it('has a size in each format', async () => {
    await openSheet();
    expect(the('quantize-eight_bits').textContent).toContain('4.3 GB');
    expect(the('quantize-four_bits').textContent).toContain('2.3 GB');
    expect(the('quantize-four_bits').querySelector('input')?.checked).toBe(true);
  });

  it('is written with progress, compared and ready for a chat', async () => {
    await openSheet();
    await click('start-quantize');
    await pass(50);
    expect(all('quantize-sheet')).toEqual([]);
    expect(the('quantize-status').textContent).toContain('Quantizing');
    await pass(10_000);
    expect(the('quantize-status').dataset['kind']).toBe('done');
    expect(the('quantize-perplexity').textContent).toContain('13.4');
    expect(all('model-row')).toHaveLength(2);
    await click('chat-with-copy');
    await pass(0);
    expect(host.chatsWith).toEqual(['/data/models/Original-four_bits']);
    // It is not made twice.
    const original = all('model-row').find((row) => row.dataset['reference'] === '/models/Original');
    original?.querySelector<HTMLElement>('[data-testid="model-menu"]')?.click();
    await pass(0);
    await click('quantize');
    await pass(0);
    expect(the('quantize-four_bits').textContent).toContain('already have');
    expect((the('start-quantize') as HTMLButtonElement).disabled).toBe(true);
  });

  it('is not compared if that was turned off', async () => {
    await openSheet();
    await click('quantize-compare');
    await click('start-quantize');
    await pass(10_000);
    expect(the('quantize-status').dataset['kind']).toBe('done');
    expect(all('quantize-perplexity')).toEqual([]);
  });

  it('can be stopped, and says why it failed', async () => {
    await openSheet('Huge');
    await click('start-quantize');
    await pass(50);
    await click('stop-quantize');
    await pass(1000);
    expect(all('quantize-status')).toEqual([]);
    await click('model-menu');
    await click('quantize');
    await pass(0);
    await click('start-quantize');
    await pass(10_000);
    expect(the('quantize-status').dataset['kind']).toBe('failed');
    expect(all('model-row')).toHaveLength(1);
  });

  it('of an unknown type is refused with the reason', async () => {
    await openSheet('mystery');
    expect(the('quantize-problem').textContent).not.toBe('');
    expect(all('start-quantize')).toEqual([]);
  });
});
