/** The user's defaults for a model: set in the Models window, shown in the settings of a chat. */

import { describe, expect, it } from 'vitest';

import { all, click, field, host, open, pass, the, useWindow, write } from '../../testing/window';

useWindow();

async function set(name: string, text: string): Promise<void> {
  await write(name, text);
  field(name).dispatchEvent(new Event('change', { bubbles: true }));
  await pass(0);
}

/** Opens the sheet of Pebble's defaults, from its row in the Models window. */
async function openDefaults(): Promise<void> {
  await open('models');
  await click('tab-local');
  await pass(0);
  const row = all('model-row').find(({ dataset }) => dataset['reference'] === 'pebble');
  row?.querySelector<HTMLElement>('[data-testid="model-menu"]')?.click();
  await pass(0);
  await click('model-defaults');
}

async function openSheet(): Promise<string> {
  const { id } = host.addChat('A chat', Date.now()).summary;
  await open('chat', id);
  await click('open-chat-settings');
  await pass(0);
  return id;
}

/** The words below a number that is not set. */
function source(name: string): string {
  return field(name).closest('.field')?.querySelector('.source')?.textContent ?? '';
}

describe('the defaults for a model', () => {
  it('are stored with the settings of the app, without what only a chat has', async () => {
    await openDefaults();
    expect(the('chat-settings').textContent).toContain('Defaults for Pebble');
    for (const ofChats of ['preset', 'setting-max_tokens', 'new-stop-text']) expect(all(ofChats)).toEqual([]);
    await set('setting-temperature', '0.3');
    await set('setting-context', '1024');
    await click('kv-bits-8');
    const area = the('system-prompt') as HTMLTextAreaElement;
    area.value = 'Be brief.';
    area.dispatchEvent(new InputEvent('input', { bubbles: true }));
    area.dispatchEvent(new Event('change', { bubbles: true }));
    await pass(0);
    expect(host.app.model_defaults).toEqual({
      pebble: { system_prompt: 'Be brief.', sampling: { temperature: 0.3 }, context: 1024, kv_bits: 8, draft_model: null },
    });
    await set('setting-context', '100');
    expect(the('setting-context-refused').textContent).toBe('Enter 512 or more.');
    await click('reset-chat-settings');
    expect(host.app.model_defaults).toEqual({});
    the('toast').querySelector('button')?.click();
    await pass(0);
    expect(host.app.model_defaults['pebble']?.context).toBe(1024);
  });

  it('are the grey values of a chat, which says where each comes from', async () => {
    await openSheet();
    expect([source('setting-temperature'), source('setting-seed')]).toEqual(['Model default', '']);
    await host.changeSettings({
      model_defaults: {
        pebble: { system_prompt: 'Be brief.', sampling: { temperature: 0.3, seed: 7 }, context: 1024, kv_bits: 8, draft_model: null },
      },
    });
    await pass(0);
    expect(field('setting-temperature').placeholder).toBe('0.3');
    expect(field('setting-context').placeholder).toBe('1,024');
    expect(field('setting-seed').placeholder).toBe('7');
    for (const name of ['setting-temperature', 'setting-context', 'setting-seed'])
      expect(source(name)).toBe('Your default for this model');
    expect([source('setting-top_k'), the('prompt-source').textContent]).toEqual([
      'Model default',
      'Your default for this model',
    ]);
    await set('setting-temperature', '1');
    expect(source('setting-temperature')).toBe('');
    host.local = host.local.map((model) => ({ ...model, sampling_by_makers: false }));
    await openSheet();
    expect(source('setting-top_k')).toBe('Ponder’s default');
  });

  it('give way to the instructions of a project, as they do in the request', async () => {
    const prompt = (): HTMLTextAreaElement => the('system-prompt') as HTMLTextAreaElement;
    await host.changeSettings({
      model_defaults: { pebble: { system_prompt: 'Be brief.', sampling: {}, context: null, kv_bits: null, draft_model: null } },
    });
    const project = await host.createProject('Fables');
    const { id } = host.addChat('A chat', Date.now()).summary;
    await host.moveChat(id, project.id);
    const openSheetOfChat = async (): Promise<void> => {
      await open('chat', id);
      await click('open-chat-settings');
      await pass(0);
    };
    await openSheetOfChat();
    expect([prompt().placeholder, the('prompt-source').textContent]).toEqual(['Be brief.', 'Your default for this model']);
    await host.changeProject(project.id, 'Fables', 'Tell it as a fable.');
    await openSheetOfChat();
    expect([prompt().placeholder, the('prompt-source').textContent]).toEqual([
      'Tell it as a fable.',
      'Instructions of the project Fables',
    ]);
    prompt().value = 'Rhyme.';
    prompt().dispatchEvent(new InputEvent('input', { bubbles: true }));
    await pass(0);
    expect(all('prompt-source')).toEqual([]);
  });

  it('can be left for full precision by a chat', async () => {
    await host.changeSettings({
      model_defaults: { pebble: { system_prompt: '', sampling: {}, context: null, kv_bits: 8, draft_model: null } },
    });
    const id = await openSheet();
    expect([field('kv-bits-default').checked, the('kv-bits').textContent]).toEqual([
      true,
      expect.stringContaining('Default (8-bit)'),
    ]);
    await click('kv-bits-off');
    expect((await host.chat(id)).settings).toMatchObject({ kv_bits: null, kv_off: true });
    await click('kv-bits-default');
    expect((await host.chat(id)).settings).toMatchObject({ kv_bits: null, kv_off: false });
  });

  it('say so where no model can draft', async () => {
    await openDefaults();
    await pass(0);
    expect(the('no-draft-model').textContent).toContain('same vocabulary');
  });

  it('have a draft model, which the others leave as it is', async () => {
    const pebble = host.local.find(({ reference }) => reference === 'pebble');
    if (!pebble) throw new Error('no Pebble');
    const tiny = { ...pebble, reference: 'mlx-community/Tiny-4bit', name: 'Tiny', built_in: false, bytes: 1_000 };
    const other = { ...tiny, reference: 'other', name: 'Other', family: 'qwen3' };
    host.local = [pebble, tiny, other];
    await openDefaults();
    expect(the('draft-model').textContent).toContain('None');
    await click('draft-model');
    const offered = [...document.querySelectorAll('[role="option"]')].map((option) => option.textContent?.trim());
    expect(offered).toEqual(['None', 'Tiny']);
    document.querySelectorAll<HTMLElement>('[role="option"]')[1]?.click();
    await pass(0);
    expect(host.app.model_defaults['pebble']?.draft_model).toBe('mlx-community/Tiny-4bit');
    await set('setting-context', '1024');
    expect(host.app.model_defaults['pebble']).toMatchObject({ context: 1024, draft_model: 'mlx-community/Tiny-4bit' });
    await set('setting-context', '');
    expect(the('draft-model').textContent).toContain('Tiny');
    await click('draft-model');
    document.querySelectorAll<HTMLElement>('[role="option"]')[0]?.click();
    await pass(0);
    expect(host.app.model_defaults).toEqual({});
  });
});

