import { beforeEach, describe, expect, it, vi } from 'vitest';

import { all, ask, click, field, host, open, pass, searchList, the, useWindow, write } from '../../testing/window';
import { textPart } from '../../host/fake';
import { fileOf } from '../../testing/images';

useWindow();

async function press(key: string, more: KeyboardEventInit = {}, target: Element = document.body): Promise<void> {
  target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }));
  await pass(50);
}

const control = { ctrlKey: true };

function titles(): (string | undefined)[] {
  return all('chat-item').map((item) => item.textContent?.trim());
}

/** The command of a chat's menu. */
async function choose(title: string, command: string): Promise<void> {
  const item = all('chat-item').find((one) => one.textContent?.trim() === title);
  item?.dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true }));
  await pass(0);
  await click(command);
  await pass(50);
}

beforeEach(() => {
  const tea = host.addChat('About tea', Date.now());
  host.addTurn(tea, 'Where does it grow?', { parts: [textPart('Green **tea** grows in Uji. Tea, tea.')] });
  const sea = host.addChat('About the sea', Date.now() - 1000);
  host.addTurn(sea, 'Is it salty?', {
    parts: [textPart('Yes, it is. Nobody drinks tea with it.')],
    model: 'mlx-community/Qwen3-4B-4bit',
  });
});

describe('the search over all chats', () => {
  it('shows places with their words marked and opens one where it stands', async () => {
    await open('chat');
    await searchList('uji');
    await pass(300);
    expect(titles()).toEqual([]);
    const [place] = all('found-place');
    expect(place?.textContent).toContain('grows in Uji');
    expect(place?.querySelector('mark')?.textContent).toBe('Uji');
    await click('found-place');
    await pass(300);
    expect(the('chat-title').textContent).toBe('About tea');
    expect(all('find')).toEqual([]);
  });

  it('is gone through with the arrows from its field and back, and opened with Enter', async () => {
    const press = async (key: string): Promise<void> => {
      document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      await pass(50);
    };
    await open('chat');
    await searchList('tea');
    the('search').focus();
    await pass(300);
    expect(titles()).toEqual(['About tea']);
    await press('ArrowDown');
    expect(document.activeElement).toBe(the('chat-item'));
    await press('ArrowDown');
    expect(document.activeElement).toBe(all('found-place')[0]);
    expect([...document.querySelectorAll('[data-testid="chats"] [tabindex="0"]')]).toEqual([document.activeElement]);
    await press('End');
    expect(document.activeElement).toBe(all('found-place')[1]);
    await press('Home');
    await press('ArrowUp');
    expect(document.activeElement).toBe(the('search'));
    await press('Enter');
    await pass(300);
    expect(the('chat-title').textContent).toBe('About tea');
  });

  it('is of chats as they are called now, and of none that was deleted since', async () => {
    await open('chat');
    await searchList('tea');
    await pass(300);
    const [tea, sea] = await host.chats();
    if (!tea || !sea) throw new Error('no chats');
    await host.renameChat(sea.id, 'Renamed');
    await pass(50);
    const chatsFound = (): unknown[] => all('found-chat').map((chat) => chat.firstElementChild?.textContent);
    expect(chatsFound()).toEqual(['About tea', 'Renamed']);
    await host.deleteChat(tea.id);
    await pass(50);
    expect(chatsFound()).toEqual(['Renamed']);
  });

  it('groups what it found by chats, from the top of the list, and lists all of one on request', async () => {
    const many = host.addChat('Many', Date.now() + 1000);
    for (let turn = 0; turn < 150; turn++) host.addTurn(many, `Harvest ${turn}`, { parts: [textPart('Yes.')] });
    host.addTurn(host.addChat('One', Date.now() + 2000), 'Harvest', { parts: [textPart('No.')] });
    await open('chat');
    the('chats').scrollTop = 400;
    the('chats').dispatchEvent(new Event('scroll'));
    await searchList('harvest');
    await pass(300);
    expect(the('chats').scrollTop).toBe(0);
    expect(all('found-chat').map((chat) => chat.textContent?.replace(/\s+/g, ' '))).toEqual([
      'Many 150 matches',
      'One 1 match',
    ]);
    expect([all('found-place').length, the('found-all').textContent]).toEqual([4, 'Show all 150']);
    await click('found-all');
    await pass(50);
    expect(all('found-all')).toEqual([]);
    expect(all('found-place').length).toBeGreaterThan(10);
    expect(document.activeElement).toBe(all('found-place')[3]);
    await searchList('harvest 1');
    await pass(300);
    expect(all('found-all')).toHaveLength(1);
  });

  it('narrows by time and model, and says if nothing is there', async () => {
    await open('chat');
    await searchList('tea');
    await pass(300);
    expect(all('found-place')).toHaveLength(2);
    await click('search-time');
    expect(all('search-model')).toHaveLength(1);
    await searchList('nothing has this');
    await pass(300);
    expect(the('chats').textContent).toContain('No results');
    await searchList('');
    await pass(300);
    expect(titles()).toEqual(['About tea', 'About the sea']);
  });

  it('opens a place on another branch than the one that is shown', async () => {
    const chat = host.addChat('Branches', Date.now());
    const first = host.addTurn(chat, 'Name a fruit', { parts: [textPart('A quince.')] });
    host.addRow(Object.assign(chat, { leaf: first.parent }), {
      role: 'assistant',
      model: 'pebble',
      parts: [textPart('A fig.')],
    });
    await open('chat');
    await searchList('quince');
    await pass(300);
    await click('found-place');
    await pass(300);
    expect(the('answer-text').textContent).toContain('A quince.');
  });
});

