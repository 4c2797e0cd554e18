/** The model of new chats, and of chats that have begun. */

import { describe, expect, it } from 'vitest';

import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import { ask, choose, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

const LARGE = 'mlx-community/gemma-4-e4b-it-4bit';

async function askAndWait(text: string): Promise<void> {
  await ask(text);
  await pass(5000);
}

const shown = (): string => the('model-picker').textContent?.trim() ?? '';

describe('a new chat', () => {
  it('uses the model used last', async () => {
    const { id } = host.addChat('A chat', Date.now(), { ...DEFAULT_CHAT_SETTINGS, model: LARGE }).summary;
    await open('chat', id);
    await askAndWait('What is 2 + 3?');
    await click('new-chat');
    await pass(50);
    expect(shown()).toContain('Gemma 4 E4B');
    await askAndWait('And 3 + 4?');
    const [chat] = await host.chats();
    expect((await host.chat(chat?.id ?? '')).messages.at(-1)?.model).toBe(LARGE);
  });

  it('uses the model that is set for new chats, if one is', async () => {
    const { id } = host.addChat('A chat', Date.now(), { ...DEFAULT_CHAT_SETTINGS, model: LARGE }).summary;
    await open('chat', id);
    await askAndWait('What is 2 + 3?');
    await open('settings');
    expect(the('new-chat-model').textContent).toContain('Last used');
    await choose('new-chat-model', 'gpt-oss 20B');
    expect(the('new-chat-model').textContent).toContain('gpt-oss 20B');
    expect(await host.defaultModel()).toBe('mlx-community/gpt-oss-20b');
    await open('chat');
    expect(shown()).toContain('gpt-oss 20B');
    await open('settings');
    await choose('new-chat-model', 'Last used');
    await open('chat');
    expect(shown()).toContain('Gemma 4 E4B');
  });
});

describe('a chat that has begun', () => {
  it('keeps its model when another becomes the default', async () => {
    await open('chat');
    await askAndWait('What is 2 + 3?');
    await host.setDefaultModel(LARGE);
    await pass(50);
    expect(shown()).toContain('Pebble');
    const [chat] = await host.chats();
    await open('chat', chat?.id);
    expect(shown()).toContain('Pebble');
    await click('new-chat');
    await pass(50);
    expect(shown()).toContain('Gemma 4 E4B');
  });

  it('without messages follows the default', async () => {
    const { id } = host.addChat('', Date.now()).summary;
    await host.setDefaultModel(LARGE);
    await open('chat', id);
    expect(shown()).toContain('Gemma 4 E4B');
  });
});
