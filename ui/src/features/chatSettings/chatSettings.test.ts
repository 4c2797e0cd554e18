import { describe, expect, it } from 'vitest';

import { numberOf } from '../../shared/typedNumber';
import { variants } from '../conversation/variants';
import { appliedTo, changedSettings, isSetAs, resetSettings, stopShown, stopTyped } from './chatSettings';
import { MODELS } from '../../host/fake/localModels';
import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import { all, ask, choose, click, field, host, open, pass, submit, the, useWindow, write } from '../../testing/window';

useWindow();

/** Leaves a field, which commits its value. */
async function leave(name: string): Promise<void> {
  field(name).dispatchEvent(new Event('change', { bubbles: true }));
  await pass(0);
}

async function set(name: string, text: string): Promise<void> {
  await write(name, text);
  await leave(name);
}

async function key(name: string, options: KeyboardEventInit): Promise<void> {
  window.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true, ...options }));
  await pass(0);
}

/** A chat that is open with its sheet shown. */
async function openSheet(): Promise<string> {
  const { id } = host.addChat('A chat', Date.now()).summary;
  await open('chat', id);
  await click('open-chat-settings');
  return id;
}

describe('the sheet of a chat', () => {
  it('shows what the model does in empty fields, and sets what is typed', async () => {
    const id = await openSheet();
    expect(field('setting-temperature').placeholder).toBe('1');
    expect(field('setting-top_k').placeholder).toBe('64');
    expect(field('setting-context').placeholder).toBe('2,048');
    await set('setting-temperature', '0,2');
    await set('setting-max_tokens', '64');
    await set('setting-seed', '7');
    await click('kv-bits-8');
    const { settings } = await host.chat(id);
    expect(settings).toMatchObject({ sampling: { temperature: 0.2, seed: 7 }, max_tokens: 64, kv_bits: 8 });
    await set('setting-temperature', '');
    expect((await host.chat(id)).settings.sampling).toEqual({ seed: 7 });
  });

  it('shows Ponder’s defaults for a model whose makers recommend nothing', async () => {
    await openSheet();
    expect(the('sampling-note').textContent).toContain('the model’s default');
    host.local = host.local.map((model) => ({
      ...model,
      sampling: { temperature: 0.7, top_p: 0.95, repetition_penalty: 1.1 },
      sampling_by_makers: false,
    }));
    await openSheet();
    expect(the('sampling-note').textContent).toContain('Ponder’s default');
    expect(field('setting-temperature').placeholder).toBe('0.7');
    expect(field('setting-repetition_penalty').placeholder).toBe('1.1');
  });

  it('says beside the field why a value is refused, and keeps what was', async () => {
    const id = await openSheet();
    await set('setting-top_p', '1.5');
    expect(the('setting-top_p-refused').textContent).toBe('Enter a number from 0 to 1.');
    expect(field('setting-top_p').getAttribute('aria-invalid')).toBe('true');
    expect(field('setting-top_p').value).toBe('1.5');
    await set('setting-temperature', 'warm');
    expect(the('setting-temperature-refused').textContent).toBe('Enter a number.');
    await set('setting-max_tokens', '1.5');
    expect(the('setting-max_tokens-refused').textContent).toBe('Enter a whole number.');
    await set('setting-max_tokens', '0');
    expect(the('setting-max_tokens-refused').textContent).toBe('Enter 1 or more.');
    await set('setting-context', '100');
    expect(the('setting-context-refused').textContent).toBe('Enter 512 or more.');
    expect((await host.chat(id)).settings).toEqual(DEFAULT_CHAT_SETTINGS);
    await set('setting-top_p', '0.5');
    expect(the('setting-top_p-refused').textContent).toBe('');
    expect(all('toast')).toEqual([]);
  });

  it('refuses in a new chat, too, which begins with what was set', async () => {
    await open('chat');
    await key('i', { ctrlKey: true });
    await set('setting-min_p', '2');
    expect(the('setting-min_p-refused').textContent).toBe('Enter a number from 0 to 1.');
    await set('setting-max_tokens', '32');
    await click('chat-settings-done');
    expect(the('open-chat-settings').dataset['changed']).toBe('1');
    await ask('What is 2 + 3?');
    await pass(50);
    const [chat] = await host.chats();
    expect((await host.chat(chat?.id ?? '')).settings.max_tokens).toBe(32);
  });

  it('keeps stop texts, with line breaks as they are typed', async () => {
    const id = await openSheet();
    await write('new-stop-text', 'END\\n');
    await click('add-stop-text');
    await write('new-stop-text', 'stop');
    await click('add-stop-text');
    expect((await host.chat(id)).settings.stop).toEqual(['END\n', 'stop']);
    expect(all('stop-text').map((row) => row.textContent?.trim())).toEqual(['END\\n', 'stop']);
    all('remove-stop-text')[0]?.click();
    await pass(0);
    expect((await host.chat(id)).settings.stop).toEqual(['stop']);
  });

  it('marks what is changed in the header, and goes back to the model’s defaults with a way back', async () => {
    const id = await openSheet();
    await set('setting-temperature', '0.5');
    await write('new-stop-text', 'END');
    await click('add-stop-text');
    expect(the('open-chat-settings').title).toContain('2 settings changed: Temperature 0.5, Stop sequences');
    await click('reset-chat-settings');
    expect((await host.chat(id)).settings).toEqual(DEFAULT_CHAT_SETTINGS);
    expect(the('open-chat-settings').dataset['changed']).toBe('0');
    the('toast').querySelector('button')?.click();
    await pass(0);
    expect((await host.chat(id)).settings.stop).toEqual(['END']);
  });
});

