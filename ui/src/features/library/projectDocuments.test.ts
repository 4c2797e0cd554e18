import { beforeEach, describe, expect, it, vi } from 'vitest';

import { addCollections } from '../../host/fake/documentExamples';
import { chooseLanguage } from '../../locales/languages.svelte';
import { all, click, host, open, pass, the, useWindow, write } from '../../testing/window';

useWindow();

const kept = async (): Promise<string[]> => (await host.projects())[0]?.collections ?? [];
const states = (): (string | undefined)[] => all('collection').map(({ dataset }) => dataset['state']);
const textOf = (name: string): string => the(name).textContent?.replace(/\s+/g, ' ').trim() ?? '';

/** Opens the sheet of a project with these collections. */
async function show(collections: string[]): Promise<void> {
  const chat = host.addChat('About boats', Date.now());
  const { id } = await host.createProject('Sailing');
  await host.setProjectCollections(id, collections);
  await host.moveChat(chat.summary.id, id);
  await open('chat', chat.summary.id);
  await click('chat-project');
}

/** The collection at this place. */
function at(place: number, name: string): HTMLElement {
  const found = all('collection')[place]?.querySelector<HTMLElement>(`[data-testid="${name}"]`);
  if (!found) throw new Error(`collection ${place} has no ${name}`);
  return found;
}

describe('the documents of a project', () => {
  it('are none at first, and offer to be added', async () => {
    await show([]);
    expect(textOf('no-documents')).toContain('No documents yet');
    expect(all('existing-collections')).toEqual([]);
    await click('add-folder');
    await pass(100);
    expect(all('collection')).toHaveLength(1);
    expect(await kept()).toEqual([host.keptCollections[0]?.view.id]);
    await pass(2000);
    expect(textOf('collection-state')).toContain('Up to date');
    expect(textOf('collection-amounts')).toBe('12 files read · 48 passages');
  });

  it('are none still if the dialog was closed', async () => {
    host.closesDialogs = true;
    await show([]);
    await click('add-files');
    await pass(50);
    expect(await kept()).toEqual([]);
  });

  it('that cannot be listed say why, and are read again', async () => {
    vi.spyOn(host, 'collections').mockRejectedValueOnce({ code: 'storage', message: 'no' });
    await show([]);
    expect(all('documents-problem')).toHaveLength(1);
    await click('documents-again');
    await pass(10);
    expect(all('documents-problem')).toEqual([]);
  });
});

