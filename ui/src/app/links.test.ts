import { describe, expect, it } from 'vitest';

import { textPart } from '../host/fake';
import { all, click, host, open, pass, the, useWindow } from '../testing/window';

useWindow();

async function answer(text: string): Promise<HTMLAnchorElement> {
  const chat = host.addChat('A chat', Date.now());
  host.addTurn(chat, 'A question', { parts: [textPart(text)] });
  await open('chat', chat.summary.id);
  const link = the('answer-text').querySelector('a');
  if (!link) throw new Error('no link');
  return link;
}

describe('a link', () => {
  it('opens as it is understood, and shows where it leads while it is pointed at or has the focus', async () => {
    const link = await answer('[the book](https://EXAMPLE.org/a "https://bank.example")');
    expect(link.title).toBe('');
    link.dispatchEvent(new MouseEvent('pointerover', { bubbles: true }));
    await pass(0);
    expect(the('link-hint').textContent).toBe('example.org');
    the('composer').dispatchEvent(new MouseEvent('pointerover', { bubbles: true }));
    await pass(0);
    expect(the('link-hint').textContent).toBe('');
    link.focus();
    await pass(0);
    expect([the('link-hint').textContent, link.getAttribute('aria-describedby')]).toEqual([
      'example.org',
      the('link-hint').id,
    ]);
    link.click();
    expect(host.opened).toEqual(['https://example.org/a']);
  });

  it('whose words name another place asks first', async () => {
    const link = await answer('[https://bank.example](https://evil.example/x)');
    link.click();
    await pass(0);
    expect(host.opened).toEqual([]);
    expect(the('link-question').textContent).toContain('https://bank.example');
    expect(the('link-question').querySelector('b')?.textContent).toBe('evil.example');
    await click('link-keep');
    expect([all('link-question'), host.opened]).toEqual([[], []]);
    link.click();
    await pass(0);
    await click('link-open');
    expect(host.opened).toEqual(['https://evil.example/x']);
  });

  it('of an image, which is not loaded, says where it lies and asks first', async () => {
    const link = await answer('![A cup of tea](https://tracker.example/p.png?who=me)');
    expect([document.querySelectorAll('img').length, link.textContent]).toEqual([0, 'A cup of tea (tracker.example)']);
    link.click();
    await pass(0);
    expect(host.opened).toEqual([]);
    expect(the('link-question').querySelector('b')?.textContent).toBe('tracker.example');
    await click('link-open');
    expect(host.opened).toEqual(['https://tracker.example/p.png?who=me']);
  });

  it.each<[string, MouseEventInit]>([
    ['with Control', { ctrlKey: true }],
    ['with Shift', { shiftKey: true }],
    ['with the command key', { metaKey: true }],
    ['with Alt', { altKey: true }],
    ['by the middle button', { button: 1 }],
  ])('asks as well if it is clicked %s', async (_, how) => {
    const link = await answer('[https://bank.example](https://evil.example/x)');
    const event = new MouseEvent(how.button ? 'auxclick' : 'click', { bubbles: true, cancelable: true, ...how });
    link.dispatchEvent(event);
    await pass(0);
    expect([event.defaultPrevented, host.opened, all('link-question').length]).toEqual([true, [], 1]);
  });

  it('that no program opens says so in plain words and is copied', async () => {
    host.openLink = async () => {
      throw { code: 'not_found', message: 'no program opened it: Launcher "xdg-open" failed: ExitStatus(768)' };
    };
    let copied = '';
    const clipboard = { writeText: async (text: string) => void (copied = text) };
    Object.defineProperty(navigator, 'clipboard', { value: clipboard, configurable: true });
    const link = await answer('[a book](https://example.org/a)');
    link.click();
    await pass(0);
    expect(the('toast').textContent).toContain('Couldn’t open this link. No browser is set up.');
    expect(the('toast').textContent).not.toMatch(/xdg|Launcher|Exit/);
    await click('toast-undo');
    expect(copied).toBe('https://example.org/a');
    (await answer('[write](mailto:ann@example.org)')).click();
    await pass(0);
    expect(the('toast').textContent).toContain('No email app');
  });

  it('that is no address stays closed and says so', async () => {
    (await answer('[write](mailto:?attach=/etc/passwd)')).click();
    await pass(0);
    expect(host.opened).toEqual([]);
    expect(the('toast').textContent).toContain('Ponder can’t open this link: ');
  });
});

describe('a thought', () => {
  it('is drawn as Markdown once it is opened, without what an answer may not hold either', async () => {
    const chat = host.addChat('A chat', Date.now());
    const text = '1. **first**\n2. `second`\n\n<img src=x onerror=alert(1)>';
    host.addTurn(chat, 'A question', {
      parts: [{ kind: 'thinking', text, started_at: 0, ended_at: 1 }, textPart('Yes.')],
    });
    await open('chat', chat.summary.id);
    await click('thought-toggle');
    const thought = the('thought-text');
    expect([...thought.querySelectorAll('li')].map((item) => item.innerHTML)).toEqual([
      '<strong>first</strong>',
      '<code>second</code>',
    ]);
    expect(thought.querySelector('img')).toBeNull();
  });
});

