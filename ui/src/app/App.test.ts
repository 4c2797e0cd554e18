import { describe, expect, it, vi } from 'vitest';

import type { StoredMessage } from '../bindings/StoredMessage';
import { all, click, field, host, open, pass, the, type, useWindow } from '../testing/window';
import { DEFAULT_CHAT_SETTINGS } from '../bindings/constants';

useWindow();

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
    await open('chat');
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

  it('says for whom an answer waits that does not fit into memory beside others, until it begins', async () => {
    host.waitsFor = ['mlx-community/gpt-oss-20b'];
    await open('chat');
    await ask('What is 347 + 589?');
    await pass(500);
    expect(the('answer-progress').textContent).toBe(
      'Waiting for gpt-oss 20B. Both models don’t fit in memory at once.',
    );
    host.waitsFor = [];
    await pass(5000);
    expect([all('answer-progress'), all('stop-waiting')]).toEqual([[], []]);
    expect(the('message-assistant').dataset.state).toBe('complete');
  });

  it.each([
    [['pebble'], 'Waiting for another response. They don’t fit in memory at once.'],
    [
      ['a/one', 'a/two'],
      'Waiting for one, two. They don’t fit in memory together with this model.',
    ],
  ])('stops waiting for %s when it is asked to', async (models, words) => {
    host.waitsFor = models;
    await open('chat');
    await ask('What is 347 + 589?');
    await pass(100);
    expect(the('answer-progress').textContent).toBe(words);
    await click('stop-waiting');
    await pass(100);
    expect(the('message-assistant').dataset.state).toBe('stopped');
  });

  it('keeps a thought open that the user opened', async () => {
    await open('chat');
    await ask('What is 347 + 589?');
    await pass(120);
    await click('thought-toggle');
    await pass(5000);
    expect(the('thought').dataset.open).toBe('true');
  });

  it('sends on Enter, but not with Shift and not inside a composition', async () => {
    await open('chat');
    await type('naïve');
    expect((await press('Enter', { shiftKey: true })).defaultPrevented).toBe(false);
    expect((await press('Enter', { isComposing: true })).defaultPrevented).toBe(false);
    expect(all('message-user')).toEqual([]);
    expect((await press('Enter')).defaultPrevented).toBe(true);
    expect(the('message-user').textContent?.trim()).toBe('naïve');
  });

  it('stops on Escape and offers another answer', async () => {
    await open('chat');
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
    await open('chat');
    the('empty-state').querySelector('button')?.click();
    await pass(5000);
    expect(the('message-user').textContent?.trim()).toBe('What is 347 + 589?');
    expect(all('empty-state')).toEqual([]);
  });

  it('loses nothing that is written to an example', async () => {
    await open('chat');
    await type('A long letter');
    the('empty-state').querySelector('button')?.click();
    await pass(500);
    expect(all('message-user')).toEqual([]);
    expect(the('composer')).toHaveProperty('value', 'A long letter');
  });
});

describe('another process', () => {
  it('asks in the open chat, and the window shows the question and the growing answer', async () => {
    await openAnswer({});
    const [chat] = await host.chats();
    await host.send(chat?.id ?? '', [{ kind: 'text', text: 'Tell me a long story' }], 'end');
    await pass(700);
    expect(all('message-user')).toHaveLength(2);
    expect(the('message-assistant').dataset.state).toBe('streaming');
    const early = the('answer-text').textContent ?? '';
    await pass(700);
    expect((the('answer-text').textContent ?? '').length).toBeGreaterThan(early.length);
    await click('stop');
    await pass(100);
    expect(the('message-assistant').dataset.state).toBe('stopped');
    expect(all('send')).toHaveLength(1);
  });
});

