import { describe, expect, it, vi } from 'vitest';

import type { Content } from '../../../bindings/Content';
import type { ImageContent } from '../../../shared/messageParts';
import { all, click, field, host, open, pass, the, type, useWindow, write } from '../../../testing/window';
import { carrying, fileOf, png, pngFile } from '../../../testing/images';

useWindow();

const BLIND = 'pebble';
const SEEING = 'mlx-community/gemma-4-e4b-it-4bit';
const SMALL = 'mlx-community/Qwen3-VL-4B-Instruct-4bit';
const NOTES: Content = { kind: 'file', attachment: 'file-1', media_type: 'text/csv', name: 'tides.csv', bytes: 18_400 };

async function openWith(model: string, draft: Content[] = []) {
  const chat = host.addChat('A chat', Date.now());
  chat.settings = { ...chat.settings, model };
  chat.draft = draft;
  await open('chat', chat.summary.id);
  return chat;
}

async function paste(...files: File[]): Promise<Event> {
  const event = carrying('paste', files);
  the('composer').dispatchEvent(event);
  await pass(50);
  return event;
}

async function press(element: HTMLElement, key: string, more: KeyboardEventInit = {}): Promise<void> {
  element.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }));
  await pass(50);
}

const tiles = (): HTMLElement[] => all('attachment');
const titles = (): string[] => tiles().map((tile) => tile.title);

