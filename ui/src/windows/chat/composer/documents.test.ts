/** The documents of a chat: its chip, its panel, and when they are searched. */

import { describe, expect, it, vi } from 'vitest';

import { DEFAULT_CHAT_SETTINGS } from '../../../bindings/constants';
import { addCollections } from '../../../host/fake/documentExamples';
import { all, click, field, host, open, pass, the, useWindow } from '../../../testing/window';

useWindow();

const textOf = (name: string): string => the(name).textContent?.replace(/\s+/g, ' ').trim() ?? '';

/** Opens a chat that asks these collections, and whose project asks those. */
async function openChat(own: string[], ofProject: string[] = []): Promise<string> {
  addCollections(host);
  const chat = host.addChat('About boats', Date.now(), { ...DEFAULT_CHAT_SETTINGS, model: 'pebble', collections: own });
  const { id } = await host.createProject('Sailing');
  await host.setProjectCollections(id, ofProject);
  await host.moveChat(chat.summary.id, id);
  await open('chat', chat.summary.id);
  return chat.summary.id;
}

const settings = async (id: string) => (await host.chat(id)).settings;

async function openPanel(): Promise<void> {
  await click('composer-add');
  await click('documents');
}

describe('the documents of a chat', () => {
  it('are chosen beside those of its project', async () => {
    const id = await openChat([], ['harbour']);
    expect(textOf('documents-chip')).toBe('1 source');
    await click('documents-chip');
    expect(textOf('project-collections')).toContain('From project “Sailing” Harbour 38 files read');
    // Those of the project are not chosen once more.
    expect(all('collection-switch')).toHaveLength(3);
    all('collection-switch')[0]?.click();
    await pass(50);
    expect((await settings(id)).collections).toEqual(['thesis']);
    expect(textOf('documents-chip')).toBe('2 sources');
    all('collection-switch')[0]?.click();
    await pass(50);
    expect((await settings(id)).collections).toEqual([]);
  });

  it('are added from the panel, and those that are gone can be switched off', async () => {
    const id = await openChat(['nowhere']);
    await openPanel();
    expect(all('gone-collection-switch')).toHaveLength(1);
    await click('gone-collection-switch');
    await pass(50);
    expect((await settings(id)).collections).toEqual([]);
    await click('add-files');
    await pass(100);
    expect((await settings(id)).collections).toEqual([host.keptCollections.at(-1)?.view.id]);
  });

  it('are none at first', async () => {
    const chat = host.addChat('About tea', Date.now());
    await open('chat', chat.summary.id);
    expect(all('documents-chip')).toEqual([]);
    await openPanel();
    expect(textOf('no-documents')).toContain('No documents yet');
  });

  it('are searched when the chat says so', async () => {
    const id = await openChat(['harbour']);
    await openPanel();
    expect(field('retrieval-automatic').checked).toBe(true);
    field('retrieval-off').click();
    await pass(50);
    expect((await settings(id)).retrieval).toBe('off');
    expect(textOf('documents-chip')).toBe('Documents off');
    field('retrieval-tools').click();
    await pass(50);
    expect((await settings(id)).retrieval).toBe('tools');
  });

  it('are not left to a model that calls no tools', async () => {
    const known = await host.capabilities('pebble');
    vi.spyOn(host, 'capabilities').mockResolvedValue({ ...known, tools: false });
    await openChat(['harbour']);
    await openPanel();
    expect(field('retrieval-tools').disabled).toBe(true);
    expect(textOf('retrieval')).toContain('This model doesn’t support tools.');
  });

  it('are managed in a sheet with all of them', async () => {
    await openChat(['harbour']);
    await click('documents-chip');
    await click('manage-documents');
    expect(all('collection')).toHaveLength(4);
    expect(all('documents-panel')).toEqual([]);
  });
});