describe('thinking', () => {
  const half: Partial<StoredMessage> = {
    state: 'stopped',
    finish_reason: 'cancelled',
    parts: [{ kind: 'thinking', text: 'Add the digits', started_at: 0, ended_at: 2000 }],
    thinking_tokens: 4,
    usage: null,
  };

  it('ends at the press of a button, once, and the answer follows', async () => {
    await open('chat');
    await ask('What is 347 + 589?');
    await pass(60);
    const asked = vi.spyOn(host, 'answerNow');
    expect(the('answer-now').title).toContain('Ctrl+Shift+A');
    await click('answer-now');
    await press('A', { ctrlKey: true, shiftKey: true });
    expect(asked).toHaveBeenCalledOnce();
    await pass(3000);
    expect(the('answer-text').textContent?.trim()).toBe('347 + 589 = 936');
    expect(the('thought-ending').textContent).toBe('You stopped the thinking here.');
    expect(all('notice')).toEqual([]);
    expect(all('answer-now')).toEqual([]);
    await click('thought-toggle');
    expect(the('thought-text').textContent).not.toContain('936');
  });

  it('ends by its key, and the key does nothing if nobody thinks', async () => {
    await open('chat');
    const asked = vi.spyOn(host, 'answerNow');
    await press('A', { ctrlKey: true, shiftKey: true });
    expect(asked).not.toHaveBeenCalled();
    await ask('What is 347 + 589?');
    await pass(60);
    await press('A', { ctrlKey: true, shiftKey: true });
    await pass(3000);
    expect(the('thought-ending').textContent).toBe('You stopped the thinking here.');
  });

  it('has a budget that the chat remembers, of a size that is offered or of one’s own', async () => {
    await open('chat');
    await type('A draft that is not sent by setting a budget');
    await click('composer-add');
    await click('thinking-budget');
    const sizes = [...document.querySelectorAll<HTMLElement>('[role=option]')];
    expect(sizes.map((size) => size.textContent?.trim())).toEqual(['No limit', '256 tokens', '1,024 tokens']);
    sizes[1]?.click();
    await pass(0);
    expect(the('thinking-menu').textContent).toContain('Up to 256');
    await click('thinking-menu');
    const field = the('budget-field');
    if (!(field instanceof HTMLInputElement)) throw new Error('no field');
    for (const [typed, taken] of [
      ['0', false],
      ['many', false],
      ['3', true],
    ] as const) {
      field.value = typed;
      field.dispatchEvent(new InputEvent('input', { bubbles: true }));
      await pass(0);
      await click('set-budget');
      expect(field.isConnected).toBe(!taken);
      if (!taken) expect(the('thinking-surface').textContent).toContain('a whole number from 1');
    }
    expect(all('message-user')).toEqual([]);
    await ask('What is 347 + 589?');
    await pass(3000);
    expect(the('thought-ending').textContent).toContain('budget of 3 tokens');
    expect(the('thought-toggle').textContent).toContain('3 tokens');
    await click('thinking-switch');
    expect(all('thinking-menu')).toEqual([]);
  });

  it('continues where it was stopped, with all it was', async () => {
    await openAnswer(half);
    expect(the('thought-toggle').textContent).toContain('Thought for 2 s');
    expect(the('thought-toggle').textContent).toContain('4 tokens');
    await click('continue');
    expect(the('message-assistant').dataset.state).toBe('streaming');
    expect(all('thought')).toHaveLength(1);
    await pass(5000);
    expect(the('answer-text').textContent?.trim()).toBe('347 + 589 = 936');
    await click('thought-toggle');
    expect(the('thought-text').textContent).toContain('Add the digits from the right.');
    expect(all('message-assistant')).toHaveLength(1);
  });

  it('stays as it is if it cannot be continued, and says why', async () => {
    host.refuse = { call: 'continueAnswer', error: { code: 'model_not_found', message: 'The model is not here.' } };
    await openAnswer(half);
    await click('continue');
    expect(the('toast').textContent).toContain('Model not found');
    expect(the('message-assistant').dataset.state).toBe('stopped');
    expect(the('thought-toggle').textContent).toContain('Thought for 2 s');
  });

  it.each([true, false])('is offered to continue as the host decided: %s', async (continuable) => {
    await openAnswer({ ...half, continuable });
    expect(all('continue')).toHaveLength(continuable ? 1 : 0);
  });

  it('continues only at the end of the chat', async () => {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'A question', half);
    host.addTurn(chat, 'Another', {});
    await open('chat', chat.summary.id);
    expect(all('message-assistant')).toHaveLength(2);
    expect(all('continue')).toEqual([]);
  });
});

describe('a model on another computer', () => {
  const REMOTE = 'endpoint:lab/big';

  it('is marked in the composer, in the list of models and in a new chat', async () => {
    await host.addEndpoint('lab', 'https://lab.example/v1', null, false);
    await open('chat');
    expect(all('leaves-computer')).toEqual([]);
    expect(the('empty-state').textContent).toContain('It stays on this computer.');
    expect(the('empty-state').textContent).toContain('What is 347 + 589?');
    await click('model-picker');
    await pass(0);
    expect(the('model-group').textContent).toContain('Messages and images are sent to lab.');
    const option = [...document.querySelectorAll<HTMLElement>('[role=option]')].at(-1);
    option?.click();
    await pass(50);
    expect(the('model-picker').textContent).toContain('big');
    expect(all('leaves-computer')).toHaveLength(1);
    expect(the('empty-state').textContent).toContain('Messages and images go to a remote model.');
    expect(the('empty-state').textContent, 'examples for the built-in model').not.toContain('What is 347 + 589?');
  });

  it('is not offered what its engine cannot do', async () => {
    await host.addEndpoint('lab', 'https://lab.example/v1', null, false);
    const chat = host.addChat('A chat', Date.now(), { ...DEFAULT_CHAT_SETTINGS, model: REMOTE });
    host.addTurn(chat, 'A question', {
      state: 'stopped',
      parts: [{ kind: 'text', text: 'Half', started_at: 0, ended_at: 0 }],
      model: REMOTE,
    });
    await open('chat', chat.summary.id);
    expect(all('continue')).toEqual([]);
    await click('thinking-levels');
    expect(all('thinking-surface')).toHaveLength(1);
    expect(all('budget-field')).toEqual([]);
    await click('thinking-levels');
    const asked = vi.spyOn(host, 'answerNow');
    await ask('What is 347 + 589?');
    await pass(60);
    expect(the('thought').dataset.live).toBe('true');
    expect(all('answer-now')).toEqual([]);
    await press('A', { ctrlKey: true, shiftKey: true });
    expect(asked).not.toHaveBeenCalled();
  });
});

