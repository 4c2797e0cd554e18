import { flushSync } from 'svelte';
import { describe, expect, it, vi } from 'vitest';

import { all, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

const texts = (): string[] => all('note-text').map((field) => (field as HTMLTextAreaElement).value);

function write(text: string): void {
  const field = the('new-note') as HTMLTextAreaElement;
  field.value = text;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
}

/** Opens the sheet of a project. */
async function show(): Promise<string> {
  const chat = host.addChat('About boats', Date.now());
  const { id } = await host.createProject('Sailing');
  await host.moveChat(chat.summary.id, id);
  await open('chat', chat.summary.id);
  await click('chat-project');
  return id;
}

describe('notes about the user', () => {
  it('are off in a project until they are switched on, and then added, changed and deleted', async () => {
    const id = await show();
    expect(all('notes')).toEqual([]);
    await click('use-project-notes');
    await pass(10);
    expect((await host.projects())[0]?.uses_notes).toBe(true);
    expect(all('no-notes')).toHaveLength(1);
    write('I sail.');
    await click('add-note');
    await pass(10);
    expect(texts()).toEqual(['I sail.']);
    expect((the('new-note') as HTMLTextAreaElement).value).toBe('');
    const field = the('note-text') as HTMLTextAreaElement;
    field.value = 'I row.';
    field.dispatchEvent(new Event('change', { bubbles: true }));
    await pass(10);
    expect((await host.notes(id)).map(({ text }) => text)).toEqual(['I row.']);
    await click('remove-note');
    await pass(10);
    expect(await host.notes(id)).toEqual([]);
    await click('toast-undo');
    await pass(10);
    expect(texts()).toEqual(['I row.']);
  });

  it('that a model suggested say so, and what is refused stays in the field', async () => {
    const id = await show();
    host.keptNotes.push({ id: 'note', text: 'Likes tea.', chat: 'chat', created_at: 0, project: id });
    await click('use-project-notes');
    await pass(10);
    expect(all('note-source')).toHaveLength(1);
    vi.spyOn(host, 'addNote').mockRejectedValueOnce({ code: 'bad_request', message: 'no', reason: 'note_refused' });
    write('I sail.');
    await click('add-note');
    await pass(10);
    expect((the('new-note') as HTMLTextAreaElement).value).toBe('I sail.');
    expect(the('new-note').getAttribute('aria-invalid')).toBe('true');
  });

  it('that cannot be read are read again', async () => {
    await show();
    vi.spyOn(host, 'notes').mockRejectedValueOnce({ code: 'storage', message: 'no' });
    await click('use-project-notes');
    await pass(10);
    await click('notes-again');
    await pass(10);
    expect(all('no-notes')).toHaveLength(1);
  });
});