describe('an image comes into a question', () => {
  it('by a paste, which then pastes nothing else', async () => {
    await openWith(SEEING);
    expect((await paste(pngFile('harbour.png', 1280, 720))).defaultPrevented).toBe(true);
    expect(titles()).toEqual(['harbour.png, 1,280 × 720, 920 tokens'.replace('1,280', '1280')]);
  });

  it('by a paste of which the web view tells nothing', async () => {
    await openWith(SEEING);
    // The test's page has files but cannot read them; this one is read when it is created.
    const make = File;
    vi.stubGlobal('File', function (parts: [ArrayBuffer], name: string) {
      return Object.assign(new make(parts, name), { arrayBuffer: async () => parts[0] });
    });
    await paste();
    expect(tiles()).toEqual([]);
    host.clipboard = png(64, 48);
    await paste();
    expect(titles()).toEqual(['Image, 64 × 48, 4 tokens']);
  });

  it('while words are pasted as words', async () => {
    await openWith(SEEING);
    const event = carrying('paste', [pngFile('image.png')], { 'text/plain': 'one\ttwo' });
    the('composer').dispatchEvent(event);
    await pass(50);
    expect([event.defaultPrevented, tiles().length]).toEqual([false, 0]);
  });

  it('by a drop anywhere, several at once, and the window says so before', async () => {
    await openWith(SEEING);
    const files = [pngFile('a.png', 640, 480, 1), pngFile('b.png', 320, 240, 2)];
    the('chat-title').dispatchEvent(carrying('dragenter', files));
    await pass(0);
    expect(the('drop-target').textContent).toBe('Drop images and files here');
    const over = carrying('dragover', files);
    the('chat-title').dispatchEvent(over);
    expect(over.defaultPrevented).toBe(true);
    the('chat-title').dispatchEvent(carrying('drop', files));
    await pass(50);
    expect(all('drop-target')).toEqual([]);
    expect(titles()).toEqual(['a.png, 640 × 480, 300 tokens', 'b.png, 320 × 240, 80 tokens']);
    expect(document.activeElement).toBe(the('composer'));
  });

  it('not by an address, of which nothing is fetched', async () => {
    await openWith(SEEING);
    the('chat-title').dispatchEvent(carrying('drop', [], { 'text/uri-list': 'https://example.org/boat.png' }));
    await pass(50);
    expect(the('toast').textContent).toContain('Ponder doesn’t load images from the web');
    expect(tiles()).toEqual([]);
  });

  it('by the button', async () => {
    await openWith(SEEING);
    const chooser = field('choose-images');
    const pressed = vi.spyOn(chooser, 'click').mockImplementation(() => {});
    await click('composer-add');
    await click('attach');
    expect(pressed).toHaveBeenCalledOnce();
    Object.defineProperty(chooser, 'files', { value: [pngFile('a.png')] });
    chooser.dispatchEvent(new Event('change', { bubbles: true }));
    await pass(50);
    expect(titles()).toEqual(['a.png, 640 × 480, 300 tokens']);
  });

  it('or is told why it cannot be, by its name, and can be taken out', async () => {
    await openWith(SEEING);
    await type('What is this?');
    await paste(fileOf(new Uint8Array(9), 'notes.docx'));
    expect(the('broken-image').textContent).toContain('notes.docx can’t be read');
    expect((the('send') as HTMLButtonElement).disabled).toBe(true);
    await press(the('composer'), 'Enter');
    expect(all('message-user')).toEqual([]);
    await click('remove-attachment');
    expect([all('broken-image').length, (the('send') as HTMLButtonElement).disabled]).toEqual([0, false]);
  });

  it('is kept with the draft, in its order and with its words, and sent before the question', async () => {
    const chat = await openWith(SEEING);
    const sent = vi.spyOn(host, 'send');
    await paste(pngFile('a.png', 640, 480, 1), pngFile('image.png', 64, 64, 2));
    await type('Which is larger?');
    await pass(400);
    const kept = chat.draft;
    expect(kept.map((part) => (part.kind === 'image' ? [part.alt, part.width] : part))).toEqual([
      ['a.png', 640],
      ['', 64],
      { kind: 'text', text: 'Which is larger?' },
    ]);
    await open('chat', chat.summary.id);
    expect(titles()).toEqual(['a.png, 640 × 480, 300 tokens', 'Image, 64 × 64, 4 tokens']);
    host.refuse = { call: 'send', error: { code: 'storage', message: 'The disk is full.' } };
    await press(the('composer'), 'Enter');
    expect(tiles()).toHaveLength(2);
    host.refuse = null;
    await press(the('composer'), 'Enter');
    expect(sent).toHaveBeenLastCalledWith(chat.summary.id, kept, 'beginning');
    expect(tiles()).toEqual([]);
    expect(all('message-image').map((image) => image.querySelector('img')?.alt)).toEqual(['a.png', 'Image']);
  });

  it('alone is a question too', async () => {
    await openWith(SEEING);
    await paste(pngFile('a.png'));
    await press(the('composer'), 'Enter');
    expect(all('message-image')).toHaveLength(1);
  });

  it('beside files of a draft', async () => {
    const chat = await openWith(SEEING, [NOTES]);
    expect(the('attachment').textContent).toContain('tides.csv');
    await click('remove-attachment');
    await pass(400);
    expect(chat.draft).toEqual([]);
  });
});