describe('answers', () => {
  it('open their links outside', async () => {
    await openAnswer({ parts: [{ kind: 'text', text: '[a](https://example.org/a)', started_at: 0, ended_at: 0 }] });
    the('answer-text').querySelector('a')?.click();
    expect(host.opened).toEqual(['https://example.org/a']);
  });

  it('tell which rule ended them', async () => {
    await openAnswer({ ended_by: { rule: 'stop_token', token: 106, text: '<turn|>', sources: [] } });
    expect(the('figures').title).toBe(
      '1,162 prompt tokens, 187 response tokens, 61 of them thinking\nStop reason: end token <turn|>',
    );
  });

  it('pass their notices on', async () => {
    await openAnswer({ notices: [{ code: 'thought_while_off', message: 'It thought anyway.' }] });
    expect(the('notice').textContent).toContain('isn’t part of the response');
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

  it('are renamed by a double click on the title, which is no part of the title bar that enlarges the window', async () => {
    const edit = async (): Promise<HTMLInputElement> => {
      the('chat-title').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));
      await pass(0);
      return field('title-field');
    };
    const end = async (key: string): Promise<void> => {
      field('title-field').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      await pass(50);
    };
    await openAnswer({});
    expect(the('chat-title').dataset['tauriDragRegion']).toBe('false');
    expect(the('chat-title').closest('header')?.dataset['tauriDragRegion']).toBe('');
    (await edit()).value = 'Another name';
    expect(document.activeElement).toBe(the('title-field'));
    await end('Enter');
    expect(the('chat-title').textContent).toBe('Another name');
    expect((await host.chats())[0]?.title).toBe('Another name');
    (await edit()).value = 'Not this one';
    await end('Escape');
    expect(the('chat-title').textContent).toBe('Another name');
    // A chat that is opened meanwhile keeps its own.
    (await edit()).value = 'Left';
    await click('new-chat');
    expect([the('chat-title').textContent, all('title-field')]).toEqual(['New chat', []]);
    expect(the('chat-title').dataset['tauriDragRegion']).toBe('');
    the('chat-title').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));
    await pass(0);
    expect(all('title-field')).toEqual([]);
  });

  it('have all their commands in the menu of the title, also where the sidebar is folded', async () => {
    await openAnswer({});
    await click('title-menu');
    expect([...document.querySelectorAll('[role=menuitem]')].map((item) => item.getAttribute('data-testid'))).toEqual([
      'rename-chat',
      'pin-chat',
      'move-chat-to-project',
      'archive-chat',
      'export-chat',
      'title-settings',
      'delete-chat',
    ]);
    expect(document.activeElement).toBe(the('rename-chat'));
    await click('rename-chat');
    field('title-field').value = 'Another name';
    field('title-field').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    await pass(50);
    expect((await host.chats())[0]?.title).toBe('Another name');
    await click('title-menu');
    await click('pin-chat');
    await pass(50);
    expect((await host.chats())[0]?.pinned).toBe(true);
    await click('title-menu');
    await click('title-settings');
    await pass(50);
    expect(all('chat-settings')).toHaveLength(1);
    await click('chat-settings-close');
    await click('title-menu');
    await click('delete-chat');
    await pass(50);
    expect([the('chat-title').textContent, all('title-menu')]).toEqual(['New chat', []]);
    await click('toast-undo');
    await pass(50);
    expect(the('chat-title').textContent).toBe('Another name');
  });
});

describe('the model', () => {
  it('decides what is offered about thinking, and the chat remembers it', async () => {
    await open('chat');
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
    await open('chat');
    await click('model-picker');
    const broken = document.querySelectorAll<HTMLElement>('[role=option]')[3];
    expect(broken?.textContent).toContain('Can’t run this model yet. Ponder doesn’t support models of type');
    broken?.click();
    await pass(0);
    expect(the('model-picker').textContent?.trim()).toBe('Pebble');
  });
});
