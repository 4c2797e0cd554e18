import { describe, expect, it, vi } from 'vitest';

import type { Part } from '../../../bindings/Part';
import { all, click, host, open, pass, the, useWindow } from '../../../testing/window';

useWindow();

describe('a turn with tools', () => {
  const part = (text: string): Part => ({ kind: 'text', text, started_at: 0, ended_at: 0 });
  const call = (id: string, city: string): Part => ({
    kind: 'tool_call',
    call: { id, name: 'get_weather', arguments: { city } },
    started_at: 0,
    ended_at: 0,
  });

  async function openTurn(results: number): Promise<void> {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'Where is it warmer?', {
      finish_reason: 'tool_calls',
      parts: [part('I look it up.'), call('a1b2c3d4e', 'Lisbon'), call('f5g6h7i8j', 'Oslo')],
    });
    for (const [id, text] of [
      ['f5g6h7i8j', '4 degrees'],
      ['a1b2c3d4e', '19 degrees'],
    ].slice(0, results))
      host.addRow(chat, { role: 'tool', tool_call_id: id ?? '', parts: [part(text ?? '')] });
    if (results === 2) host.addRow(chat, { role: 'assistant', finish_reason: 'stop', parts: [part('In Lisbon.')] });
    await open('chat', chat.summary.id);
  }

  it('is one answer, with calls and results folded inside it', async () => {
    await openTurn(2);
    expect(all('message-assistant')).toHaveLength(1);
    expect(all('tool-call').map((element) => element.textContent?.trim())).toEqual([
      'Used get_weather',
      'Used get_weather',
    ]);
    expect(all('tool-result')).toEqual([]);
    for (const toggle of all('tool-call-toggle')) toggle.click();
    await pass(0);
    expect(all('tool-request').map((element) => element.textContent)).toEqual([
      expect.stringContaining('Lisbon'),
      expect.stringContaining('Oslo'),
    ]);
    expect(all('tool-result').map((element) => element.textContent)).toEqual(['19 degrees', '4 degrees']);
    expect(all('answer-text').map((element) => element.textContent?.trim())).toEqual(['I look it up.', 'In Lisbon.']);
  });

  it('shows what an argument hides', async () => {
    const chat = host.addChat('A chat', Date.now());
    const parts = [call('a1b2c3d4e', 'Lis\u202enob\u200b')];
    host.addTurn(chat, 'Where is it warmer?', { finish_reason: 'tool_calls', parts });
    await open('chat', chat.summary.id);
    await click('tool-call-toggle');
    expect(the('tool-request').textContent).toContain('Lis\\u202enob\\u200b');
  });

  it('waits for a result that is not there yet', async () => {
    await openTurn(1);
    expect(all('tool-call').map((element) => element.textContent?.trim())).toEqual([
      'Called get_weather',
      'Used get_weather',
    ]);
  });

  it('says that a tool was not run', async () => {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'Where is it warmer?', { finish_reason: 'tool_calls', parts: [call('a1b2c3d4e', 'Lisbon')] });
    host.addRow(chat, { role: 'tool', state: 'stopped', tool_call_id: 'a1b2c3d4e', parts: [part('not run')] });
    await open('chat', chat.summary.id);
    expect(the('tool-call').textContent?.trim()).toBe('Tool not run: get_weather');
    await click('tool-call-toggle');
    expect(all('tool-result')).toEqual([]);
  });

  it('is copied as what it says, and answered again from its question', async () => {
    await openTurn(2);
    const written = vi.fn(async () => {});
    vi.stubGlobal('navigator', Object.assign(Object.create(navigator), { clipboard: { writeText: written } }));
    await click('copy-answer');
    expect(written).toHaveBeenCalledWith('I look it up.\n\nIn Lisbon.');
    await click('regenerate');
    await pass(50);
    expect(the('pager').textContent?.trim()).toBe('2 / 2');
    expect(all('tool-call')).toEqual([]);
    the('pager').querySelector('button')?.click();
    await pass(5000);
    expect(all('tool-call')).toHaveLength(2);
    expect(the('pager').textContent?.trim()).toBe('1 / 2');
  });
});
