import { describe, expect, it, vi } from 'vitest';

import { all, click, field, host, open, pass, the, useWindow, write } from '../../../testing/window';
import { carrying, fileOf } from '../../../testing/images';

useWindow();

const area = (): HTMLTextAreaElement => the('composer') as HTMLTextAreaElement;

async function openChat(title = 'A chat') {
  const chat = host.addChat(title, Date.now());
  await open('chat', chat.summary.id);
  return chat;
}

async function type(text: string): Promise<void> {
  area().value = text;
  area().setSelectionRange(text.length, text.length);
  area().dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(0);
}

async function press(key: string): Promise<KeyboardEvent> {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true });
  area().dispatchEvent(event);
  await pass(0);
  return event;
}

async function ask(text: string): Promise<void> {
  await type(text);
  await press('Enter');
  await pass(20);
}

const questions = (): string[] => all('message-user').map((message) => message.textContent?.trim() ?? '');

describe('earlier questions', () => {
  it('come back by Up into an empty composer, one after the other, and go by Down', async () => {
    const chat = await openChat();
    for (const text of ['one', 'two'])
      host.addTurn(chat, text, { parts: [{ kind: 'text', text: 'Yes.', started_at: 0, ended_at: 0 }] });
    await open('chat', chat.summary.id);
    for (const [key, wanted] of [
      ['ArrowUp', 'two'],
      ['ArrowUp', 'one'],
      ['ArrowUp', 'one'],
      ['ArrowDown', 'two'],
      ['ArrowDown', ''],
      ['ArrowDown', ''],
    ] as const) {
      await press(key);
      expect(area().value, key).toBe(wanted);
    }
  });

  it('never replace what was typed or changed', async () => {
    const chat = await openChat();
    host.addTurn(chat, 'one', { parts: [] });
    await open('chat', chat.summary.id);
    await type('mine');
    expect((await press('ArrowUp')).defaultPrevented).toBe(false);
    await type('');
    await press('ArrowUp');
    await type('one!');
    await press('ArrowUp');
    expect(area().value).toBe('one!');
  });
});

describe('Enter while an answer runs', () => {
  it('lets the question wait, shows it, and asks it when the answer has ended', async () => {
    await openChat();
    await ask('Tell me about the sea.');
    await ask('And about the wind?');
    expect([questions(), area().value]).toEqual([['Tell me about the sea.'], '']);
    expect(the('queued-question').textContent).toContain('And about the wind?');
    await pass(60_000);
    expect(questions()).toEqual(['Tell me about the sea.', 'And about the wind?']);
    expect([all('queued-question').length, all('message-assistant').length]).toEqual([0, 2]);
  });

  it('joins what waits already, with what is attached', async () => {
    await openChat();
    await ask('Tell me about the sea.');
    await ask('One');
    area().dispatchEvent(carrying('paste', [fileOf(new Uint8Array(new TextEncoder().encode('a file')), 'a.txt')]));
    await pass(50);
    await ask('Two');
    expect(the('queued-question').textContent).toContain('One\n\nTwo');
    await pass(60_000);
    expect(questions().at(-1)).toContain('One\n\nTwo');
    expect(questions().at(-1)).toContain('a.txt');
  });

  it('can be taken back, changed, and not asked at all', async () => {
    await openChat();
    await ask('Tell me about the sea.');
    await ask('Wrong');
    await click('edit-queued');
    expect([area().value, all('queued-question').length]).toEqual(['Wrong', 0]);
    await ask('Right');
    await click('cancel-queued');
    expect(all('queued-question')).toEqual([]);
    await click('toast-undo');
    expect(the('queued-question').textContent).toContain('Right');
    await click('cancel-queued');
    await pass(60_000);
    expect(questions()).toEqual(['Tell me about the sea.']);
  });

  it('waits in its chat while another is looked at, beside what is typed there', async () => {
    const first = await openChat();
    await ask('Tell me about the sea.');
    await ask('And about the wind?');
    await type('a draft');
    await click('new-chat');
    expect([all('queued-question').length, area().value]).toEqual([0, '']);
    await type('other words');
    await pass(60_000);
    expect((await host.chat(first.summary.id)).messages.filter(({ role }) => role === 'user')).toHaveLength(2);
    expect((await host.chat(first.summary.id)).draft).toEqual([{ kind: 'text', text: 'a draft' }]);
    expect(area().value).toBe('other words');
  });

  it('is in the draft again if the answer was stopped, or the window is gone', async () => {
    const chat = await openChat();
    await ask('Count from 1 to 1000');
    await ask('And the wind?');
    await type('more');
    await pass(400);
    expect(chat.draft.map((part) => (part.kind === 'text' ? part.text : ''))).toEqual(['And the wind?\n\n', 'more']);
    await click('stop');
    await pass(200);
    expect([questions().length, all('queued-question').length, area().value]).toEqual([1, 0, 'And the wind?\nmore']);
    await pass(400);
    expect(chat.draft).toEqual([{ kind: 'text', text: 'And the wind?\nmore' }]);
  });

  it('comes back if it could not be asked', async () => {
    await openChat();
    await ask('Tell me about the sea.');
    await ask('And the wind?');
    host.refuse = { call: 'send', error: { code: 'storage', message: 'The disk is full.' } };
    await pass(60_000);
    expect([questions().length, area().value]).toEqual([1, 'And the wind?']);
    expect(the('toast').textContent).toContain('Couldn’t read or save data');
  });
});

