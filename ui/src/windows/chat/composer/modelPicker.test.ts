import { describe, expect, it } from 'vitest';

import { t } from '../../../locales';
import { all, click, field, host, open, pass, the, useWindow, write } from '../../../testing/window';

useWindow();

const options = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('[role=option]')];
const names = (): (string | undefined)[] => options().map((option) => option.querySelector('.label')?.textContent);

function option(name: string): HTMLElement {
  const found = options().find((one) => one.querySelector('.label')?.textContent === name);
  if (!found) throw new Error(`no model ${name}`);
  return found;
}

function tags(name: string): string[] {
  return [...option(name).querySelectorAll('.tags > *')].map((tag) => tag.textContent);
}

async function key(name: string): Promise<void> {
  document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
  await pass(0);
}

describe('the list of models', () => {
  it('has groups: this computer, then each endpoint with one mark if it is remote', async () => {
    await host.addEndpoint('lab', 'https://lab.example/v1', null, false);
    await host.addEndpoint('desk', 'http://127.0.0.1:8080/v1', null, false);
    await open('chat');
    await click('model-picker');
    await pass(50);
    const headings = all('model-group').map((group) => group.querySelector('.heading')?.textContent.replace(/\s+/g, ' ').trim());
    expect(headings).toEqual([
      t('models.tab.local'),
      ['lab', t('model.leaves'), t('model.leavesComputer', { endpoint: 'lab' })].join(' '),
      ['desk', t('model.servedHere', { endpoint: 'desk' })].join(' '),
    ]);
    const label = all('model-group')[1]?.getAttribute('aria-labelledby') ?? '';
    expect(document.getElementById(label)?.textContent).toContain('lab');
  });

  it('names the model of an adapter', async () => {
    const pebble = host.local.find(({ reference }) => reference === 'pebble');
    if (!pebble) throw new Error('no Pebble');
    host.local = [{ ...pebble, reference: '/adapters/style', name: 'style', built_in: false, adapter_of: 'pebble' }, ...host.local];
    await open('chat');
    await click('model-picker');
    await pass(50);
    expect(option('style').textContent).toContain(t('local.adapterFor', { model: 'Pebble' }));
    expect(option('Pebble').textContent).not.toContain(t('local.adapterFor', { model: 'Pebble' }));
  });

  it('marks what the host tells of its models: vision, thinking, and those that are loaded', async () => {
    host.loaded = host.loaded.filter(({ reference }) => reference === 'pebble');
    await open('chat');
    await click('model-picker');
    await pass(50);
    expect(tags('Gemma 4 E4B')).toEqual(['Vision', 'Thinking']);
    expect(tags('Pebble')).toEqual(['Thinking', 'Loaded']);
    expect(tags('Qwen3-VL 4B')).toEqual(['Vision']);
    expect(tags('Mystery 7B')).toEqual([]);
  });

  it('is searched from nine models on, by the keyboard alone', async () => {
    await open('chat');
    await click('model-picker');
    expect([options().length, all('model-words')]).toEqual([8, []]);
    await click('model-picker');
    await host.addEndpoint('lab', 'https://lab.example/v1', null, false);
    await click('model-picker');
    await pass(50);
    expect(document.activeElement).toBe(field('model-words'));
    await write('model-words', 'gemma');
    expect(names()).toEqual(['Gemma 4 E4B']);
    await write('model-words', 'xylophone');
    expect(options().map(({ textContent }) => textContent)).toEqual(['No models match.']);
    await write('model-words', 'q');
    await key('ArrowDown');
    await key('ArrowUp');
    const chosen = names()[0];
    await key('Enter');
    expect(the('model-picker').textContent.trim()).toBe(chosen);
    expect(all('model-words')).toEqual([]);
  });

  it('leads to the downloads of more', async () => {
    await open('chat');
    await click('model-picker');
    expect(the('download-models').textContent).toBe('Download models…');
    await click('download-models');
    await pass(0);
    expect(host.shownPages.at(-1)).toBe('discover');
    expect(options()).toEqual([]);
  });
});
