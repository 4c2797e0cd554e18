import { describe, expect, it } from 'vitest';

import type { Reason } from '../../../bindings/Reason';
import type { StoredMessage } from '../../../bindings/StoredMessage';
import { click, host, open, pass, the, useWindow } from '../../../testing/window';

useWindow();

/** A window with one chat that holds this answer. */
async function openAnswer(answer: Partial<StoredMessage>): Promise<void> {
  const chat = host.addChat('A chat', Date.now());
  host.addTurn(chat, 'A question', answer);
  await open('chat', chat.summary.id);
}

describe('an answer that ended early', () => {
  it('says why it failed and can be tried again', async () => {
    await openAnswer({ state: 'failed', error: { code: 'engine', message: 'The engine failed.' } });
    expect(the('error-box').textContent).toContain('The model failed to run');
    expect(the('error-box').textContent).toContain('Copy details');
    the('error-box').querySelector('button')?.click();
    await pass(50);
    expect(the('message-assistant').dataset.state).toBe('streaming');
  });

  it('offers a page that helps, or to load the model although memory is short', async () => {
    const needed = { needed: 28_700_000_000, free: 20_000_000_000 };
    await openAnswer({ state: 'failed', error: { code: 'model_broken', message: 'tokenizer.json is missing' } });
    await click('remedy');
    expect(host.shownPages).toEqual(['local']);
    await openAnswer({ state: 'failed', error: { code: 'memory_short', reason: 'model_memory', arguments: needed, message: '' } });
    expect(the('error-box').textContent).toContain('This model needs 28.7 GB and 20.0 GB can be used.');
    expect(the('remedy').textContent).toBe('Load anyway');
    await click('remedy');
    await pass(50);
    expect(host.loadedAnyway).toEqual(['pebble']);
    expect(the('message-assistant').dataset.state).toBe('streaming');
  });

  it('offers to compute on the processor what is too large for the graphics card', async () => {
    const needed = { needed: 80_000_000_000, free: 24_000_000_000 };
    const failed = (reason: Reason) =>
      openAnswer({ state: 'failed', error: { code: 'memory_short', reason, arguments: needed, message: '' } });
    await failed('card_memory');
    expect(the('error-box').textContent).toContain('This model needs 80.0 GB and the GPU has 24.0 GB.');
    expect(the('remedy').textContent).toBe('Compute on the processor');
    await click('remedy');
    await pass(50);
    expect(host.app.engine).toEqual({ unload_after: null, prefix_cache: null, threads: null, device: 'cpu' });
    expect(the('message-assistant').dataset.state).toBe('streaming');
    await failed('card_and_memory');
    expect(the('remedy').textContent).toBe('Find another model');
  });

  it('says that Ponder was closed', async () => {
    await openAnswer({ state: 'interrupted', parts: [{ kind: 'text', text: 'Half a', started_at: 0, ended_at: 0 }] });
    expect(the('answer-text').textContent?.trim()).toBe('Half a');
    expect(the('error-box').textContent).toContain('Ponder was closed during this response.');
  });
});
