import { expect, it, vi } from 'vitest';

import type { HistoryHits } from '../bindings/HistoryHits';
import { FakeHost } from '../platform/fake';
import { Finding } from './finding.svelte';
import { Toasts } from './toasts.svelte';

it('looks for the first letter at once, and of those typed while the host looks for the last alone', async () => {
  const host = new FakeHost(1);
  const asked: string[] = [];
  const answers: ((found: HistoryHits) => void)[] = [];
  host.searchHistory = ({ text }) => {
    asked.push(text);
    return new Promise((resolve) => answers.push(resolve));
  };
  const finding = new Finding(host, new Toasts());
  const found = (chat: string): HistoryHits => ({ hits: [{ chat, title: '', message: 'm', role: 'user', model: null, at: 0, snippet: '', marks: [] }], more: false, indexing: false });
  const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));
  const typed: Promise<void>[] = [];
  for (const text of ['r', 'ri', 'riv', 'rive']) {
    typed.push(finding.find(text));
    await pause();
  }
  expect(asked).toEqual(['r']);
  answers[0]?.(found('of r'));
  await pause();
  expect([asked, finding.hits, finding.settled]).toEqual([['r', 'rive'], [], false]);
  answers[1]?.(found('of rive'));
  await Promise.all(typed);
  expect([finding.hits.map(({ chat }) => chat), finding.settled]).toEqual([['of rive'], true]);
  await finding.find('');
  expect([asked.length, finding.hits, finding.listed]).toEqual([2, [], '']);
});

it('lists words together with what was found of them, or without it if the host takes long', async () => {
  vi.useFakeTimers();
  const host = new FakeHost(1);
  const answers: ((found: HistoryHits) => void)[] = [];
  host.searchHistory = () => new Promise((resolve) => answers.push(resolve));
  const nothing: HistoryHits = { hits: [], more: false, indexing: false };
  const finding = new Finding(host, new Toasts());
  const quick = finding.find('river');
  await vi.advanceTimersByTimeAsync(10);
  expect(finding.listed).toBe('');
  answers[0]?.(nothing);
  await quick;
  expect(finding.listed).toBe('river');
  void finding.find('rivers');
  await vi.advanceTimersByTimeAsync(10);
  expect(finding.listed).toBe('river');
  await vi.advanceTimersByTimeAsync(1000);
  expect([finding.listed, finding.settled]).toEqual(['rivers', false]);
  vi.useRealTimers();
});