describe('presets', () => {
  it('are saved, applied, renamed, chosen for new chats, and deleted with a way back', async () => {
    const id = await openSheet();
    await set('setting-temperature', '0');
    expect(the('preset').textContent).toContain('Custom');
    await click('save-preset-as');
    await write('preset-name', ' Precise ');
    await submit('preset-name');
    expect(all('preset-name')).toEqual([]);
    expect(host.app.presets.map(({ name, settings }) => [name, settings.sampling.temperature])).toEqual([
      ['Precise', 0],
    ]);
    expect(the('preset').textContent).toContain('Precise');
    await click('save-preset-as');
    await write('preset-name', 'precise');
    await submit('preset-name');
    expect(the('preset-refused').textContent).toContain('Name is in use');
    await click('reset-chat-settings');
    expect(the('preset').textContent).toContain('None');
    await choose('preset', 'Precise');
    expect((await host.chat(id)).settings.sampling.temperature).toBe(0);

    await open('settings');
    await click('tab-chats');
    await click('manage-presets');
    expect(the('preset-row').textContent).toContain('Temperature 0');
    await set('rename-preset', 'Exact');
    await click('presets-sheet-close');
    await choose('default-preset', 'Exact');
    expect(host.app.default_preset).toBe('Exact');
    await open('chat');
    expect(the('open-chat-settings').dataset['changed']).toBe('1');

    await open('settings');
    await click('tab-chats');
    await click('manage-presets');
    await click('remove-preset');
    expect([host.app.presets, host.app.default_preset]).toEqual([[], null]);
    the('toast').querySelector('button')?.click();
    await pass(0);
    expect([host.app.presets[0]?.name, host.app.default_preset]).toEqual(['Exact', 'Exact']);
  });

  it('leave the model and what a chat carries alone', () => {
    const preset = { name: 'A', settings: { ...DEFAULT_CHAT_SETTINGS, model: 'other', max_tokens: 9, thinking: null } };
    expect(isSetAs(preset, { ...DEFAULT_CHAT_SETTINGS, model: 'mine', carried_summary: 'Cats.', max_tokens: 9 })).toBe(
      true,
    );
    expect(isSetAs(preset, DEFAULT_CHAT_SETTINGS)).toBe(false);
    const documents = { collections: ['notes'], retrieval: 'off' as const };
    const chat = { ...DEFAULT_CHAT_SETTINGS, max_tokens: 9, ...documents };
    expect(isSetAs(preset, chat)).toBe(true);
    expect(appliedTo(preset, chat)).toMatchObject(documents);
    expect(resetSettings(chat)).toMatchObject({ max_tokens: null, ...documents });
  });
});

it('numbers are read as people write them', () => {
  for (const [typed, number] of [
    ['0,7', 0.7],
    [' 1 000 ', 1000],
    ['.5', 0.5],
    ['-1', -1],
    ['', undefined],
    ['x', null],
    ['1e3', null],
    ['1.2.3', null],
  ] as const) {
    expect(numberOf(typed, false)).toBe(number);
  }
  expect([numberOf('1 024', true), numberOf('1.5', true), numberOf('-3', true)]).toEqual([1024, null, -3]);
});

it('stop texts come back as they were typed', () => {
  for (const text of ['END', '\n\n', 'a\tb', '\\n', '\\']) expect(stopTyped(stopShown(text))).toBe(text);
});

it('every change is named', () => {
  expect(changedSettings(DEFAULT_CHAT_SETTINGS)).toEqual([]);
  expect(changedSettings({ ...DEFAULT_CHAT_SETTINGS, system_prompt: 'Be brief.', context: 1024, kv_bits: 4 })).toEqual([
    'System prompt',
    'Context length 1024',
    'KV cache quantization 4-bit',
  ]);
});

it('a second answer is the same otherwise, another model, or the same once more', () => {
  const ways = variants(DEFAULT_CHAT_SETTINGS, { kind: 'switch', default_on: true }, MODELS, [], 'pebble');
  expect(ways[0]).toEqual({ name: 'Without thinking', change: { thinking: 'off' } });
  expect(ways.map(({ change }) => change.model)).not.toContain('pebble');
  expect(ways.map(({ change }) => change.model)).not.toContain('mlx-community/mystery-7b');
  expect(variants(DEFAULT_CHAT_SETTINGS, { kind: 'never' }, [], [], null)).toEqual([
    { name: 'Same settings', change: {} },
  ]);
});