describe('the tokens of a draft', () => {
  it('are counted when typing rests, once, with the files beside it', async () => {
    await openChat();
    await pass(500);
    const before = host.counted;
    for (let length = 1; length <= 40; length++) await type('word '.repeat(21 * length));
    expect([host.counted - before, all('draft-tokens').length]).toEqual([0, 0]);
    await pass(450);
    expect([host.counted - before, the('draft-tokens').textContent]).toEqual([1, '1,050 tokens']);
    area().dispatchEvent(
      carrying('paste', [fileOf(new Uint8Array(new TextEncoder().encode('x'.repeat(400))), 'a.txt')]),
    );
    await pass(50);
    expect(the('draft-tokens').textContent).toBe('1,150 tokens');
    await type('');
    expect(all('draft-tokens')).toEqual([]);
  });

  it('are not shown while more than half of the context stays free', async () => {
    await openChat();
    const context = host.local.find(({ reference }) => reference === 'pebble')?.context ?? 0;
    await type('x'.repeat(4 * (context / 2) - 400));
    await pass(450);
    expect(all('draft-tokens')).toEqual([]);
    await type('x'.repeat(4 * (context / 2)));
    await pass(450);
    expect(all('draft-tokens')).toHaveLength(1);
  });

  it('say when there is no room for them', async () => {
    await openChat();
    const context = host.local.find(({ reference }) => reference === 'pebble')?.context ?? 0;
    await type('x'.repeat(4 * context + 4));
    await pass(450);
    expect(the('draft-tokens').textContent).toContain('only 2,048 free');
  });
});

describe('a snippet', () => {
  const SNIPPETS = [
    { name: 'translate', text: 'Translate this into German:\n' },
    { name: 'trim', text: 'Make this shorter: ' },
  ];

  it('is completed by its name, chosen by the arrows, and put in by Enter, which then sends nothing', async () => {
    host.app = { ...host.app, snippets: SNIPPETS };
    await openChat();
    const sent = vi.spyOn(host, 'send');
    await type('/tr');
    expect([...the('snippets').children].map((child) => child.querySelector('b')?.textContent)).toEqual([
      '/translate',
      '/trim',
    ]);
    await press('ArrowDown');
    expect(area().getAttribute('aria-activedescendant')).toBe(the('snippets').children[1]?.id);
    await press('Enter');
    expect([area().value, area().selectionStart, all('snippets').length]).toEqual(['Make this shorter: ', 19, 0]);
    expect(sent).not.toHaveBeenCalled();
    await type('/tr');
    await press('Escape');
    expect([all('snippets').length, area().value]).toEqual([0, '/tr']);
  });

  it('is added, changed and removed in the settings', async () => {
    await open('settings');
    await click('tab-chats');
    await click('manage-snippets');
    await write('new-snippet-name', 'two words');
    const text = the('new-snippet-text') as HTMLTextAreaElement;
    text.value = 'Text';
    text.dispatchEvent(new InputEvent('input', { bubbles: true }));
    await pass(0);
    field('new-snippet-name').form?.requestSubmit();
    await pass(0);
    expect([host.app.snippets, document.body.textContent?.includes('Use one word')]).toEqual([[], true]);
    await write('new-snippet-name', '/Sum');
    field('new-snippet-name').form?.requestSubmit();
    await pass(0);
    expect(host.app.snippets).toEqual([{ name: 'Sum', text: 'Text' }]);
    const kept = the('snippet-text') as HTMLTextAreaElement;
    kept.value = 'Other';
    kept.dispatchEvent(new Event('change', { bubbles: true }));
    await pass(0);
    expect(host.app.snippets).toEqual([{ name: 'Sum', text: 'Other' }]);
    await click('remove-snippet');
    expect(host.app.snippets).toEqual([]);
    await click('toast-undo');
    expect(host.app.snippets).toEqual([{ name: 'Sum', text: 'Other' }]);
  });
});

describe('the menu of what can be added', () => {
  const items = (): string[] => [...document.querySelectorAll('[role=menuitem]')].map((item) => item.textContent.trim());
  const focused = (): string | undefined =>
    document.activeElement instanceof HTMLElement ? document.activeElement.dataset['testid'] : undefined;
  const key = (name: string): void => {
    document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
  };

  it('is gone through by the keyboard, and leads to the ways of a second response', async () => {
    await openChat();
    await click('composer-add');
    expect([items()[0], focused()]).toEqual(['Attach files…', 'attach']);
    key('ArrowDown');
    expect(focused()).toBe('two-answers');
    key('End');
    expect(focused()).toBe('thinking-budget');
    await click('two-answers');
    expect([all('attach'), focused()]).toEqual([[], 'second-answer']);
    key('Escape');
    await pass(0);
    expect([items(), focused()]).toEqual([[], 'composer-add']);
  });

  it('holds the thinking budget until one applies, which is shown beside the switch', async () => {
    await openChat();
    expect(all('thinking-menu')).toEqual([]);
    await click('composer-add');
    await click('thinking-budget');
    expect(all('thinking-surface')).toHaveLength(1);
    document.querySelectorAll<HTMLElement>('[role=option]')[1]?.click();
    await pass(0);
    expect(the('thinking-menu').textContent).toContain('Up to 256');
    await click('composer-add');
    expect(all('thinking-budget')).toEqual([]);
    key('Escape');
    await click('thinking-switch');
    expect(all('thinking-menu')).toEqual([]);
  });
});

describe('the focus of a window that starts', () => {
  it('is in the composer, unless the user has put it elsewhere by the time all is read', async () => {
    await openChat();
    expect(document.activeElement).toBe(area());

    let read: () => void = () => {};
    vi.spyOn(host, 'watchDownloads').mockReturnValue(new Promise((resolve) => (read = resolve)));
    await openChat('Another');
    the('open-palette').focus();
    read();
    await pass(50);
    expect(document.activeElement).toBe(the('open-palette'));
  });
});