describe('while an image is read', () => {
  it('it stands there with its name, and the question is sent as soon as it was', async () => {
    await openWith(SEEING);
    host.readingTime = 2000;
    await type('What is this?');
    await paste(pngFile('harbour.png'));
    expect([the('attachment').getAttribute('aria-busy'), the('image-cost').textContent]).toEqual([
      'true',
      'Reading harbour.png…',
    ]);
    await press(the('composer'), 'Enter');
    expect([
      all('message-user').length,
      all('hold-back').length,
      (the('composer') as HTMLTextAreaElement).readOnly,
    ]).toEqual([0, 1, true]);
    await pass(2100);
    expect(the('message-user').textContent).toContain('What is this?');
    expect(all('message-image')).toHaveLength(1);
    expect((the('composer') as HTMLTextAreaElement).value).toBe('');
  });

  it('the question can be held back', async () => {
    await openWith(SEEING);
    host.readingTime = 2000;
    await type('What is this?');
    await paste(pngFile('harbour.png'));
    await press(the('composer'), 'Enter');
    await click('hold-back');
    await pass(2100);
    expect([all('message-user').length, tiles().length, (the('composer') as HTMLTextAreaElement).value]).toEqual([
      0,
      1,
      'What is this?',
    ]);
  });

  it('the question stays if it cannot be read', async () => {
    await openWith(SEEING);
    host.readingTime = 2000;
    await type('What is this?');
    await paste(fileOf(new Uint8Array(9), 'broken.png'));
    await press(the('composer'), 'Enter');
    await pass(2100);
    expect([
      all('message-user').length,
      all('broken-image').length,
      (the('composer') as HTMLTextAreaElement).value,
    ]).toEqual([0, 1, 'What is this?']);
  });

  it('another chat can be opened, and it comes to the draft of its own', async () => {
    const chat = await openWith(SEEING);
    host.readingTime = 2000;
    await paste(pngFile('harbour.png'));
    await click('new-chat');
    expect(tiles()).toEqual([]);
    await pass(2500);
    expect(tiles()).toEqual([]);
    expect(chat.draft.map((part) => part.kind)).toEqual(['image']);
  });
});

describe('images of a question', () => {
  async function three(): Promise<void> {
    await openWith(SEEING);
    await paste(pngFile('a.png', 32, 32, 1), pngFile('b.png', 32, 32, 2), pngFile('c.png', 32, 32, 3));
  }
  const names = (): string[] => titles().map((title) => title.split(',')[0] ?? '');

  it('are put into another order by the keyboard', async () => {
    await three();
    await press(tiles()[0]!, 'ArrowRight', { altKey: true });
    expect([names(), document.activeElement === tiles()[1]]).toEqual([['b.png', 'a.png', 'c.png'], true]);
    await press(tiles()[0]!, 'ArrowLeft', { altKey: true });
    expect(names()).toEqual(['b.png', 'a.png', 'c.png']);
    await press(tiles()[2]!, 'Delete');
    expect([names(), document.activeElement === tiles()[1]]).toEqual([['b.png', 'a.png'], true]);
  });

  it('are dragged to another place, and a drag opens nothing', async () => {
    await three();
    const list = the('draft-images');
    [...list.children].forEach(
      (child, index) => (child.getBoundingClientRect = () => new DOMRect(index * 80, 0, 70, 70)),
    );
    const pointer = (kind: string, x: number): void =>
      void tiles()[0]!.dispatchEvent(new MouseEvent(kind, { bubbles: true, button: 0, clientX: x, clientY: 30 }));
    pointer('pointerdown', 20);
    pointer('pointermove', 300);
    await pass(0);
    pointer('pointerup', 300);
    await pass(50);
    expect(names()).toEqual(['b.png', 'c.png', 'a.png']);
    tiles()[2]!.click();
    await pass(0);
    expect(all('lightbox')).toEqual([]);
  });

  it('are shown whole, one after the other, and described there', async () => {
    await three();
    tiles()[1]!.click();
    await pass(0);
    expect(the('lightbox').getAttribute('aria-label')).toBe('Image 2 of 3: b.png');
    await press(the('lightbox'), 'ArrowRight');
    expect(the('lightbox-place').textContent).toBe('3 / 3');
    await press(the('lightbox'), 'ArrowRight');
    expect((the('lightbox-next') as HTMLButtonElement).disabled).toBe(true);
    await write('lightbox-alt', 'A boat in a harbour');
    await press(field('lightbox-alt'), 'ArrowLeft');
    expect(the('lightbox-place').textContent).toBe('3 / 3');
    await click('lightbox-close');
    expect([all('lightbox').length, names()[2]]).toEqual([0, 'A boat in a harbour']);
  });

  it('cost tokens, a share of the context, and less with less detail', async () => {
    const chat = await openWith(SMALL);
    await paste(pngFile('a.png', 1920, 1080, 1), pngFile('b.png', 640, 480, 2));
    expect(the('image-bar').textContent).toContain('2 images · 2,340 tokens');
    expect(the('images-crowded').textContent).toBe(
      'Images use 57% of the context.',
    );
    await click('image-detail');
    const options = [...document.querySelectorAll<HTMLElement>('[role=option]')];
    expect(options.map((option) => /([\d,]+) tokens/.exec(option.textContent ?? '')?.[1])).toEqual([
      '812',
      '2,340',
      '2,340',
    ]);
    options[0]?.click();
    await pass(50);
    expect(chat.settings.image_detail).toBe('quick');
    expect(the('image-bar').textContent).toContain('812 tokens · 20% of context');
    expect(all('images-crowded')).toEqual([]);
  });

  it('are looked at as is set in new chats', async () => {
    await host.changeSettings({ default_model: SMALL, image_detail: 'quick' });
    await open('chat');
    await paste(pngFile('a.png', 1920, 1080, 1));
    expect(the('image-detail').textContent?.trim()).toBe('Low detail');
  });

  it('that fill the context are told to', async () => {
    await openWith(SMALL);
    await paste(...[1, 2, 3].map((mark) => pngFile(`${mark}.png`, 1920, 1080, mark)));
    expect(the('images-crowded').textContent).toContain('need 6,120 tokens, but the context is 4,096');
  });

  it('that move are seen by their first frame', async () => {
    await openWith(SEEING);
    host.animated = true;
    await paste(pngFile('cat.gif'));
    expect(the('images-animated').textContent).toBe('Only the first frame of an animated image is used.');
  });

  it('leave the computer with the words, and it says so', async () => {
    await host.addEndpoint('lab', 'https://lab.example/v1', null, false);
    await openWith('endpoint:lab/big');
    await paste(pngFile('a.png'));
    expect(the('image-bar').textContent).toContain('1 image · Sent to lab');
  });
});

