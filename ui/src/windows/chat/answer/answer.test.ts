/** An answer while it is written: its progress, and a loop. */

import { describe, expect, it, vi } from 'vitest';

import { textPart } from '../../../host/fake';
import { all, ask, click, composer, host, open, pass, the, type, useWindow } from '../../../testing/window';

useWindow();

describe('the load of a model', () => {
  it('is told in percent, and then what is done until the first word', async () => {
    host.loads = 1000;
    await open('chat');
    await ask('What is 347 + 589?');
    await pass(80);
    expect(the('answer-progress').textContent).toBe('Loading model… 50%');
    await pass(50);
    expect(the('answer-progress').textContent).toBe('Preparing response…');
  });
});

describe('an answer that repeats itself', () => {
  const LOOP = 'Tell me a long story again and again';

  it('says so while it goes on, and can be stopped', async () => {
    await open('chat');
    await ask(LOOP);
    await pass(300);
    expect(the('notice').textContent).toBe('The response repeats itself.');
    expect(the('message-assistant').dataset.state).toBe('streaming');
    await click('stop-repeating');
    await pass(100);
    expect(the('message-assistant').dataset.state).toBe('stopped');
    expect(all('stop-repeating')).toEqual([]);
    expect(the('continue').textContent).toBe('Continue with penalty');
  });

  it('is stopped and continued with a penalty by one button', async () => {
    const continued = vi.spyOn(host, 'continueAnswer');
    await open('chat');
    await ask(LOOP);
    await pass(300);
    const id = the('message-assistant').dataset['messageId'];
    await click('continue-penalty');
    await pass(200);
    expect(continued).toHaveBeenCalledExactlyOnceWith(id);
    expect(the('message-assistant').dataset.state).toBe('streaming');
    expect(all('notice')).toEqual([]);
    await pass(10_000);
    expect(the('message-assistant').dataset.state).toBe('complete');
    expect(all('message-assistant')).toHaveLength(1);
  });

  /** The id of a chat whose answer repeats itself, with a question that waits. */
  async function openLoop(): Promise<string> {
    const { id } = host.addChat('A loop', Date.now()).summary;
    await open('chat', id);
    await ask(LOOP);
    await pass(300);
    await type('And then?');
    composer().dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    await pass(0);
    expect(the('queued-question').textContent).toContain('And then?');
    return id;
  }

  it('is continued while another chat is answered and looked at; then the question that waits is asked', async () => {
    const other = host.addChat('Another', Date.now()).summary.id;
    await host.send(other, [{ kind: 'text', text: 'Tell me a long story' }], 'end');
    const id = await openLoop();
    await click('continue-penalty');
    all('chat-item')
      .find((item) => item.textContent?.includes('Another'))
      ?.click();
    await pass(1);
    expect([the('chat-title').textContent, all('stop').length]).toEqual(['Another', 1]);
    await pass(60_000);
    const { messages } = await host.chat(id);
    expect(messages.map(({ state }) => state)).toEqual(['complete', 'complete', 'complete', 'complete']);
  });

  it('gives the question that waits back if it cannot be continued', async () => {
    await openLoop();
    host.refuse = { call: 'continueAnswer', error: { code: 'engine', message: 'No model.' } };
    await click('continue-penalty');
    await pass(200);
    expect(the('toast').textContent).toContain('The model failed to run');
    expect([all('queued-question').length, composer().value]).toEqual([0, 'And then?']);
  });

  it('is not continued by a stop after the one that failed', async () => {
    const continued = vi.spyOn(host, 'continueAnswer');
    await openLoop();
    vi.spyOn(host, 'stop').mockRejectedValueOnce({ code: 'engine', message: 'No engine.' });
    await click('continue-penalty');
    expect(the('toast').textContent).toContain('The model failed to run');
    await click('stop-repeating');
    await pass(200);
    expect(the('message-assistant').dataset.state).toBe('stopped');
    expect(continued).not.toHaveBeenCalled();
  });

  it('offers the same where it was ended', async () => {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'A question', {
      parts: [textPart('The sea is wide. The sea is wide.')],
      finish_reason: 'length',
      ended_by: { rule: 'repetition' },
      notices: [
        { code: 'repeats', message: 'The answer repeats itself.' },
        { code: 'repetition', message: 'It was ended.' },
      ],
      continuable: true,
    });
    await open('chat', chat.summary.id);
    expect(all('notice').map((notice) => notice.textContent)).toEqual([
      'The response kept repeating itself and was stopped.',
    ]);
    expect(the('continue').textContent).toBe('Continue with penalty');
  });
});
