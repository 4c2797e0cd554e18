import { expect, it } from 'vitest';

import { words } from '../shared/messageParts';
import { fakeHost } from '../host/fake';
import { openChatWindowPrefs } from './chatWindowPrefs';

function storage(kept: Record<string, string>): Storage {
  localStorage.clear();
  for (const [name, value] of Object.entries(kept)) localStorage.setItem(name, value);
  return localStorage;
}

it('moves what the web view kept to the host, once', async () => {
  const host = fakeHost(1);
  const old = storage({ 'ponder.open-chat': 'chat-7', 'ponder.new-draft': 'half a quest' });
  const prefs = await openChatWindowPrefs(host, old);
  expect([prefs.openChat, prefs.newDraft]).toEqual(['chat-7', words('half a quest')]);
  expect(await host.chatWindowState()).toEqual({ open_chat: 'chat-7', new_draft: words('half a quest') });
  expect(old.length).toBe(0);

  prefs.openChat = '';
  prefs.newDraft = words('another');
  await expect.poll(() => host.chatWindowState()).toEqual({ open_chat: null, new_draft: words('another') });
  const again = await openChatWindowPrefs(host, old);
  expect([again.openChat, again.newDraft]).toEqual(['', words('another')]);
});

it('prefers what the host has', async () => {
  const host = fakeHost(1);
  await host.setChatWindowState({ open_chat: 'chat-1', new_draft: [] });
  const prefs = await openChatWindowPrefs(host, storage({ 'ponder.open-chat': 'chat-7', 'ponder.new-draft': 'old' }));
  expect([prefs.openChat, prefs.newDraft]).toEqual(['chat-1', words('old')]);
});