describe('the sheet of a chat', () => {
  it('shows five fields, and unfolds the others if one of them is set', async () => {
    const folded = (): boolean => the('chat-advanced').closest('details')?.open === false;
    const id = await openSheet();
    expect(folded()).toBe(true);
    for (const name of ['preset', 'system-prompt', 'setting-temperature', 'setting-context', 'setting-max_tokens'])
      expect([name, the(name).closest('details')]).toEqual([name, null]);
    for (const name of ['setting-top_p', 'setting-seed', 'kv-bits', 'new-stop-text'])
      expect([name, the(name).closest('details')?.open]).toEqual([name, false]);
    await set('setting-top_p', '0.5');
    await open('chat', id);
    await click('open-chat-settings');
    expect(folded()).toBe(false);
  });

  it('sets the temperature with its slider, where it is let go', async () => {
    const id = await openSheet();
    const slider = field('temperature-slider');
    slider.value = '0.4';
    slider.dispatchEvent(new InputEvent('input', { bubbles: true }));
    await pass(0);
    expect((await host.chat(id)).settings.sampling).toEqual({});
    slider.dispatchEvent(new Event('change', { bubbles: true }));
    await pass(0);
    expect((await host.chat(id)).settings.sampling).toEqual({ temperature: 0.4 });
    expect(field('setting-temperature').value).toBe('0.4');
  });

  it('sets the context in steps from 4K, and says the memory that it costs', async () => {
    host.local = host.local.map((model) => ({ ...model, context: 32_768 }));
    const id = await openSheet();
    const slider = field('context-slider');
    expect([slider.max, slider.value]).toEqual(['3', '3']);
    expect(the('context-memory').textContent).toContain('Needs ');
    const before = the('context-memory').textContent;
    slider.value = '0';
    slider.dispatchEvent(new InputEvent('input', { bubbles: true }));
    await pass(50);
    expect(the('context-memory').textContent).not.toBe(before);
    slider.dispatchEvent(new Event('change', { bubbles: true }));
    await pass(0);
    expect((await host.chat(id)).settings.context).toBe(4096);
    slider.value = '3';
    slider.dispatchEvent(new Event('change', { bubbles: true }));
    await pass(0);
    expect((await host.chat(id)).settings.context).toBeNull();
  });
});
