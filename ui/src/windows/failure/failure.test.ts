import { afterEach, describe, expect, it } from 'vitest';

import { chooseLanguage } from '../../locales/languages.svelte';
import { all, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();
afterEach(() => chooseLanguage(['en']));

describe('the window of an app that could not start', () => {
  it.each([
    ['en', 'Couldn’t read or save data. Everything saved before is safe. Try again.'],
    ['de', 'Lesen oder Sichern fehlgeschlagen. Was vorher gesichert war, ist sicher. Noch einmal versuchen.'],
  ])('says why in sentences (%s)', async (language, sentence) => {
    await chooseLanguage([language]);
    await open('failure');
    expect([...the('failure').querySelectorAll('p')].map((line) => line.textContent)).toContain(sentence);
  });
});

describe('the window of a damaged history', () => {
  const error = { code: 'history_damaged', message: 'it is damaged' } as const;
  const contents = (chats: number) => ({ chats, messages: chats * 5 });
  const full = async (): Promise<never> => {
    throw { code: 'storage', reason: 'history_disk_full', message: 'the disk is full' };
  };

  it('says what is left before anything is replaced, and repairs what was chosen', async () => {
    host.damage = { known_chats: 1012, readable: contents(1008), backup: { made_at: Date.now() - 1_200_000, contents: contents(2) }, together: contents(1009) };
    await open('failure', '', { error });
    await pass(1);
    const left = the('damage-left').textContent ?? '';
    expect(left.match(/[\d,]*\d chats/g)).toEqual(['1,012 chats', '1,008 chats', '2 chats']);
    expect(host.remedies).toEqual([]);
    expect(the('damage-repair').textContent).toContain('1,009 chats');
    await click('damage-repair');
    await pass(1);
    expect(the('damage-done').textContent).toContain('history-damaged-1795600000000.sqlite');
    expect(document.title).toBe('Your chat history is repaired');
    expect([all('failure-read').length, all('failure-anew').length]).toEqual([0, 0]);
    await click('damage-open');
    await pass(1);
    expect(host.remedies).toEqual(['everything', 'open']);
  });

  it('takes the backup alone if that is chosen', async () => {
    host.damage = { known_chats: 9, readable: contents(1), backup: { made_at: 0, contents: contents(8) }, together: contents(9) };
    await open('failure', '', { error });
    await pass(1);
    await click('damage-backup');
    await pass(1);
    expect(host.remedies).toEqual(['backup']);
    expect(the('damage-done').textContent).toContain('8 chats');
  });

  it('says why it could not count, and counts again', async () => {
    const examine = host.examineHistory;
    host.examineHistory = full;
    await open('failure', '', { error, running: true });
    expect(the('failure').textContent).toContain('Disk is full. Your saved chats are safe.');
    expect([all('damage-counting').length, all('damage-open').length]).toEqual([0, 1]);
    host.examineHistory = examine;
    await click('damage-examine-again');
    await pass(1);
    expect([all('damage-left').length, all('damage-open').length]).toEqual([1, 1]);
  });

  it.each([true, false])('offers to open Ponder after a repair that failed (running: %s)', async (running) => {
    host.damage = { known_chats: 9, readable: contents(9), backup: null, together: contents(9) };
    const repair = host.repairHistory;
    host.repairHistory = full;
    await open('failure', '', { error, running });
    expect(all('damage-open')).toEqual([]);
    await click('damage-repair');
    await pass(1);
    expect(the('failure').textContent).toContain('Disk is full. Your saved chats are safe.');
    await click('damage-open');
    await pass(1);
    host.repairHistory = repair;
    await click('damage-repair');
    await pass(1);
    expect(host.remedies).toEqual(['open', 'everything']);
    expect(all('damage-open')).toHaveLength(1);
  });

  it.each([
    ['en', '1 chat was stored. 1 chat can be read.'],
    ['de', '1 Chat war gespeichert. Lesbar: 1 Chat.'],
    ['ar', 'المحفوظ سابقًا: \u2068محادثة واحدة\u2069. ما يمكن قراءته: \u2068محادثة واحدة\u2069.'],
  ])('counts a single chat as one (%s)', async (language, sentence) => {
    await chooseLanguage([language]);
    host.damage = { known_chats: 1, readable: contents(1), backup: null, together: contents(1) };
    await open('failure', '', { error });
    expect(the('damage-left').textContent?.trim()).toBe(sentence);
  });

  it('offers no repair if nothing can be read, and none of the ways of a start while the app runs', async () => {
    await open('failure', '', { error });
    await pass(1);
    expect(all('damage-repair').length + all('damage-backup').length).toBe(0);
    expect(all('failure-anew')).toHaveLength(1);
    await open('failure', '', { error, running: true });
    await pass(1);
    expect(all('failure-anew').length + all('failure-read').length).toBe(0);
    await click('damage-open');
    expect(host.remedies).toEqual(['open']);
  });
});
