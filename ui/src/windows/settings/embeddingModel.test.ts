/** The embedding model in Settings: chosen, how far it is, and found if there is none. */

import { describe, expect, it, vi } from 'vitest';

import type { LocalModel } from '../../bindings/LocalModel';
import { all, choose, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

const ENGLISH = 'sentence-transformers/all-MiniLM-L6-v2';
const MANY = 'intfloat/multilingual-e5-small';

function embedding(reference: string): LocalModel {
  const [model] = host.local;
  if (!model) throw new Error('the host has no model');
  return { ...model, reference, name: reference.split('/')[1] ?? '', kind: 'embedding', built_in: false, problem: null };
}

async function openPage(): Promise<void> {
  await open('settings');
  await click('tab-models');
  await pass(100);
}

const textOf = (name: string): string => the(name).textContent?.replace(/\s+/g, ' ').trim() ?? '';

describe('the embedding model', () => {
  it('is found in the Models window if there is none', async () => {
    host.local = host.local.filter(({ kind }) => kind !== 'embedding');
    const show = vi.spyOn(host, 'showPage');
    await openPage();
    expect(all('embedding-model')).toEqual([]);
    expect(textOf('meaning')).toContain('Search finds only the same words.');
    await click('find-embeddings-multilingual');
    expect(show).toHaveBeenCalledWith('discover', 'multilingual');
  });

  it('is chosen, and the earlier one is used until it has all passages', async () => {
    host.local = [...host.local.filter(({ kind }) => kind !== 'embedding'), embedding(ENGLISH), embedding(MANY)];
    host.embeddings = { model: ENGLISH, searched: ENGLISH, done: 648, of: 648, problem: null };
    await openPage();
    expect(textOf('embedding-model')).toContain('Automatic');
    expect(textOf('meaning')).toBe('Search by meaning with all-MiniLM-L6-v2');
    expect(all('meaning-earlier')).toEqual([]);
    host.embeddings = { model: MANY, searched: ENGLISH, done: 120, of: 648, problem: null };
    await choose('embedding-model', 'multilingual-e5-small');
    await pass(10);
    expect((await host.settings()).embedding_model).toBe(MANY);
    expect(textOf('meaning')).toContain('multilingual-e5-small: 120 of 648 passages ready');
    expect(textOf('meaning-earlier')).toBe('Until then, all-MiniLM-L6-v2 is used.');
    await choose('embedding-model', 'Automatic');
    await pass(10);
    expect((await host.settings()).embedding_model).toBe(null);
  });

  it('has a reranker beside it, and says why it ranks nothing', async () => {
    host.local = [...host.local, { ...embedding(ENGLISH), reference: 'BAAI/bge-reranker-base', name: 'bge-reranker-base', kind: 'reranker' }];
    await openPage();
    expect(all('reranker')).toEqual([]);
    host.reranking = { model: 'BAAI/bge-reranker-base', problem: null };
    for (const listener of host.collectionListeners) listener();
    await pass(300);
    expect(textOf('reranker')).toBe('Results are ranked by bge-reranker-base.');
    host.reranking = { model: 'BAAI/bge-reranker-base', problem: 'a file of the model is missing' };
    for (const listener of host.collectionListeners) listener();
    await pass(300);
    expect(all('reranker')).toEqual([]);
    expect(textOf('meaning')).toContain('Ranking failed, so results are in the order of the search: a file of the model is missing');
  });

  it('that is gone can be replaced', async () => {
    host.local = [...host.local.filter(({ kind }) => kind !== 'embedding'), embedding(MANY)];
    host.app = { ...host.app, embedding_model: ENGLISH };
    await openPage();
    expect(textOf('embedding-model')).toContain('all-MiniLM-L6-v2');
    await choose('embedding-model', 'multilingual-e5-small');
    await pass(10);
    expect((await host.settings()).embedding_model).toBe(MANY);
  });
});
