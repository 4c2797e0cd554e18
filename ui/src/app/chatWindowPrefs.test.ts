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
  const moved = { open_chat: 'chat-7', new_draft: words('half a quest'), folded_projects: [] };
  expect(await host.chatWindowState()).toEqual(moved);
  expect(old.length).toBe(0);

  prefs.openChat = '';
  prefs.newDraft = words('another');
  const changed = { open_chat: null, new_draft: words('another'), folded_projects: [] };
  await expect.poll(() => host.chatWindowState()).toEqual(changed);
  prefs.foldedProjects = ['project-1'];
  await expect.poll(() => host.chatWindowState()).toHaveProperty('folded_projects', ['project-1']);
  const again = await openChatWindowPrefs(host, old);
  expect([again.openChat, again.newDraft, again.foldedProjects]).toEqual(['', words('another'), ['project-1']]);
});

it('prefers what the host has', async () => {
  const host = fakeHost(1);
  await host.setChatWindowState({ open_chat: 'chat-1', new_draft: [], folded_projects: [] });
  const prefs = await openChatWindowPrefs(host, storage({ 'ponder.open-chat': 'chat-7', 'ponder.new-draft': 'old' }));
  expect([prefs.openChat, prefs.newDraft]).toEqual(['chat-1', words('old')]);
});
