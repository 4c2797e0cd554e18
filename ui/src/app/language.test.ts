import { afterEach, describe, expect, it, vi } from 'vitest';

import { chooseLanguage, LANGUAGES, type Spoken } from '../locales/languages.svelte';
import { textPart } from '../host/fake';
import { all, choose, click, composer, host, open, pass, the, useWindow } from '../testing/window';

useWindow();
afterEach(() => chooseLanguage(['en']));

/** Waits for the texts of a language, which load when it is chosen. */
async function spoken(language: Spoken): Promise<void> {
  await LANGUAGES[language].read();
  await pass(0);
}

async function write(text: string): Promise<void> {
  composer().value = text;
  composer().dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(0);
}

describe('the language of the windows', () => {
  it('is chosen in Settings, and the window follows at once', async () => {
    await open('settings');
    expect(the('language').textContent?.trim()).toBe('System default');
    await choose('language', 'العربية');
    await spoken('ar');
    expect(host.app.language).toBe('ar');
    expect([document.documentElement.dir, document.title, the('tab-chats').textContent?.trim()]).toEqual([
      'rtl',
      'الإعدادات',
      'المحادثات',
    ]);
    await choose('language', 'Deutsch');
    await spoken('de');
    expect([document.documentElement.dir, document.title, the('tab-chats').textContent?.trim()]).toEqual([
      'ltr',
      'Einstellungen',
      'Chats',
    ]);
    await choose('language', 'Systemstandard');
    await spoken('en');
    expect([host.app.language, document.title]).toEqual([null, 'Settings']);
  });

  it('is that of dates', async () => {
    host.backups = [{ made_at: Date.UTC(2026, 10, 23, 12), bytes: 1000 }];
    await host.changeSettings({ language: 'de' });
    await open('settings');
    await spoken('de');
    await click('tab-privacy');
    await pass(50);
    expect(the('backup').textContent).toContain('23.11.2026');
  });

  it('is that of failed connections, whose own words stay with the host', async () => {
    const [request] = await host.outboundRequests();
    if (!request) throw new Error('there is no request');
    const failure = {
      code: 'network',
      reason: 'host_not_found',
      arguments: { host: 'huggingface.co' },
      message: 'it has no address',
    } as const;
    vi.spyOn(host, 'outboundRequests').mockResolvedValue([{ ...request, failure }]);
    await host.changeSettings({ language: 'de' });
    await open('settings');
    await spoken('de');
    await click('tab-privacy');
    await pass(50);
    expect(the('request').textContent).toContain('huggingface.co nicht gefunden');
    expect(the('request').textContent).not.toContain('it has no address');
  });

  it('changes without a word that was written, and without an end to an answer', async () => {
    await open('chat');
    await write('What is 347 + 589?');
    await click('send');
    await pass(120);
    await write('Half a question');
    const before = composer();
    await host.changeSettings({ language: 'de' });
    await spoken('de');
    expect([composer() === before, composer().value, composer().getAttribute('aria-label')]).toEqual([
      true,
      'Half a question',
      'Nachricht',
    ]);
    expect(the('new-chat').getAttribute('aria-label')).toBe('Neuer Chat');
    await pass(6000);
    expect(the('answer-text').textContent?.trim()).toBe('347 + 589 = 936');
  });

  it('is also that of words inside an answer', async () => {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'A question', { parts: [textPart('- one\n\n  ```\n  a\n  ```\n')] });
    await open('chat', chat.summary.id);
    const copy = (): string | undefined => document.querySelector('[data-copy]')?.textContent ?? undefined;
    expect(copy()).toBe('Copy');
    await host.changeSettings({ language: 'de' });
    await spoken('de');
    await pass(50);
    expect(copy()).toBe('Kopieren');
    expect(all('message-assistant')).toHaveLength(1);
  });
});