describe('finding in the chat', () => {
  it('counts all places and goes round, also in rows that are not drawn', async () => {
    const chat = host.addChat('Long', Date.now());
    for (let turn = 0; turn < 60; turn++)
      host.addTurn(chat, `Question ${turn}`, { parts: [textPart(`Answer with a **needle** number ${turn}`)] });
    await open('chat', chat.summary.id);
    expect(all('message-assistant').length).toBeLessThan(60);
    await press('f', control);
    await write('find-words', 'needle number');
    expect(the('find-count').textContent?.trim()).toBe('1 of 60');
    await click('find-previous');
    expect(the('find-count').textContent?.trim()).toBe('60 of 60');
    await press('Enter', {}, field('find-words'));
    expect(the('find-count').textContent?.trim()).toBe('1 of 60');
    await write('find-words', 'NÉEDLE');
    expect(the('find-count').textContent?.trim()).toBe('1 of 60');
    await write('find-words', 'nowhere');
    expect(the('find-count').textContent?.trim()).toBe('No matches');
    await press('Escape', {}, field('find-words'));
    expect(all('find')).toEqual([]);
  });
});

describe('the palette', () => {
  it('finds chats, models, commands and what was said', async () => {
    await open('chat');
    await press('k', control);
    await write('palette-words', 'about');
    await pass(300);
    expect(all('palette-entry').map(({ dataset }) => dataset['kind'])).toEqual(['chat', 'chat']);
    await press('ArrowDown', {}, field('palette-words'));
    await press('Enter', {}, field('palette-words'));
    await pass(100);
    expect(all('palette')).toEqual([]);
    expect(the('chat-title').textContent).toBe('About the sea');
    await press('k', control);
    await write('palette-words', 'archive and');
    await press('Enter', {}, field('palette-words'));
    expect(all('kept')).toHaveLength(1);
  });

  it('shows what was said', async () => {
    await open('chat');
    await press('k', control);
    await write('palette-words', 'salty');
    await pass(300);
    expect(all('palette-entry').map(({ dataset }) => dataset['kind'])).toEqual(['hit']);
    await write('palette-words', 'zzzz');
    await pass(300);
    expect(the('palette').textContent).toContain('No results');
  });
});