describe('collections in every state', () => {
  beforeEach(async () => {
    await show(addCollections(host));
  });

  it('say it in words', () => {
    expect(states()).toEqual(['idle', 'reading', 'paused', 'failed']);
    const words = all('collection-state').map((line) => line.textContent?.trim());
    expect(words.slice(0, 3)).toEqual([
      'Up to date · checked 4 minutes ago',
      'Reading 12 of 340',
      'Paused · 60 files waiting',
    ]);
    expect(words[3]).toContain('Folder not found.');
    expect(at(0, 'collection-amounts').textContent).toBe('38 files read · 212 passages · 2 files can’t be read');
    expect(at(0, 'collection-left-out').textContent).toBe('Left out: hidden 12, no permission 2, too large 1');
    expect(document.querySelector('[role=progressbar]')?.getAttribute('aria-valuenow')).toBe('4');
  });

  it('are paused, go on, and are looked through again', async () => {
    at(1, 'pause-collection').click();
    await pass(300);
    expect(states()[1]).toBe('paused');
    at(1, 'pause-collection').click();
    await pass(20);
    expect(host.keptCollections[1]?.view.activity.kind).not.toBe('paused');
    at(0, 'update-collection').click();
    await pass(0);
    expect(host.keptCollections[0]?.view.activity.kind).toBe('looking');
  });

  it('list what was not read with the reason, and all files on demand', async () => {
    at(0, 'collection-files-toggle').click();
    await pass(10);
    expect(all('collection-file').map((row) => row.textContent?.replace(/\s+/g, ' ').trim())).toEqual([
      'harbour/berths.pdf File is protected',
      'harbour/chart.dwg File type not supported',
      'harbour/film.mov too large',
      'harbour/keys.txt no permission',
    ]);
    await click('files-filter-all');
    expect(all('collection-file').length).toBeGreaterThan(20);
  });

  it('say in the language of the window why one is not watched, or cannot be read', async () => {
    const unwatched = all('collection-unwatched').map(({ textContent }) => textContent?.trim());
    expect(unwatched).toEqual([
      'Changes are found when Ponder starts, or when you check. The system watches no more folders (fs.inotify.max_user_watches).',
    ]);
    const state = () => all('collection-state').at(-1)?.textContent?.trim();
    expect(state()).toBe('Folder not found. Connect its disk, or remove the folder from the list.');
    await chooseLanguage(['de']);
    await pass(50);
    expect(state()).toContain('Ordner');
    await chooseLanguage(['en']);
  });

  it('draw a few of ten thousand files', async () => {
    const [first] = host.keptCollections;
    if (!first) throw new Error('there is one');
    first.files = Array.from({ length: 10_000 }, (_, at) => ({
      path: `file ${at}`,
      bytes: 1,
      state: { kind: 'failed' as const, error: { code: 'file_broken' as const, message: 'this file cannot be read' } },
    }));
    at(0, 'collection-files-toggle').click();
    await pass(50);
    expect(all('collection-file').length).toBeGreaterThan(5);
    expect(all('collection-file').length).toBeLessThan(200);
  });

  it('are taken out, which can be undone, and chosen again', async () => {
    at(0, 'collection-menu').click();
    await pass(0);
    await click('remove-collection');
    await pass(50);
    expect(await kept()).toEqual(['thesis', 'letters', 'backup']);
    expect(textOf('collection-removed')).toContain('Removed “Harbour” from “Sailing”.');
    await click('put-collection-back');
    await pass(50);
    expect(await kept()).toEqual(['thesis', 'letters', 'backup', 'harbour']);
    at(0, 'collection-menu').click();
    await pass(0);
    await click('remove-collection');
    await pass(50);
    await click('existing-collections');
    await click('existing-collection');
    await pass(50);
    expect(await kept()).toEqual(['letters', 'backup', 'harbour', 'thesis']);
  });

  it('are renamed in their place', async () => {
    at(0, 'collection-menu').click();
    await pass(0);
    await click('rename-collection');
    await write('collection-name-field', 'Harbor');
    the('collection-name-field').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    await pass(50);
    expect(host.keptCollections[0]?.view.name).toBe('Harbor');
  });

  it('are deleted from Ponder only after a question', async () => {
    at(0, 'collection-menu').click();
    await pass(0);
    await click('delete-collection-asks');
    expect(host.keptCollections).toHaveLength(4);
    await click('delete-collection-confirm');
    await pass(50);
    expect(host.keptCollections).toHaveLength(3);
    expect(await kept()).toEqual(['thesis', 'letters', 'backup']);
    expect(all('collection-removed')).toEqual([]);
  });

  it('lead to a model for the search by meaning, or say how far it is', async () => {
    expect(textOf('meaning')).toContain('Search finds only the same words.');
    const asked = vi.spyOn(host, 'showPage');
    await click('find-embeddings-multilingual');
    expect(asked).toHaveBeenCalledWith('discover', 'multilingual');
    host.embeddings = { model: 'sentence-transformers/all-MiniLM-L6-v2', searched: null, done: 120, of: 648, problem: null };
    await host.renameCollection('backup', 'Backup 2');
    await pass(500);
    expect(textOf('meaning')).toBe('Search by meaning with all-MiniLM-L6-v2: 120 of 648 passages ready');
    host.embeddings = { ...host.embeddings, problem: 'no memory' };
    await host.renameCollection('backup', 'Backup');
    await pass(500);
    expect(textOf('meaning')).toBe('Search by meaning failed: no memory');
  });
});

describe('a collection that was deleted', () => {
  it('is shown as such, and can be taken out', async () => {
    await show(['nowhere']);
    expect(textOf('gone-collection')).toContain('were deleted from Ponder');
    await click('remove-gone');
    await pass(50);
    expect(await kept()).toEqual([]);
  });
});