describe('a model that cannot see', () => {
  it('is not sent an image, and one press takes a model that sees', async () => {
    const chat = await openWith(BLIND);
    await type('What is this?');
    await paste(pngFile('a.png'));
    expect(the('cannot-see').textContent).toContain('Pebble doesn’t support images. These models on this computer do:');
    await press(the('composer'), 'Enter');
    expect([all('message-user').length, document.activeElement]).toEqual([0, all('use-vision-model')[0]]);
    expect(all('use-vision-model').map((button) => button.textContent)).toEqual(['Use Gemma 4 E4B', 'Use Qwen3-VL 4B']);
    all('use-vision-model')[0]?.click();
    await pass(50);
    expect([chat.settings.model, all('cannot-see').length, titles()]).toEqual([
      SEEING,
      0,
      ['a.png, 640 × 480, 300 tokens'],
    ]);
    await press(the('composer'), 'Enter');
    expect(all('message-image')).toHaveLength(1);
  });

  it('is sent the words alone, and the images come back if that was not meant', async () => {
    await openWith(BLIND);
    await paste(pngFile('a.png'));
    expect(all('send-without')).toEqual([]);
    await type('What is 2 + 3?');
    await click('send-without');
    await pass(50);
    expect([the('message-user').textContent?.trim(), all('message-image').length, tiles().length]).toEqual([
      'What is 2 + 3?',
      0,
      0,
    ]);
    await click('toast-undo');
    expect(tiles()).toHaveLength(1);
  });

  it('is told why, if its vision part cannot be read', async () => {
    const problem = { code: 'image_not_seen', reason: 'model_vision', message: 'config.json lacks `depth`' } as const;
    host.local = host.local.map((model) =>
      model.reference === BLIND ? { ...model, vision_problem: problem } : model,
    );
    await openWith(BLIND);
    await paste(pngFile('a.png'));
    expect(the('vision-problem').textContent).toBe('Text only. Ponder can’t use this model’s files for images.');
    expect(the('cannot-see').textContent).toContain('Pebble doesn’t support images.');
  });

  it('is told of another if there is none', async () => {
    host.local = host.local.filter((model) => !model.supports_vision);
    await openWith(BLIND);
    await paste(pngFile('a.png'));
    expect(the('cannot-see').textContent).toContain('No other model on this computer does');
    expect(all('use-vision-model')).toEqual([]);
  });
});

