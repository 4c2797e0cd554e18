/** A context that is nearly full, a question that does not fit, and compaction. */

import { describe, expect, it } from 'vitest';

import { textPart } from '../../host/fake';
import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import { all, click, composer, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

/** Pebble holds 2,048 tokens, and the fake host counts one for each four letters. */
async function openChat(turns: number, letters: number, limit: number | null = null): Promise<string> {
  const chat = host.addChat('A long chat', Date.now(), { ...DEFAULT_CHAT_SETTINGS, context: limit });
  for (let turn = 1; turn <= turns; turn++)
    host.addTurn(chat, `Question ${turn}`, { parts: [textPart('x'.repeat(letters))] });
  await open('chat', chat.summary.id);
  return chat.summary.id;
}

async function ask(text: string): Promise<void> {
  composer().value = text;
  composer().dispatchEvent(new InputEvent('input', { bubbles: true }));
  composer().dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
  await pass(50);
}

/** The remedies that are offered, the main one first; the others are in a menu, which is left open. */
async function remedies(): Promise<string[]> {
  if (all('context-more').length > 0 && all('drop-oldest-turns').length === 0) await click('context-more');
  const offered = the('context-notice').querySelectorAll<HTMLElement>('.buttons [data-testid]');
  return [...offered].flatMap(({ dataset }) => dataset['testid'] ?? []).filter((test) => test !== 'context-more');
}

const LONG = 'y'.repeat(3000);

describe('a context', () => {
  it('is shown with its share, and warns at four fifths', async () => {
    await openChat(2, 3000);
    expect(the('context-share').textContent).toContain('of 2,048 tokens');
    expect(all('context-notice')).toHaveLength(0);
    await openChat(2, 3400);
    expect(the('context-notice').textContent).toContain('83% full');
  });

  it('that is far too small says by how much, and offers only what helps', async () => {
    await openChat(1, 46_711 * 4);
    const said = the('context-notice').textContent ?? '';
    const [, used = '', more = ''] = /needs ([\d,]+) of 2,048 tokens, ([\d,]+) too many/.exec(said) ?? [];
    const figure = (text: string): number => Number(text.replaceAll(',', ''));
    expect(figure(used)).toBeGreaterThanOrEqual(46_711);
    expect(figure(more)).toBe(figure(used) - 2048);
    expect(said).not.toContain('%');
    expect(the('context-share').querySelector('[title]')?.getAttribute('title')).toContain(`${more} too many`);
    expect(await remedies()).toEqual(['fork-with-summary', 'use-larger']);
    expect(the('use-larger').textContent).toContain('128K');
  });

  it('offers a summary first, and the rest in a menu that the keyboard reaches', async () => {
    await openChat(2, 3400);
    expect(all('drop-oldest-turns')).toEqual([]);
    expect(await remedies()).toEqual(['summarize-oldest-turns', 'drop-oldest-turns', 'fork-with-summary', 'use-larger']);
    expect(document.activeElement).toBe(the('drop-oldest-turns'));
  });

  it('offers nothing that makes the chat shorter if the question alone does not fit', async () => {
    await openChat(2, 3000);
    await ask('y'.repeat(4 * 2100));
    expect(await remedies()).toEqual(['use-larger']);
  });

  it('offers no larger model that does not hold the chat either', async () => {
    await openChat(2, 140_000 * 4);
    expect(the('context-notice').textContent).toContain('too many');
    expect(await remedies()).toEqual(['summarize-oldest-turns', 'drop-oldest-turns', 'fork-with-summary']);
  });

  it('offers nothing to leave out once all but one turn is left out', async () => {
    const chat = host.addChat('A long chat', Date.now());
    const compaction_mark = { summary: null };
    host.addTurn(chat, 'Question 1', { parts: [textPart('x')], compaction_mark });
    host.addTurn(chat, 'Question 2', { parts: [textPart('x'.repeat(7000))] });
    await open('chat', chat.summary.id);
    expect(await remedies()).toEqual(['fork-with-summary', 'use-larger']);
  });

  it('that is exceeded several times is offered only models that hold the conversation', async () => {
    // 20,000 tokens.
    await openChat(2, 40_000);
    await remedies();
    expect(the('use-larger').textContent).toContain('128K');
    const holding = (context: number): void => {
      host.local = host.local.map((model) => (model.reference === 'pebble' ? model : { ...model, context }));
    };
    holding(8192);
    await openChat(2, 40_000);
    expect(await remedies()).not.toContain('use-larger');
    // Another tokenizer may make more tokens of it.
    holding(21_000);
    await openChat(2, 40_000);
    expect(await remedies()).not.toContain('use-larger');
    holding(32_768);
    await openChat(2, 40_000);
    expect(await remedies()).toContain('use-larger');
  });

  it('that a question does not fit keeps the words and stores nothing', async () => {
    const id = await openChat(2, 3000);
    await ask(LONG);
    expect(composer().value).toBe(LONG);
    expect(the('context-notice').textContent).toContain('of 2,048 tokens. It wasn’t sent, and your draft is saved.');
    expect((await host.chat(id)).messages).toHaveLength(4);
    expect(all('toast')).toHaveLength(0);
    expect(document.activeElement).toBe(composer());
  });

  it('gets room by forgetting, which is marked and can be taken back', async () => {
    const id = await openChat(2, 3000);
    await ask(LONG);
    await click('context-more');
    await click('drop-oldest-turns');
    await pass(50);
    expect(all('compaction-mark')).toHaveLength(1);
    expect(all('context-notice')).toHaveLength(0);
    expect(composer().value).toBe(LONG);
    expect(document.activeElement).toBe(composer());
    await ask(LONG);
    await pass(3000);
    expect((await host.chat(id)).messages).toHaveLength(6);
    await click('remember-all');
    await pass(50);
    expect(all('compaction-mark')).toHaveLength(0);
  });

  it('gets room by a summary, which can be stopped and written over', async () => {
    const id = await openChat(2, 3000);
    await ask(LONG);
    await click('summarize-oldest-turns');
    await pass(16);
    expect(the('context-notice').textContent).toContain('Processing older messages… 300 of 1,000 tokens');
    await pass(50);
    expect(the('context-notice').textContent).toContain('Writing a summary… 3 tokens');
    await click('stop-summary');
    await pass(300);
    expect(all('compaction-mark')).toHaveLength(0);
    expect(all('toast')).toHaveLength(0);
    await click('summarize-oldest-turns');
    await pass(500);
    expect(the('compaction-summary').textContent).toContain('squares');
    await click('edit-summary');
    const area = the('message-editor');
    if (!(area instanceof HTMLTextAreaElement)) throw new Error('no field');
    area.value = 'Cats.';
    area.dispatchEvent(new InputEvent('input', { bubbles: true }));
    await pass(0);
    await click('keep-edit');
    await pass(50);
    expect(the('compaction-summary').textContent).toBe('Cats.');
    expect((await host.chat(id)).messages).toHaveLength(4);
  });

  it('gets room in a new chat that carries a summary, where the words go along', async () => {
    await openChat(2, 3000);
    await ask(LONG);
    await click('context-more');
    await click('fork-with-summary');
    await pass(500);
    expect(the('chat-title').textContent).toBe('A long chat (continued)');
    expect(the('compaction-summary').textContent).toContain('squares');
    expect(composer().value).toBe(LONG);
    expect(all('message-user')).toHaveLength(0);
  });

  it('is larger with another model, which is offered', async () => {
    const id = await openChat(2, 3000, 2000);
    await ask(LONG);
    await click('context-more');
    expect(the('use-larger').textContent).toContain('128K');
    await click('use-larger');
    await pass(50);
    expect(all('context-notice')).toHaveLength(0);
    await ask(LONG);
    await pass(3000);
    const { messages, settings } = await host.chat(id);
    expect([messages.length, settings.context]).toEqual([6, null]);
  });
});
