/** Images of a collection: the offer to read them, the progress, and the end. */

import { describe, expect, it, vi } from 'vitest';

import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import { addPhotos } from '../../host/fake/documentExamples';
import { all, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

const GEMMA = 'mlx-community/gemma-4-e4b-it-4bit';
const QWEN = 'mlx-community/Qwen3-VL-4B-Instruct-4bit';
const textOf = (name: string): string => the(name).textContent?.replace(/\s+/g, ' ').trim() ?? '';

/** Opens all documents from a chat with this model. */
async function show(model: string | null): Promise<void> {
  addPhotos(host);
  const chat = host.addChat('About boats', Date.now(), { ...DEFAULT_CHAT_SETTINGS, model, collections: ['photos'] });
  await open('chat', chat.summary.id);
  await click('documents-chip');
  await click('manage-documents');
  await pass(10);
}

const photos = () => {
  const kept = host.keptCollections.find(({ view }) => view.id === 'photos');
  if (!kept) throw new Error('the photos are there');
  return kept;
};

describe('images that no model has read', () => {
  it('are counted and listed, and no failure', async () => {
    await show(QWEN);
    expect(textOf('collection-amounts')).toBe('1 file read · 1 passage · 3 images not read');
    await click('collection-files-toggle');
    await pass(10);
    expect(all('collection-file').map((row) => row.textContent?.replace(/\s+/g, ' ').trim())).toEqual([
      'boat.jpg image, not read',
      'broken.png image, not read',
      'pier.jpg image, not read',
    ]);
    expect(photos().view.image_reading).toBe(null);
  });

  it('are read by the model of the chat, if it can', async () => {
    await show(QWEN);
    expect(textOf('read-images')).toBe('Read 3 images with Qwen3-VL 4B');
    expect(all('find-vision-model')).toEqual([]);
  });

  it('are read by another model that can, which is chosen from all of them', async () => {
    const asked = vi.spyOn(host, 'readCollectionImages');
    await show('mlx-community/gpt-oss-20b');
    expect(textOf('read-images')).toBe('Read 3 images with Gemma 4 E4B');
    await click('images-model');
    expect(all('images-model-choice').map(({ textContent }) => textContent?.trim())).toEqual(['Qwen3-VL 4B']);
    await click('images-model-choice');
    await pass(10);
    expect(textOf('read-images')).toBe('Read 3 images with Qwen3-VL 4B');
    // A choice alone reads nothing.
    expect(asked).not.toHaveBeenCalled();
    await click('read-images');
    expect(asked.mock.calls).toEqual([['photos', QWEN]]);
  });

  it('need a model, which the Models window offers', async () => {
    host.local = host.local.map((model) => ({ ...model, supports_vision: false }));
    const shown = vi.spyOn(host, 'showPage');
    await show('pebble');
    expect(textOf('images-no-model')).toBe('A model that supports images can read these 3 images.');
    expect(all('read-images')).toEqual([]);
    await click('find-vision-model');
    expect(shown.mock.calls).toEqual([['discover', null]]);
  });

  it('offer a larger model beside the one that came with the app', async () => {
    host.local = host.local.map((model) => ({ ...model, supports_vision: model.built_in }));
    await show(null);
    expect(textOf('read-images')).toBe('Read 3 images with Pebble');
    expect(all('images-model')).toEqual([]);
    expect(all('find-vision-model')).toHaveLength(1);
  });

  it('are not offered where there are none', async () => {
    await show(QWEN);
    const kept = photos();
    kept.view = { ...kept.view, images: 0 };
    for (const listener of host.collectionListeners) listener();
    await pass(500);
    expect([all('images').length, all('images-running').length]).toEqual([0, 0]);
  });
});

describe('reading images', () => {
  it('tells each image, and a failure with where its reason is', async () => {
    host.pace = 100;
    await show(QWEN);
    await click('read-images');
    await pass(500);
    expect(textOf('images-running')).toContain('Reading image 1 of 3 with Qwen3-VL 4B');
    await pass(1000);
    expect(textOf('images-running')).toContain('Reading image 2 of 3 with Qwen3-VL 4B');
    await pass(5000);
    expect(all('images-running')).toEqual([]);
    expect(textOf('images-failed')).toBe('1 image can’t be read. The list of files shows the reason.');
    expect(textOf('collection-amounts')).toBe('3 files read · 3 passages · 1 file can’t be read');
    await click('collection-files-toggle');
    await pass(10);
    expect(all('collection-file').map(({ dataset }) => dataset['state'])).toEqual(['failed']);
  });

  it('waits for its turn', async () => {
    await show(QWEN);
    const kept = photos();
    const reading = { model: GEMMA, done: 0, of: 0, failed: 0, is_running: true, problem: null };
    kept.view = { ...kept.view, image_reading: reading };
    for (const listener of host.collectionListeners) listener();
    await pass(500);
    expect(textOf('images-running')).toContain('Waiting to read images with Gemma 4 E4B…');
  });

  it('is stopped, and what was read stays', async () => {
    host.pace = 100;
    await show(QWEN);
    await click('read-images');
    await pass(1500);
    await click('images-stop');
    await pass(3000);
    expect(all('images-running')).toEqual([]);
    expect(textOf('collection-amounts')).toBe('2 files read · 2 passages · 2 images not read');
    expect(textOf('read-images')).toBe('Read 2 images with Qwen3-VL 4B');
  });

  it('says why the model could not do it', async () => {
    await show(QWEN);
    const kept = photos();
    const problem = { code: 'model_broken' as const, message: 'a file of the model is missing' };
    const reading = { model: QWEN, done: 0, of: 3, failed: 0, is_running: false, problem };
    kept.view = { ...kept.view, image_reading: reading };
    for (const listener of host.collectionListeners) listener();
    await pass(500);
    expect(textOf('images-problem').length).toBeGreaterThan(10);
    expect(all('read-images')).toHaveLength(1);
  });
});