describe('the library', () => {
  it('archives a chat, which Ctrl+Z and the sheet bring back', async () => {
    await open('chat');
    await choose('About tea', 'archive-chat');
    expect(titles()).toEqual(['About the sea']);
    await press('z', control);
    expect(titles()).toEqual(['About tea', 'About the sea']);
    await choose('About tea', 'archive-chat');
    await click('open-kept');
    expect(all('archived-chat')).toHaveLength(1);
    await click('unarchive');
    await pass(50);
    expect(titles()).toEqual(['About tea', 'About the sea']);
  });

  it('opens the trash, puts a chat back and asks before it deletes one for good', async () => {
    await open('chat');
    await choose('About tea', 'delete-chat');
    await click('open-kept');
    await pass(50);
    expect(the('trashed-chat').textContent).toContain('30 days left');
    await click('restore');
    await pass(50);
    expect(titles()).toEqual(['About tea', 'About the sea']);
    await click('kept-close');
    await choose('About the sea', 'delete-chat');
    await click('open-kept');
    await pass(50);
    await click('purge');
    expect(the('purge-asks').textContent).toBe('Delete “About the sea” permanently? This can’t be undone.');
    await click('purge-now');
    await pass(50);
    expect(all('trashed-chat')).toEqual([]);
    expect((await host.trash()).length).toBe(0);
  });

  it('names what was deleted out of a chat before it is deleted for good', async () => {
    const [tea] = await host.chats();
    const [question, answer] = (await host.chat(tea?.id ?? '')).messages;
    if (!question || !answer) throw new Error('no turn');
    const lines = (): string[] => all('trashed-chat').map((entry) => entry.textContent.replace(/\s+/g, ' ').trim());
    const entry = /^Where does it grow\? Message from “About tea” 30 days left/;
    await open('chat');
    for (const [message, says] of [
      [answer.id, 'Delete the response “Green **tea** grows in Uji. Tea, tea.” from “About tea” permanently? This'],
      [question.id, 'Delete the message “Where does it grow?” from “About tea” permanently? This can’t be undone.'],
    ] as const) {
      await host.deleteMessage(message, 'branch');
      await pass(2);
      await click('open-kept');
      await pass(50);
      all('purge')[0]?.click();
      await pass(0);
      expect(the('purge-asks').textContent).toContain(says);
      await click('purge-keep');
      await click('kept-close');
    }
    await click('open-kept');
    await pass(50);
    expect(lines()).toEqual([
      expect.stringMatching(entry),
      expect.stringMatching(/^Green \*\*tea.* Response from “About tea” 30 days left/),
    ]);
    await click('purge-all');
    expect(the('purge-asks').textContent).toContain('Delete everything in Trash');
    await click('purge-keep');
    for (let left = 0; left < 2; left++) {
      all('restore')[0]?.click();
      await pass(50);
    }
    expect(lines()).toEqual([]);
    await click('kept-close');
    await host.deleteMessage(question.id, 'branch');
    await click('open-kept');
    await pass(50);
    await click('purge');
    expect(the('purge-asks').textContent).toContain('and everything after it permanently?');
  });

  it('says in the sheet itself what went wrong there, and in the window again once that is closed', async () => {
    await open('chat');
    await press('k', control);
    await write('palette-words', 'import chats');
    await press('Enter', {}, field('palette-words'));
    const chooser = field('import-file');
    Object.defineProperty(chooser, 'files', { value: [new File(['{'], 'broken.json')] });
    chooser.dispatchEvent(new Event('change', { bubbles: true }));
    await pass(300);
    expect(all('toast')).toHaveLength(1);
    expect(the('import').contains(the('toast'))).toBe(true);
    await click('import-close');
    await pass(50);
    expect(all('toast')).toHaveLength(1);
  });

  it('says what an import took, passed over and left out', async () => {
    await open('chat');
    await press('k', control);
    await write('palette-words', 'import chats');
    await press('Enter', {}, field('palette-words'));
    const chooser = field('import-file');
    Object.defineProperty(chooser, 'files', { value: [fileOf(new TextEncoder().encode('{}'), 'chats.json')] });
    chooser.dispatchEvent(new Event('change', { bubbles: true }));
    await pass(300);
    expect(the('toast').textContent).toContain(
      'Imported 2 chats. Skipped 1 chat you already have. Left out 2 images that can’t be shown.',
    );
  });

  it('leaves what was said before a sheet opened below it', async () => {
    await open('chat');
    await choose('About tea', 'archive-chat');
    const said = the('toast');
    await click('open-kept');
    await pass(50);
    expect(all('toast')).toEqual([said]);
    expect(the('kept').contains(said)).toBe(false);
    await click('kept-close');
    expect(all('toast')).toEqual([said]);
  });

  it('says no more of what was taken back in another way, and undoes it no more', async () => {
    const said = (): string[] => all('toast').map((toast) => toast.querySelector('p')?.textContent ?? '');
    await open('chat');
    await choose('About tea', 'delete-chat');
    expect(said()).toEqual(['“About tea” was deleted.']);
    await click('open-kept');
    await pass(50);
    await click('restore');
    await pass(50);
    expect(said()).toEqual([]);
    await click('kept-close');
    await press('z', control);
    expect(said()).toEqual(['Nothing to undo.']);
    await pass(10_000);
    await choose('About tea', 'delete-chat');
    const [trashed] = await host.trash();
    await host.restoreChat(trashed?.chat.id ?? '');
    await pass(50);
    expect(said()).toEqual([]);
    await choose('About tea', 'archive-chat');
    await click('open-kept');
    await click('unarchive');
    await pass(50);
    expect(said()).toEqual(['Unarchived “About tea”.']);
  });

  it('says no more of an error once the same has succeeded', async () => {
    await open('chat');
    vi.spyOn(host, 'archiveChat').mockRejectedValueOnce({ code: 'storage', message: 'the disk is full' });
    await choose('About tea', 'archive-chat');
    expect(all('toast').map(({ textContent }) => textContent)).toEqual([expect.stringContaining('Couldn’t read or save data')]);
    await choose('About tea', 'archive-chat');
    expect(all('toast').map(({ textContent }) => textContent)).toEqual([expect.stringContaining('Archived')]);
  });

  it('takes back one thing after another, and in a field the letters alone', async () => {
    await open('chat');
    const rename = async (title: string): Promise<void> => {
      await choose(title, 'rename-chat');
      field('rename-field').value = 'Tea, renamed';
      await press('Enter', {}, field('rename-field'));
    };
    await rename('About tea');
    await choose('About the sea', 'pin-chat');
    expect(titles()).toEqual(['About the sea', 'Tea, renamed']);
    the('composer').dispatchEvent(new InputEvent('input', { bubbles: true }));
    await press('z', control, the('composer'));
    expect(titles()).toEqual(['About the sea', 'Tea, renamed']);
    await press('z', control);
    expect(titles()).toEqual(['Tea, renamed', 'About the sea']);
    await press('z', control);
    expect(titles()).toEqual(['About tea', 'About the sea']);
    await press('z', control);
    expect(document.body.textContent).toContain('Nothing to undo.');
  });

  it('makes a project with instructions, and its deletion is taken back', async () => {
    await open('chat');
    await choose('About tea', 'move-chat-to-project');
    await write('new-project', '\u202eDri\u2066nks');
    await click('make-project');
    await pass(100);
    expect(the('project').textContent?.trim()).toBe('Drinks');
    expect((await host.chats()).find(({ title }) => title === 'About tea')?.project).toBe('project-1');
    await click('project-menu');
    await click('open-project');
    const prompt = the('project-prompt');
    if (!(prompt instanceof HTMLTextAreaElement)) throw new Error('no text area');
    prompt.value = 'Answer as a tea master.';
    prompt.dispatchEvent(new InputEvent('input', { bubbles: true }));
    await click('save-project');
    await pass(50);
    expect((await host.projects())[0]?.system_prompt).toBe('Answer as a tea master.');
    await click('project-menu');
    await click('open-project');
    await click('delete-project');
    await pass(50);
    expect(all('project')).toEqual([]);
    expect(titles()).toEqual(['About tea', 'About the sea']);
    await press('z', control);
    expect(the('project').textContent?.trim()).toBe('Drinks');
  });

  it('begins a chat in a project, which is where it goes once it is made', async () => {
    await open('chat');
    await choose('About tea', 'move-chat-to-project');
    await write('new-project', 'Drinks');
    await click('make-project');
    await pass(100);
    await click('new-in-project');
    expect(the('chat-title').textContent).toBe('New chat in “Drinks”');
    expect(document.activeElement).toBe(the('composer'));
    await ask('And coffee?');
    await pass(200);
    const made = (await host.chats()).find(({ title }) => title !== 'About tea' && title !== 'About the sea');
    expect(made?.project).toBe('project-1');
    // The next one is in no project.
    await click('new-chat');
    expect(the('chat-title').textContent).toBe('New chat');
  });
});