describe('text of people and models', () => {
  it('shows HTML as it is written, in questions and in answers', async () => {
    const chat = host.addChat('HTML', Date.now());
    const text = 'before <template><b>x</b></template> after';
    host.addTurn(chat, text, { parts: [textPart(text)] });
    await open('chat', chat.summary.id);
    expect(the('message-user').querySelector('.words')?.textContent).toBe(text);
    expect(the('answer-text').textContent?.trim()).toBe('before <template>x</template> after');
  });

  it('has the direction of its letters', async () => {
    const chat = host.addChat('שלום', Date.now());
    host.addTurn(chat, 'مرحبا', {
      parts: [{ kind: 'thinking', text: 'שלום', started_at: 0, ended_at: 1 }, textPart('שלום\n\n```\ncode\n```')],
    });
    await open('chat', chat.summary.id);
    await click('thought-toggle');
    const auto = (element: Element | null | undefined): boolean =>
      element?.closest('[dir]')?.getAttribute('dir') === 'auto';
    expect(auto(the('message-user').querySelector('.words'))).toBe(true);
    expect(auto(the('answer-text').querySelector('p'))).toBe(true);
    expect(auto(the('thought-text').firstElementChild)).toBe(true);
    expect(auto(the('chat-title'))).toBe(true);
    expect(auto(the('chat-item').querySelector('.title'))).toBe(true);
    // An empty field has the direction of the window's language.
    expect(the('composer').getAttribute('dir') ?? '').toBe('');
    expect(the('answer-text').querySelector('pre')?.closest('[dir]')?.getAttribute('dir')).toBe('ltr');
  });

  it('in a name stands apart and cannot turn itself around', async () => {
    const chat = host.addChat('photo\u202egpj.exe', Date.now());
    host.addRow(chat, {
      role: 'user',
      parts: [
        {
          kind: 'file',
          attachment: 'x',
          media_type: 'text/csv',
          name: 'a\u202egpj.exe',
          bytes: 1,
          started_at: 0,
          ended_at: 0,
        },
      ],
    });
    await open('chat', chat.summary.id);
    expect(the('attachment').querySelector('bdi')?.textContent).toBe('agpj.exe');
    expect(the('chat-title').textContent).toBe('photogpj.exe');
  });
});

describe('the model of a chat that is gone', () => {
  const gone = async (reference: string): Promise<void> => {
    const chat = host.addChat('A chat', Date.now());
    chat.settings = { ...chat.settings, model: reference };
    host.addTurn(chat, 'A question', {});
    await open('chat', chat.summary.id);
  };

  it('is said before anything is sent, and got again', async () => {
    await gone('mlx-community/Gone-4B');
    expect(the('model-gone').textContent).toContain('Gone 4B, is no longer on this computer.');
    expect(the('model-picker').getAttribute('aria-label')).toContain('is missing');
    await click('get-again');
    await pass(300);
    expect(
      (
        await new Promise<string[]>((resolve) => void host.watchDownloads((list) => resolve(list.map(({ id }) => id))))
      ).includes('mlx-community/Gone-4B'),
    ).toBe(true);
  });

  it('gives way to another', async () => {
    await gone('mlx-community/Gone-4B');
    await click('use-another');
    await pass(0);
    document.querySelector<HTMLElement>('[role=option]')?.click();
    await pass(50);
    expect(all('model-gone')).toEqual([]);
    expect(the('model-picker').textContent?.trim()).toBe('Pebble');
  });

  it('is got again only from where it came', async () => {
    await gone('/home/me/models/mine');
    expect([all('model-gone').length, all('get-again').length, all('use-another').length]).toEqual([1, 0, 1]);
  });

  it('is also said of the one that new chats use, and once its files were taken away while it was listed', async () => {
    await open('chat');
    expect(all('model-gone')).toEqual([]);
    host.refuse = {
      call: 'send',
      error: { code: 'model_not_found', message: 'No model called pebble is on this computer' },
    };
    host.local = host.local.filter(({ reference }) => reference !== 'pebble');
    Object.assign(the('composer'), { value: 'A question' }).dispatchEvent(new InputEvent('input', { bubbles: true }));
    await pass(0);
    await click('send');
    await pass(300);
    expect(all('model-gone')).toHaveLength(1);
    expect(the('composer')).toHaveProperty('value', 'A question');
  });

  it('is not said of a model that is here', async () => {
    await gone('mlx-community/gpt-oss-20b');
    expect(all('model-gone')).toEqual([]);
  });
});
