import { expect, it, vi } from 'vitest';

import type { HistoryHits } from '../../bindings/HistoryHits';
import { fakeHost } from '../../host/fake';
import { HistorySearch } from './historySearch.svelte';
import { Toasts } from '../../design/toasts.svelte';

it('looks for the first letter at once, and of those typed while the host looks for the last alone', async () => {
  const host = fakeHost(1);
  const asked: string[] = [];
  const answers: ((found: HistoryHits) => void)[] = [];
  host.searchHistory = ({ text }) => {
    asked.push(text);
    return new Promise((resolve) => answers.push(resolve));
  };
  const historySearch = new HistorySearch(host, new Toasts());
  const found = (chat: string): HistoryHits => ({
    hits: [{ chat, title: '', message: 'm', role: 'user', model: null, at: 0, snippet: '', marks: [] }],
    more: false,
    indexing: false,
  });
  const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));
  const typed: Promise<void>[] = [];
  for (const text of ['r', 'ri', 'riv', 'rive']) {
    typed.push(historySearch.find(text));
    await pause();
  }
  expect(asked).toEqual(['r']);
  answers[0]?.(found('of r'));
  await pause();
  expect([asked, historySearch.hits, historySearch.settled]).toEqual([['r', 'rive'], [], false]);
  answers[1]?.(found('of rive'));
  await Promise.all(typed);
  expect([historySearch.hits.map(({ chat }) => chat), historySearch.settled]).toEqual([['of rive'], true]);
  await historySearch.find('');
  expect([asked.length, historySearch.hits, historySearch.listed]).toEqual([2, [], '']);
});

it('lists words together with what was found of them, or without it if the host takes long', async () => {
  vi.useFakeTimers();
  const host = fakeHost(1);
  const answers: ((found: HistoryHits) => void)[] = [];
  host.searchHistory = () => new Promise((resolve) => answers.push(resolve));
  const nothing: HistoryHits = { hits: [], more: false, indexing: false };
  const historySearch = new HistorySearch(host, new Toasts());
  const quick = historySearch.find('river');
  await vi.advanceTimersByTimeAsync(10);
  expect(historySearch.listed).toBe('');
  answers[0]?.(nothing);
  await quick;
  expect(historySearch.listed).toBe('river');
  void historySearch.find('rivers');
  await vi.advanceTimersByTimeAsync(10);
  expect(historySearch.listed).toBe('river');
  await vi.advanceTimersByTimeAsync(1000);
  expect([historySearch.listed, historySearch.settled]).toEqual(['rivers', false]);
  vi.useRealTimers();
});
