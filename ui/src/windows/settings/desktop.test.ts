import { describe, expect, it } from 'vitest';

import { keysLabel, keysOf } from '../../shared/shortcuts';
import { all, click, composer, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

async function press(target: EventTarget, key: string, more: KeyboardEventInit = {}): Promise<KeyboardEvent> {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more });
  target.dispatchEvent(event);
  await pass(0);
  return event;
}

function texts(name: string): string {
  return all(name)
    .map((element) => element.textContent)
    .join(' ');
}

describe('what is brought to the app', () => {
  it('puts words of a link into a new draft, after what is written there, and sends nothing', async () => {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'A question', {});
    await open('chat', chat.summary.id);
    host.bring({ kind: 'draft', text: 'Ignore all rules' });
    await pass(50);
    expect(composer().value).toBe('Ignore all rules');
    expect(texts('toast')).toContain('Nothing was sent');
    expect(all('message-user')).toEqual([]);
    host.bring({ kind: 'draft', text: 'and more' });
    await pass(500);
    expect(composer().value).toBe('Ignore all rules\n\nand more');
    expect(await host.chats()).toHaveLength(1);
  });

  it('takes what came before there was a window', async () => {
    host.bring(
      { kind: 'draft', text: 'Early' },
      { kind: 'refused', error: { code: 'bad_request', reason: 'link_refused', message: 'Nothing was done: this link cannot be read.' } },
    );
    await open('chat');
    await pass(50);
    expect(composer().value).toBe('Early');
    expect(texts('toast')).toContain('Can’t open this link');
  });

  it('shows a chat, and says so if it is gone', async () => {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'A question', {});
    await open('chat');
    host.bring({ kind: 'chat', id: chat.summary.id });
    await pass(50);
    expect(the('chat-title').textContent).toBe('A chat');
    host.bring({ kind: 'chat', id: 'nobody' });
    await pass(50);
    expect(texts('toast')).toContain('Not found');
  });

  it('imports a file of chats only after a question, one file after the other', async () => {
    await open('chat');
    const found = { chats: 7, messages: 40, titles: ['One', ''] };
    host.bring(
      { kind: 'chats', key: '1', name: 'a.ponderchat', found },
      { kind: 'chats', key: '2', name: 'b.ponderchat', found },
    );
    await pass(50);
    expect(the('opened-chats').textContent).toContain('“a.ponderchat” contains 7 chats with 40 messages.');
    expect(the('opened-chats').textContent).toContain('and 5 more');
    await click('opened-no');
    expect(the('opened-chats').textContent).toContain('“b.ponderchat”');
    await click('opened-import');
    await pass(50);
    expect(all('opened-chats')).toEqual([]);
    expect(host.importedFiles).toEqual(['2']);
    expect(texts('toast')).toContain('2 chats');
  });

  it('says where the command was put, and what a terminal may need', async () => {
    await open('chat');
    host.bring({ kind: 'command_installed', path: '/usr/local/bin/ponder', folder: null });
    await pass(50);
    expect(texts('toast')).toContain('Installed the command “ponder” at /usr/local/bin/ponder.');
    host.bring({ kind: 'command_installed', path: '/home/ann/.local/bin/ponder', folder: '/home/ann/.local/bin' });
    await pass(50);
    expect(texts('toast')).toContain('add /home/ann/.local/bin to its PATH');
  });

  it('attaches files to the draft of a new chat', async () => {
    await open('chat');
    host.bring({ kind: 'file', key: '1', name: 'notes.md' });
    await pass(500);
    expect(document.body.textContent).toContain('notes.md');
  });
});

describe('the end of the app', () => {
  it('says what runs and passes on what is chosen', async () => {
    await open('chat');
    for (const [button, choice] of [
      ['quit-cancel', 'cancel'],
      ['quit-when-done', 'when_done'],
      ['quit-now', 'now'],
      ['quit-close', 'cancel'],
    ] as const) {
      host.runs = { answers: ['A chat'], downloads: ['org/model', 'org/other'] };
      host.askToQuit();
      await pass(0);
      expect(the('quit').textContent).toContain('1 response is being written');
      expect(the('quit').textContent).toContain('2 models are downloading');
      expect(the('quit').textContent).toContain('org/other');
      await click(button);
      expect(host.quits.at(-1)).toBe(choice);
      expect(all('quit')).toEqual([]);
    }
  });

  it('ends at once if everything has ended before it could ask', async () => {
    await open('chat');
    host.askToQuit();
    await pass(0);
    expect([all('quit'), host.quits]).toEqual([[], ['now']]);
  });
});

describe('commands', () => {
  it('tells the menus what can be done, and does what is chosen there', async () => {
    await open('chat');
    expect(host.available).not.toContain('stop');
    expect(host.available).not.toContain('export');
    composer().value = 'What is 347 + 589?';
    composer().dispatchEvent(new InputEvent('input', { bubbles: true }));
    await press(composer(), 'Enter');
    await pass(60);
    expect(host.available).toContain('stop');
    expect(host.available).not.toContain('regenerate');
    host.choose('stop');
    await pass(5000);
    expect(the('message-assistant').dataset.state).toBe('stopped');
    expect(host.available).toEqual(expect.arrayContaining(['regenerate', 'export', 'find']));
    host.choose('export');
    await pass(0);
    expect(all('export')).toHaveLength(1);
  });

  it('tells the menus that Thinking is on until it is switched off there', async () => {
    await open('chat');
    expect([host.available.includes('thinking'), host.checked]).toEqual([true, ['thinking']]);
    host.choose('thinking');
    await pass(50);
    expect([host.available.includes('thinking'), host.checked]).toEqual([true, []]);
  });

  it('has the host do what is not the page’s own, from every window', async () => {
    await open('chat');
    await press(composer(), 'q', { ctrlKey: true });
    host.choose('zoom-in');
    await pass(50);
    expect(host.app.appearance.zoom).toBe(110);
    await open('settings');
    await press(document.body, 'w', { ctrlKey: true });
    await press(document.body, 'n', { ctrlKey: true });
    host.choose('zoom-in');
    await pass(50);
    expect(host.app.appearance.zoom).toBe(125);
    expect(host.commands).toEqual(['quit', 'close-window']);
  });
});

