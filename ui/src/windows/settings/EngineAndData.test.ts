import { describe, expect, it } from 'vitest';

import { all, click, field, host, open, pass, the, useWindow, write } from '../../testing/window';

useWindow();

describe('Engine', () => {
  it('shows what is in memory and frees it, unless it answers', async () => {
    await open('settings');
    await click('tab-models');
    await pass(0);
    expect(the('loaded-model').textContent).toContain('Pebble');
    expect(the('loaded-model').textContent).toContain('48 MB');
    expect(the('loaded-model').textContent).toContain('CPU (AVX2) · 4 threads · 16-bit activations');
    host.answering.add('pebble');
    await click('unload');
    expect(the('toast').textContent).toContain('Model is in use');
    host.answering.clear();
    await click('unload');
    await pass(0);
    expect(all('loaded-model')).toEqual([]);
    expect(the('none-loaded').textContent).toContain('No model');
  });

  it('sets when idle models leave and what conversations may keep', async () => {
    await open('settings');
    await click('tab-models');
    await click('unload-after-15');
    await write('prefix-cache', '500');
    field('prefix-cache').dispatchEvent(new Event('change', { bubbles: true }));
    await pass(0);
    expect(host.app.engine).toEqual({ unload_after: 15, prefix_cache: 500, threads: null, device: 'auto' });
    await click('unload-after-never');
    expect(host.app.engine).toEqual({ unload_after: null, prefix_cache: 500, threads: null, device: 'auto' });
    await write('threads', '3');
    field('threads').dispatchEvent(new Event('change', { bubbles: true }));
    await pass(0);
    expect(host.app.engine).toEqual({ unload_after: null, prefix_cache: 500, threads: 3, device: 'auto' });
  });
});

describe('The compute device', () => {
  it('is a setting where there is a graphics card', async () => {
    host.hasCard = true;
    await open('settings');
    await click('tab-models');
    await pass(0);
    await click('device-cpu');
    await pass(0);
    expect(host.app.engine.device).toBe('cpu');
    await click('device-auto');
    await pass(0);
    expect(host.app.engine.device).toBe('auto');
  });

  it('is neither shown nor found where there is none', async () => {
    await open('settings');
    await click('tab-models');
    await pass(0);
    expect(all('device-cpu')).toEqual([]);
    await write('settings-search', 'compute device');
    expect(all('settings-result')).toEqual([]);
    host.hasCard = true;
    await open('settings');
    await pass(0);
    await write('settings-search', 'compute device');
    await click('settings-result');
    await pass(0);
    expect(document.getElementById('row-device')?.dataset['found']).toBe('');
  });
});

describe('Data', () => {
  it('shows where data lies and what it takes, and makes a backup', async () => {
    host.addChat('A chat', Date.now());
    await open('settings');
    await click('tab-privacy');
    await pass(0);
    expect(the('data-folder').textContent).toContain('Ponder');
    expect(the('history-size').textContent).toBe('1 chat · 1 MB');
    for (const kind of ['chats', 'attachments', 'models']) await click(`show-${kind}`);
    expect(host.revealedData).toEqual(['chats', 'attachments', 'models']);
    await click('back-up');
    await pass(0);
    expect(all('backup')).toHaveLength(1);
  });

  it('tries a damaged file again that a repair set aside', async () => {
    await open('settings');
    await click('tab-privacy');
    await pass(0);
    expect(all('set-aside')).toEqual([]);
    host.damagedFiles = [{ made_at: 1_795_600_000_000, bytes: 9_600_000, chats: 3 }];
    await open('settings');
    await click('tab-privacy');
    await pass(0);
    await click('try-again');
    await pass(0);
    expect(the('toast').textContent).toContain('Added 3 chats');
    await click('try-again');
    await pass(0);
    expect(the('toast').textContent).toContain('already in your chats');
  });

  it.each([
    [{ chats: 0, messages: 1 }, 'Added 1 message.'],
    [{ chats: 0, messages: 1204 }, 'Added 1,204 messages.'],
    [{ chats: 1, messages: 0 }, 'Added 1 chat.'],
    [{ chats: 0, messages: 0 }, 'Everything readable is already in your chats.'],
  ])('says what a damaged file added: %o', async (added, sentence) => {
    host.damagedFiles = [{ made_at: 1_795_600_000_000, bytes: 9_600_000, chats: 3 }];
    host.addFromSetAside = async () => added;
    await open('settings');
    await click('tab-privacy');
    await pass(0);
    await click('try-again');
    await pass(0);
    expect(the('toast').textContent).toContain(sentence);
  });

  it('deletes all chats only if the person agrees in the dialog of the system, and says what stays', async () => {
    host.addChat('A chat', Date.now());
    await host.backUpNow();
    host.dialogAnswer = 'no';
    await open('settings');
    await click('tab-privacy');
    await pass(0);
    await click('delete-all');
    await pass(0);
    expect(await host.chats()).toHaveLength(1);
    expect(all('toast')).toEqual([]);
    host.dialogAnswer = 'yes';
    await click('delete-all');
    await pass(0);
    expect(host.asked).toEqual(['delete', 'delete']);
    expect(await host.chats()).toEqual([]);
    expect(the('toast').textContent).toContain('1 backup still contains them');
    expect(host.backups).toHaveLength(1);
  });

  it('deletes the backups as well if that is wanted', async () => {
    host.addChat('A chat', Date.now());
    await host.backUpNow();
    await open('settings');
    await click('tab-privacy');
    await pass(0);
    host.dialogAnswer = 'more';
    await click('delete-all');
    await pass(0);
    expect(host.backups).toEqual([]);
    expect(the('toast').textContent).toContain('Deleted all chats.');
  });

  it('leaves a chat that was deleted, in the chat window', async () => {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'A question', { parts: [{ kind: 'text', text: 'An answer', started_at: 0, ended_at: 0 }] });
    await open('chat', chat.summary.id);
    expect(the('chat-title').textContent).toBe('A chat');
    await host.deleteAllChats();
    await pass(50);
    expect(the('chat-title').textContent).toBe('New chat');
  });
});
