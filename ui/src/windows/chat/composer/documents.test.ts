/** The documents of a chat: its chip, its panel, and when they are searched. */

import { describe, expect, it, vi } from 'vitest';

import { DEFAULT_CHAT_SETTINGS } from '../../../bindings/constants';
import { addCollections } from '../../../host/fake/documentExamples';
import { all, click, composer, field, host, open, pass, the, type, useWindow } from '../../../testing/window';

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

describe('reading everything', () => {
  async function openSheet(): Promise<void> {
    await click('documents-chip');
    await click('read-everything');
    await pass(10);
  }

  const kindsOf = async (id: string): Promise<string[]> =>
    ((await host.chat(id)).messages[0]?.parts ?? []).map(({ kind }) => kind);

  it('costs what the sheet says, and its response says that everything was read', async () => {
    const id = await openChat([], ['harbour']);
    await type('How many boats are there?');
    await openSheet();
    expect(all('documents-panel')).toEqual([]);
    expect(textOf('reading-cost')).toContain('Reads 212 passages in 14 parts, about 46,000 tokens');
    expect(textOf('reading-cost')).toContain('Estimated time: 5 min');
    expect(await kindsOf(id)).toEqual([]);
    await click('reading-confirm');
    expect(textOf('reading-note')).toContain('Reading all documents: 1 of 14');
    await pass(5000);
    expect(await kindsOf(id)).toEqual(['passages', 'file', 'text']);
    expect(textOf('answer-coverage')).toContain('Read all');
    expect(all('reading-note')).toEqual([]);
    expect(composer().value).toBe('');
  });

  it('is stopped without a trace, and the message is in the draft again', async () => {
    const id = await openChat(['harbour']);
    host.pace = 20;
    await type('How many boats are there?');
    await openSheet();
    await click('reading-confirm');
    await pass(20);
    await click('stop-reading');
    await pass(1000);
    expect(all('reading-note')).toEqual([]);
    expect(await kindsOf(id)).toEqual([]);
    expect(composer().value).toBe('How many boats are there?');
  });

  it('needs a message, and tells why documents cannot be counted', async () => {
    host.readingSeconds = null;
    await openChat(['harbour']);
    await openSheet();
    expect(textOf('reading-cost')).not.toContain('Estimated time');
    expect(all('reading-no-message')).toHaveLength(1);
    expect(the('reading-confirm').matches(':disabled')).toBe(true);
    await click('reading-cancel');
    vi.spyOn(host, 'readingCost').mockRejectedValue({ code: 'storage', message: 'the index could not be read' });
    await openSheet();
    expect(all('reading-problem')).toHaveLength(1);
    expect(the('reading-confirm').matches(':disabled')).toBe(true);
  });

  it('is offered in a new chat, which begins with it', async () => {
    addCollections(host);
    await open('chat');
    await openPanel();
    all('collection-switch')[0]?.click();
    await pass(50);
    await type('How many boats are there?');
    await click('read-everything');
    await pass(10);
    await click('reading-confirm');
    await pass(5000);
    const [chat] = await host.chats();
    expect(await kindsOf(chat?.id ?? '')).toEqual(['passages', 'file', 'text']);
  });

  it.each([
    ['off', true, false],
    ['tools', true, false],
    ['tools', false, true],
    ['automatic', false, true],
  ] as const)('is offered with %s and tools %s: %s', async (retrieval, tools, offered) => {
    const known = await host.capabilities('pebble');
    vi.spyOn(host, 'capabilities').mockResolvedValue({ ...known, tools });
    addCollections(host);
    const settings = { ...DEFAULT_CHAT_SETTINGS, model: 'pebble', collections: ['harbour'], retrieval };
    await open('chat', host.addChat('About boats', Date.now(), settings).summary.id);
    await click('documents-chip');
    expect(all('read-everything')).toHaveLength(offered ? 1 : 0);
  });
});
