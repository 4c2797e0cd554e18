import { describe, expect, it } from 'vitest';

import { all, click, host, open, pass, the, type, useWindow } from '../../testing/window';

useWindow();

/** Asks a question for two answers, the second one in the first way that is offered. */
async function askTwice(question: string): Promise<string> {
  const { id } = host.addChat('A chat', Date.now()).summary;
  await open('chat', id);
  await click('composer-add');
  await click('two-answers');
  all('second-answer')[0]?.click();
  await pass(0);
  expect(the('second-chip').textContent).toContain('Without thinking');
  await type(question);
  await click('send');
  await pass(30);
  return id;
}

async function untilEnded(): Promise<void> {
  for (let step = 0; step < 400 && all('stop-column').length > 0; step += 1) await pass(50);
}

describe('two answers', () => {
  it('stand side by side while they are written, and are branches afterwards', async () => {
    const id = await askTwice('What is 347 + 589?');
    expect(all('answer-column')).toHaveLength(2);
    expect(all('stop-column')).toHaveLength(2);
    expect(all('second-chip')).toEqual([]);
    await untilEnded();
    const [answer] = (await host.chat(id)).messages.slice(-1);
    expect(answer?.siblings).toHaveLength(2);
    expect(all('keep-answer')).toHaveLength(2);
    expect(the('answer-column').textContent).toContain('Without thinking');
    all('keep-answer')[1]?.click();
    await pass(50);
    expect(all('answer-column')).toEqual([]);
    expect(the('pager').textContent?.replace(/\s+/g, ' ')).toContain('2 / 2');
    expect((await host.chat(id)).messages.at(-1)?.settings?.thinking).toBe('off');
  });

  it('leave the chat with the model of the one that is chosen', async () => {
    const { id } = host.addChat('A chat', Date.now()).summary;
    await open('chat', id);
    await click('composer-add');
    await click('two-answers');
    const other = all('second-answer').find((way) => way.textContent?.includes('Gemma 4 E4B'));
    other?.click();
    await pass(0);
    await type('What is 347 + 589?');
    await click('send');
    await pass(30);
    await untilEnded();
    expect(the('model-picker').textContent).toContain('Pebble');
    all('keep-answer')[1]?.click();
    await pass(50);
    expect(the('model-picker').textContent).toContain('Gemma 4 E4B');
    expect((await host.chat(id)).settings.model).toBe('mlx-community/gemma-4-e4b-it-4bit');
  });

  it('end each alone', async () => {
    const id = await askTwice('Tell me a long story');
    all('stop-column')[1]?.click();
    await pass(100);
    expect(all('stop-column')).toHaveLength(1);
    const states = async (): Promise<string[]> => {
      const last = (await host.chat(id)).messages.at(-1);
      return host
        .rows(id)
        .filter(({ parent }) => parent === last?.parent)
        .map(({ state }) => state);
    };
    expect(await states()).toEqual(['streaming', 'stopped']);
    await click('stop');
    await pass(100);
    expect(await states()).toEqual(['stopped', 'stopped']);
  });

  it('are both there again after the window was reloaded', async () => {
    const id = await askTwice('Tell me a long story');
    await open('chat', id);
    await pass(50);
    expect(all('answer-column')).toHaveLength(2);
    expect(all('stop-column')).toHaveLength(2);
    await click('stop');
    await pass(100);
  });

  it('are asked for once, and not at all if that is taken back', async () => {
    const id = await askTwice('What is 2 + 3?');
    await untilEnded();
    await type('And 3 + 4?');
    await click('send');
    await pass(2000);
    expect((await host.chat(id)).messages.at(-1)?.siblings).toHaveLength(1);
    await click('composer-add');
    await click('two-answers');
    all('second-answer')[0]?.click();
    await pass(0);
    await click('one-answer');
    expect(all('second-chip')).toEqual([]);
  });
});