describe('the chat of a project', () => {
  it('says at its beginning what it takes along from it, and opens its sheet', async () => {
    const { id } = await host.createProject('Drinks');
    const [tea, sea] = await host.chats();
    await host.moveChat(tea?.id ?? '', id);
    await open('chat', tea?.id);
    expect(the('chat-project').textContent.trim()).toBe('Drinks');
    await host.changeProject(id, 'Drinks', 'Answer as a tea master.');
    for (const name of ['green.txt', 'black.txt', 'white.txt', 'red.txt', 'yellow.txt'])
      await host.putProjectFile(id, await host.addFile(new TextEncoder().encode(name), name, ''));
    await pass(50);
    const said = [...the('chat-project').querySelectorAll('bdi')].map(({ textContent }) => textContent);
    const files = ['green.txt', 'black.txt', 'white.txt', '2 more files'];
    expect(said).toEqual(['Drinks', ...files, 'with project instructions']);
    await click('chat-project');
    expect(the('project-prompt')).toHaveProperty('value', 'Answer as a tea master.');
    await click('project-settings-close');
    await click('new-in-project');
    expect(all('chat-project')).toHaveLength(1);
    await open('chat', sea?.id);
    expect(all('chat-project')).toEqual([]);
  });
});

describe('several chats', () => {
  const item = (title: string): HTMLElement => {
    const found = all('chat-item').find((one) => one.textContent?.trim() === title);
    if (!found) throw new Error(`no chat ${title}`);
    return found;
  };
  const picked = (): (string | undefined)[] =>
    all('chat-item')
      .filter((one) => one.getAttribute('aria-pressed') === 'true')
      .map((one) => one.textContent?.trim());

  it('are chosen by hand and exported together', async () => {
    await open('chat');
    for (const title of ['About tea', 'About the sea']) {
      item(title).dispatchEvent(new MouseEvent('click', { bubbles: true, ctrlKey: true }));
      await pass(0);
    }
    expect(picked()).toEqual(['About tea', 'About the sea']);
    await choose('About the sea', 'export-chat');
    expect(the('export').textContent).toContain('Export 2 chats');
    await click('export-markdown');
    await pass(50);
    const ids = (await host.chats()).map(({ id }) => id);
    expect(host.exported.at(-1)?.ids?.toSorted()).toEqual(ids.toSorted());
    // A plain press opens one and lets go of the others.
    item('About tea').click();
    await pass(50);
    expect(picked()).toEqual([]);
  });

  it('are chosen by keys, and Escape lets go', async () => {
    await open('chat');
    item('About tea').focus();
    await press('ArrowDown', { shiftKey: true }, item('About tea'));
    expect(picked()).toEqual(['About tea', 'About the sea']);
    await press('Escape', {}, item('About the sea'));
    expect(picked()).toEqual([]);
  });
});
