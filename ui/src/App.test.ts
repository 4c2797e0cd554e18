import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import App from './App.svelte';
import type { StoredMessage } from './bindings/StoredMessage';
import { FakeHost } from './platform/fake';
import { MODELS } from './platform/fakeModels';

let host: FakeHost;
let app: Record<string, unknown> | null = null;

/** jsdom measures nothing, so nothing ever changes its size. */
class StillObserver {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}

beforeEach(() => {
  vi.stubGlobal('ResizeObserver', StillObserver);
  Element.prototype.scrollIntoView = () => {};
  vi.useFakeTimers();
  host = new FakeHost(5);
});

afterEach(async () => {
  if (app) await unmount(app);
  app = null;
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function open(which: 'chat' | 'models' = 'chat', openChat = ''): Promise<void> {
  const kept = new Map([['open-chat', openChat]]);
  app = mount(App, {
    target: document.body,
    props: {
      platform: host,
      window: which,
      frame: (run) => void setTimeout(run, 16),
      failure: '',
      keepsake: { get: (name) => kept.get(name) ?? '', set: (name, value) => void kept.set(name, value) },
    },
  });
  await pass(50);
}

async function pass(milliseconds: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(milliseconds);
  flushSync();
}

function all(name: string): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(`[data-testid="${name}"]`)];
}

function the(name: string): HTMLElement {
  const element = all(name).at(-1);
  if (!element) throw new Error(`nothing is called ${name}`);
  return element;
}

async function click(name: string): Promise<void> {
  the(name).click();
  await pass(0);
}

async function type(text: string): Promise<void> {
  const area = the('composer');
  if (!(area instanceof HTMLTextAreaElement)) throw new Error('the composer is no text area');
  area.value = text;
  area.dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(0);
}

async function press(key: string, more: KeyboardEventInit = {}): Promise<KeyboardEvent> {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more });
  the('composer').dispatchEvent(event);
  await pass(0);
  return event;
}

async function ask(text: string): Promise<void> {
  await type(text);
  await press('Enter');
}

/** A window with one chat that holds this answer. */
async function openAnswer(answer: Partial<StoredMessage>): Promise<void> {
  const chat = host.addChat('A chat', Date.now());
  host.addTurn(chat, 'A question', answer);
  await open('chat', chat.summary.id);
}

describe('asking', () => {
  it('shows the thought while it is thought and folds it when it is done', async () => {
    await open();
    await ask('What is 347 + 589?');
    await pass(120);
    expect(the('message-assistant').dataset.state).toBe('streaming');
    expect(the('thought').dataset.open).toBe('true');
    expect(the('thought-text').textContent).toContain('Add the digits');
    await pass(5000);
    expect(the('message-assistant').dataset.state).toBe('complete');
    expect(the('thought').dataset.open).toBe('false');
    expect(all('thought-text')).toEqual([]);
    expect(the('answer-text').textContent?.trim()).toBe('347 + 589 = 936');
    await click('thought-toggle');
    expect(the('thought-text').textContent).toContain('So the sum is 936.');
  });

  it('keeps a thought open that the user opened', async () => {
    await open();
    await ask('What is 347 + 589?');
    await pass(120);
    await click('thought-toggle');
    await pass(5000);
    expect(the('thought').dataset.open).toBe('true');
  });

  it('sends on Enter, but not with Shift and not inside a composition', async () => {
    await open();
    await type('naïve');
    expect((await press('Enter', { shiftKey: true })).defaultPrevented).toBe(false);
    expect((await press('Enter', { isComposing: true })).defaultPrevented).toBe(false);
    expect(all('message-user')).toEqual([]);
    expect((await press('Enter')).defaultPrevented).toBe(true);
    expect(the('message-user').textContent).toBe('naïve');
  });

  it('stops on Escape and offers another answer', async () => {
    await open();
    await ask('Tell me a long story');
    await pass(500);
    await press('Escape');
    await pass(100);
    expect(the('message-assistant').dataset.state).toBe('stopped');
    await click('regenerate');
    await pass(100);
    expect(the('pager').textContent?.trim()).toBe('2 / 2');
    expect(all('stop')).toHaveLength(1);
  });

  it('begins with an example', async () => {
    await open();
    the('empty-state').querySelector('button')?.click();
    await pass(5000);
    expect(the('message-user').textContent).toBe('What is 347 + 589?');
    expect(all('empty-state')).toEqual([]);
  });
});