describe('images of messages', () => {
  const image: ImageContent = {
    kind: 'image',
    attachment: 'image-1',
    media_type: 'image/png',
    width: 640,
    height: 480,
    alt: 'A boat',
  };
  const timed = { started_at: 0, ended_at: 0 };

  async function openMessages(): Promise<void> {
    const chat = host.addChat('A chat', Date.now());
    host.addRow(chat, {
      role: 'user',
      parts: [
        { ...image, ...timed },
        { ...NOTES, ...timed },
        { kind: 'text', text: 'What is this?', ...timed },
      ],
    });
    host.addRow(chat, {
      role: 'assistant',
      model: 'pebble',
      finish_reason: 'stop',
      parts: [{ kind: 'text', text: 'A boat.', ...timed }],
    });
    host.addRow(chat, {
      role: 'user',
      parts: [
        { ...image, attachment: 'image-2', alt: '', ...timed },
        { kind: 'text', text: 'And this?', ...timed },
      ],
    });
    await open('chat', chat.summary.id);
  }

  it('are there for eyes and for screen readers, beside files and words', async () => {
    await openMessages();
    expect(
      all('message-image').map((image) => [image.getAttribute('aria-label'), image.querySelector('img')?.alt]),
    ).toEqual([
      ['Show A boat', 'A boat'],
      ['Show Image', 'Image'],
    ]);
    expect(all('message-user')[0]?.textContent).toContain('tides.csv');
    expect(all('message-user')[0]?.textContent).toContain('What is this?');
  });

  it('are shown whole, through all of the chat, and copied', async () => {
    await openMessages();
    const written: unknown[] = [];
    vi.stubGlobal(
      'ClipboardItem',
      class {
        constructor(readonly items: Record<string, Promise<Blob>>) {
          items['image/png']?.catch(() => {});
        }
      },
    );
    vi.stubGlobal(
      'navigator',
      Object.assign(Object.create(navigator), {
        clipboard: { write: async (items: unknown[]) => void written.push(...items) },
      }),
    );
    all('message-image')[0]?.click();
    await pass(0);
    expect([the('lightbox-place').textContent, all('lightbox-alt').length]).toEqual(['1 / 2', 0]);
    await click('lightbox-next');
    expect(the('lightbox-image').getAttribute('src')).toBe(host.imageUrl('image-2', 'whole'));
    await click('lightbox-copy');
    await pass(0);
    expect([written.length, the('lightbox-copy').title]).toEqual([1, 'Copied']);
  });

  it('are dragged out as files', async () => {
    await openMessages();
    const event = new Event('dragstart', { bubbles: true, cancelable: true });
    all('message-image')[0]?.querySelector('img')?.dispatchEvent(event);
    expect([event.defaultPrevented, host.dragged]).toEqual([true, ['image-1 A boat']]);

    // Over its own window it is nothing to drop; after that files are again.
    const enters = async (): Promise<number> => {
      the('chat-title').dispatchEvent(carrying('dragenter', [pngFile('a.png')]));
      await pass(0);
      return all('drop-target').length;
    };
    expect(await enters()).toBe(0);
    window.dispatchEvent(new MouseEvent('pointermove', { buttons: 0 }));
    expect(await enters()).toBe(1);
  });

  it('whose files are gone are told by name', async () => {
    await openMessages();
    all('message-image')[0]?.querySelector('img')?.dispatchEvent(new Event('error'));
    await pass(0);
    expect(the('missing-image').textContent).toContain('A boat');
  });
});
