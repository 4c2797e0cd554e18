import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { addCollections } from '../host/fake/documentExamples';
import { fakeHost, type FakeHost } from '../host/fake';
import { Toasts } from '../design/toasts.svelte';
import { Collections } from './collections.svelte';
import { Undo } from './undo.svelte';

let host: FakeHost;
let toasts: Toasts;
let collections: Collections;

beforeEach(async () => {
  vi.useFakeTimers();
  host = fakeHost(1);
  addCollections(host);
  toasts = new Toasts();
  collections = new Collections(host, toasts, new Undo(toasts));
  await collections.open();
});
afterEach(() => vi.useRealTimers());

const pass = (milliseconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(milliseconds);

describe('the collections', () => {
  it('follow what happens to them, and read the list no more often than anybody could look', async () => {
    const list = vi.spyOn(host, 'collections');
    const id = await collections.add('folder');
    expect(collections.find(id ?? '')?.name).toBe('Letters');
    list.mockClear();
    await pass(1000);
    expect(collections.find(id ?? '')).toMatchObject({ read: 12, waiting: 0, activity: { kind: 'idle' } });
    // More than twelve changes were announced.
    expect(list.mock.calls.length).toBeLessThan(6);
  });

  it('stay as they were if nothing was chosen', async () => {
    host.closesDialogs = true;
    const before = collections.list;
    expect(await collections.add('files')).toBeNull();
    expect(collections.list).toBe(before);
  });

  it('are renamed, which is undone by the key', async () => {
    await collections.rename('harbour', '  Harbor\n');
    expect(collections.nameOf('harbour')).toBe('Harbor');
    await collections.rename('harbour', ' ');
    expect(collections.nameOf('harbour')).toBe('Harbor');
    expect(collections.nameOf('gone')).toBe('Deleted documents');
  });

  it('keep what was read when they cannot be read again, and say why', async () => {
    vi.spyOn(host, 'collections').mockRejectedValueOnce({ code: 'storage', message: 'no' });
    await collections.refresh();
    expect(collections.problem?.code).toBe('storage');
    expect(collections.list).toHaveLength(4);
    await collections.refresh();
    expect(collections.problem).toBeNull();
  });

  it('say what could not be changed', async () => {
    await collections.pause('nowhere', true);
    expect(toasts.shown).toHaveLength(1);
  });
});