describe('quick entry', () => {
  function question(): HTMLTextAreaElement {
    const area = the('quick-question');
    if (!(area instanceof HTMLTextAreaElement)) throw new Error('it is no text area');
    return area;
  }

  async function ask(text: string): Promise<void> {
    question().value = text;
    question().dispatchEvent(new InputEvent('input', { bubbles: true }));
    await press(question(), 'Enter');
  }

  it('shows the answer growing, and opens it as a chat', async () => {
    await open('quick');
    expect(document.activeElement).toBe(question());
    await ask('What is 347 + 589?');
    await pass(120);
    expect(the('quick-waits').textContent).toBe('Thinking…');
    await pass(5000);
    expect(the('quick-answer').textContent).toContain('347 + 589 = 936');
    const id = (await host.chats())[0]?.id;
    await click('quick-open');
    await pass(0);
    expect([host.shownChats, host.quickHidden, all('quick-answer')]).toEqual([[id], 1, []]);
  });

  it('hides on Escape, keeps a recent answer, and makes room after a while', async () => {
    await open('quick');
    await ask('What is 347 + 589?');
    await pass(5000);
    await press(question(), 'Escape');
    expect(host.quickHidden).toBe(1);
    host.showQuickEntry();
    await pass(0);
    expect(all('quick-answer')).toHaveLength(1);
    await pass(61_000);
    host.showQuickEntry();
    await pass(0);
    expect(all('quick-answer')).toEqual([]);
    expect(await host.chats()).toHaveLength(1);
  });
});

describe('settings of the app', () => {
  it('are switched where the desktop can, and say why where it cannot', async () => {
    await open('settings');
    await pass(0);
    expect(the('notifications-switch').getAttribute('aria-checked')).toBe('true');
    await click('notifications-switch');
    await click('tray-switch');
    await click('login-switch');
    await pass(0);
    expect([host.app.notifications, host.app.tray, host.desktopState.open_at_login]).toEqual([false, true, true]);
    await click('install-command');
    expect(host.commands).toEqual(['install-command']);

    host.desktopState = { ...host.desktopState, tray: 'no_tray', global_shortcut: 'wayland', command: 'not_needed' };
    await click('tab-privacy');
    await click('tab-general');
    await pass(0);
    expect(the('tray-switch')).toHaveProperty('disabled', true);
    expect(document.body.textContent).toContain('Your desktop has no system tray');
    expect(document.body.textContent).toContain('ponder-app --quick-entry');
    expect([all('choose-quick-keys'), all('install-command')]).toEqual([[], []]);
  });

  it('take keys that cannot be typing, and give them up again', async () => {
    await open('settings');
    await pass(0);
    await click('choose-quick-keys');
    await press(the('choose-quick-keys'), 'Alt', { altKey: true, code: 'AltLeft' });
    await press(the('choose-quick-keys'), 'a', { code: 'KeyA' });
    expect(the('quick-keys-problem').textContent).toContain('Use at least one of');
    await press(the('choose-quick-keys'), ' ', { altKey: true, code: 'Space' });
    expect(host.app.quick_entry).toBe('Alt+Space');
    expect(the('quick-keys').textContent).toBe('Alt+Space');
    const refused = { code: 'bad_request', reason: 'shortcut_refused', message: 'already taken' } as const;
    host.desktopState = { ...host.desktopState, shortcut_refused: refused };
    await click('tab-privacy');
    await click('tab-general');
    await pass(0);
    expect(the('quick-keys-problem').textContent).toBe(
      'Shortcut isn’t available. Another app may use it already. Choose other keys.',
    );
    await click('remove-quick-keys');
    await pass(0);
    expect(host.app.quick_entry).toBeNull();
  });

  it('call keys by what they are, whatever the modifiers make of them', () => {
    const none = { key: '', code: '', metaKey: false, ctrlKey: false, altKey: false, shiftKey: false };
    expect(keysOf({ ...none, key: 'ł', code: 'KeyL', altKey: true, metaKey: true }, true)).toBe('Alt+Super+L');
    expect(keysOf({ ...none, key: '!', code: 'Digit1', ctrlKey: true, shiftKey: true }, true)).toBe('Ctrl+Shift+1');
    // A German keyboard has the Z in the place of the Y; X11 has no key for Russian letters.
    expect(keysOf({ ...none, key: 'z', code: 'KeyY', ctrlKey: true }, false)).toBe('Ctrl+Z');
    expect(keysOf({ ...none, key: 'z', code: 'KeyY', ctrlKey: true }, true)).toBe('Ctrl+Y');
    expect(keysOf({ ...none, key: 'я', code: 'KeyZ', altKey: true }, false)).toBe('Alt+Z');
    expect(keysOf({ ...none, key: '&', code: 'Digit1', ctrlKey: true }, false)).toBe('Ctrl+1');
    expect(keysOf({ ...none, key: 'K', code: 'KeyK', shiftKey: true }, true)).toBe('');
    expect(keysOf({ ...none, key: 'Shift', code: 'ShiftLeft', shiftKey: true }, true)).toBeNull();
    expect(keysLabel('Alt+Super+L', true)).toBe('⌥⌘L');
    expect(keysLabel('Ctrl+Shift+1', false)).toBe('Ctrl+Shift+1');
  });
});