describe('an answer that ended early', () => {
  it('says why it failed and can be tried again', async () => {
    await openAnswer({ state: 'failed', error: { code: 'engine', message: 'The engine failed.' } });
    expect(the('error-box').textContent).toContain('The engine failed.');
    expect(the('error-box').textContent).toContain('Copy details');
    the('error-box').querySelector('button')?.click();
    await pass(50);
    expect(the('message-assistant').dataset.state).toBe('streaming');
  });

  it('says that Ponder was closed', async () => {
    await openAnswer({ state: 'interrupted', parts: [{ kind: 'text', text: 'Half a', started_at: 0, ended_at: 0 }] });
    expect(the('answer-text').textContent?.trim()).toBe('Half a');
    expect(the('error-box').textContent).toContain('Ponder was closed while this was being written.');
  });
});

describe('answers', () => {
  it('open their links outside', async () => {
    await openAnswer({ parts: [{ kind: 'text', text: '[a](https://example.org/a)', started_at: 0, ended_at: 0 }] });
    the('answer-text').querySelector('a')?.click();
    expect(host.opened).toEqual(['https://example.org/a']);
  });

  it('pass their notices on', async () => {
    await openAnswer({ notices: [{ code: 'thought_while_off', message: 'It thought anyway.' }] });
    expect(the('notice').textContent).toContain('It thought anyway.');
  });
});

describe('chats', () => {
  it('are deleted with a way back', async () => {
    await openAnswer({});
    await click('chat-menu');
    await click('delete-chat');
    await pass(50);
    expect(all('chat-item')).toEqual([]);
    expect(the('chat-title').textContent).toBe('New chat');
    await click('toast-undo');
    await pass(50);
    expect(the('chat-title').textContent).toBe('A chat');
  });

  it('are renamed in place', async () => {
    await openAnswer({});
    the('chat-item').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));
    await pass(0);
    const field = the('rename-field');
    if (!(field instanceof HTMLInputElement)) throw new Error('no field');
    field.value = 'Another name';
    field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    await pass(50);
    expect(the('chat-title').textContent).toBe('Another name');
  });
});

describe('the model', () => {
  it('decides what is offered about thinking, and the chat remembers it', async () => {
    await open();
    expect(the('thinking-switch').getAttribute('aria-checked')).toBe('true');
    await click('thinking-switch');
    expect(the('thinking-switch').getAttribute('aria-checked')).toBe('false');
    await click('model-picker');
    document.querySelectorAll<HTMLElement>('[role=option]')[2]?.click();
    await pass(0);
    expect(the('model-picker').textContent?.trim()).toBe('gpt-oss 20B');
    expect(all('thinking-switch')).toEqual([]);
    expect(all('thinking-levels')).toHaveLength(1);
  });

  it('that cannot be used says why and is not chosen', async () => {
    await open();
    await click('model-picker');
    const broken = document.querySelectorAll<HTMLElement>('[role=option]')[3];
    expect(broken?.textContent).toContain('not known to this version');
    broken?.click();
    await pass(0);
    expect(the('model-picker').textContent?.trim()).toBe('Pebble');
  });

  it('is made the default in its own window', async () => {
    await open('models');
    expect(all('model-row')).toHaveLength(MODELS.length);
    expect(all('make-default')).toHaveLength(MODELS.filter((model) => model.problem === null).length - 1);
    all('make-default')[0]?.click();
    await pass(50);
    expect(await host.defaultModel()).toBe('mlx-community/gemma-4-e4b-it-4bit');
    expect(all('model-row')[1]?.textContent).toContain('Default');
  });
});
