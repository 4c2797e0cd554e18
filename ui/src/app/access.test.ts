import axe from 'axe-core';
import { expect, it, vi } from 'vitest';

import { addCitingChat, addCollections } from '../host/fake/documentExamples';
import { textPart } from '../host/fake';
import { click, host, open, pass, useWindow } from '../testing/window';

useWindow();

const RICH =
  'A [link](https://example.org), **words** and `code`.\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```rust\nfn main() {}\n```\n\n```mermaid\ngraph TD\n  A --> B\n```\n\n- [x] done\n\nA note[^1] and $x^2$.\n\n[^1]: Below.\n';

/**
 * The accessibility faults that axe reports. Colors, and a page that holds all of this, are checked in the real
 * window.
 */
async function issues(state: string): Promise<string[]> {
  vi.useRealTimers();
  const rules = { 'color-contrast': { enabled: false }, 'html-has-lang': { enabled: false } };
  const { violations } = await axe.run(document, { resultTypes: ['violations'], rules });
  vi.useFakeTimers();
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return serious.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${state}: ${id}: ${target.join(' ')}`));
}

it('keeps nobody out who uses a screen reader', { timeout: 120_000 }, async () => {
  const found: string[] = [];
  const look = async (state: string): Promise<void> => void found.push(...(await issues(state)));
  const chat = host.addChat('Rich', Date.now());
  host.addTurn(chat, 'A question', {
    parts: [{ kind: 'thinking', text: 'hm', started_at: 0, ended_at: 1000 }, textPart(RICH)],
  });
  const { id } = await host.createProject('Tea');
  await host.moveChat(chat.summary.id, id);
  await host.putProjectFile(id, await host.addFile(new TextEncoder().encode('one\n'), 'one.txt', ''));
  const [first = '', ...others] = addCollections(host);
  await host.setProjectCollections(id, [first, ...others]);
  const citing = addCitingChat(host, first, null);
  await open('chat');
  await look('empty chat');
  await open('chat', chat.summary.id);
  await pass(200);
  await click('thought-toggle');
  await look('chat');
  for (const [opens, then] of [
    ['chat-menu', 'export-chat'],
    ['title-menu', null],
    ['app-menu', 'menu-chat'],
    ['chat-menu', 'move-chat-to-project'],
    ['open-kept', null],
    ['model-picker', null],
    ['composer-add', 'two-answers'],
    ['composer-add', 'tools'],
    ['composer-add', 'documents'],
    ['edit-question', null],
    ['project-menu', 'open-project'],
  ] as const) {
    await open('chat', chat.summary.id);
    await click(opens);
    await look(opens);
    if (then) await click(then);
    if (then) await look(then);
  }
  await open('chat', citing);
  await pass(200);
  await look('chat with citations');
  for (const opens of ['question-passages', 'open-passage']) {
    await click(opens);
    await look(opens);
  }
  await open('chat', chat.summary.id);
  await click('chat-project');
  await click('collection-files-toggle');
  await look('files of a collection');
  for (const name of ['models', 'settings'] as const) {
    await open(name);
    await pass(100);
    for (const tab of document.querySelectorAll<HTMLElement>('[role=tab]')) {
      tab.click();
      await pass(100);
      await look(`${name}, ${tab.textContent}`);
    }
  }
  expect(found).toEqual([]);
});
