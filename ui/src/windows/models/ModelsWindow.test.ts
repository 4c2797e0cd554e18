import { describe, expect, it, vi } from 'vitest';

import type { Error as HostError } from '../../bindings/Error';
import type { HubModel } from '../../bindings/HubModel';
import { UNKNOWN_FAMILY } from '../../host/fake/localModels';
import { all, click, field, host, open, pass, the, useWindow, watched, write } from '../../testing/window';

useWindow();

/** The text of an element, without the marks around names. */
function plain(element: Element | null): string | undefined {
  return element?.textContent.replace(/[\u2068\u2069]/g, '');
}

/** The row of a model in Discover. */
function row(id: string): HTMLElement {
  const found = all('hub-row').find((element) => element.dataset.id === id);
  if (!found) throw new Error(`no row of ${id}`);
  return found;
}

async function press(within: HTMLElement, name: string): Promise<void> {
  const button = within.querySelector<HTMLElement>(`[data-testid="${name}"]`);
  if (!button) throw new Error(`no ${name} in ${within.textContent}`);
  button.click();
  await pass(0);
}

async function menu(reference: string, name: string): Promise<void> {
  const found = all('model-row').find((element) => element.dataset.reference === reference);
  if (!found) throw new Error(`no row of ${reference}`);
  await press(found, 'model-menu');
  await click(name);
  await pass(0);
}

const QWEN = 'mlx-community/Qwen3-4B-4bit';
const GPT = 'mlx-community/gpt-oss-20b';
const WITHOUT_DEPTH: HostError = {
  code: 'image_not_seen',
  reason: 'model_vision',
  arguments: { reason: 'config.json lacks `depth`' },
  message: 'this model’s vision part cannot be read: config.json lacks `depth`',
};

describe('Discover', () => {
  it('begins with good first models and asks nobody', async () => {
    const search = vi.spyOn(host, 'searchModels');
    const describeModel = vi.spyOn(host, 'describeModel');
    await open('models');
    expect(all('hub-row')).toHaveLength(3);
    expect(the('first-note').textContent).toContain('only when you search');
    expect(all('fit')).not.toHaveLength(0);
    expect(search).not.toHaveBeenCalled();
    expect(describeModel).not.toHaveBeenCalled();
  });

  it('searches when the hands rest, once', async () => {
    const search = vi.spyOn(host, 'searchModels');
    await open('models');
    const field = the('model-search');
    if (!(field instanceof HTMLInputElement)) throw new Error('no field');
    for (const text of ['g', 'ge', 'gemma']) {
      field.value = text;
      field.dispatchEvent(new InputEvent('input', { bubbles: true }));
      await pass(50);
    }
    await pass(500);
    expect(search).toHaveBeenCalledTimes(1);
    expect(all('hub-row').map((element) => element.dataset.id)).toEqual([
      'mlx-community/gemma-4-e4b-it-4bit',
      'mlx-community/gemma-4-26b-a4b-it-4bit',
    ]);
    await click('clear-search');
    expect(the('discover').dataset.shown).toBe('first');
  });

  it('takes an address', async () => {
    await open('models');
    await write('model-search', `https://huggingface.co/${QWEN}`);
    await pass(500);
    expect(all('hub-row')).toHaveLength(1);
  });

  it('drops the answer to an older question', async () => {
    await open('models');
    const slow = host.searchModels.bind(host);
    vi.spyOn(host, 'searchModels').mockImplementationOnce(async (query) => {
      await new Promise((resolve) => setTimeout(resolve, 2000));
      return slow(query);
    });
    await write('model-search', 'gemma');
    await pass(500);
    await write('model-search', 'Qwen3-4B');
    await pass(500);
    await pass(3000);
    expect(all('hub-row').map((element) => element.dataset.id)).toEqual([QWEN]);
  });

  it('offers what a row allows', async () => {
    await open('models');
    await click('browse');
    const offers = (id: string): (string | undefined)[] =>
      [...row(id).querySelectorAll<HTMLElement>('.act [data-testid]')].map((element) => element.dataset.testid);
    expect(offers('mlx-community/gemma-4-e4b-it-4bit')).toEqual(['fit', 'chat-with']);
    expect(offers(QWEN)).toEqual(['fit', 'get']);
    expect(offers('meta-llama/Llama-3.2-3B-Instruct-4bit')).toEqual(['fit', 'how']);
    expect(offers('mlx-community/mystery-7b')).toEqual([]);
    expect(plain(row('mlx-community/mystery-7b').querySelector('[data-testid=problem]'))).toBe('Can’t run this model yet. Ponder doesn’t support models of type mystery.');
    expect(row('mlx-community/gemma-4-26b-a4b-it-4bit').textContent).toContain('needs');
  });

  it('downloads what is too large only after a question', async () => {
    const LARGE = 'mlx-community/Qwen3-235B-A22B-4bit';
    const queued = (): string[] => host.queue.map(({ id }) => id);
    await open('models');
    await click('browse');
    expect(row(LARGE).querySelector('[data-testid="get"]')).toBeNull();
    await press(row(LARGE), 'too-large-menu');
    expect(document.activeElement).toBe(the('download-anyway'));
    await click('download-anyway');
    expect(the('too-large').textContent).toMatch(/It needs .* GB of memory, and .* GB is free now\./);
    await click('too-large-cancel');
    expect([queued(), all('too-large')]).toEqual([[], []]);
    await press(row(LARGE), 'too-large-menu');
    await click('download-anyway');
    await click('too-large-confirm');
    await pass(10);
    expect([queued(), all('too-large')]).toEqual([[LARGE], []]);
  });

  it('lists first models that fit before the others', async () => {
    const [one, two, three] = await host.firstModels();
    if (!one?.fit || !two?.fit || !three?.fit) throw new Error('three models');
    vi.spyOn(host, 'firstModels').mockResolvedValue([
      { ...one, fit: { ...one.fit, word: 'will_not_fit' } },
      { ...two, fit: { ...two.fit, word: 'tight' } },
      { ...three, fit: { ...three.fit, word: 'comfortable' } },
    ]);
    await open('models');
    expect(all('hub-row').map(({ dataset }) => dataset['id'])).toEqual([three.id, two.id, one.id]);
  });

  it('searches for the embedding model that a page asked for', async () => {
    const searched = vi.spyOn(host, 'searchModels');
    await open('models');
    await host.showPage('discover', 'multilingual');
    await pass(600);
    expect(field('model-search').value).toBe('multilingual-e5-small');
    expect(searched.mock.calls.at(-1)?.[0].text).toBe('multilingual-e5-small');
  });

  it('marks what makes embeddings, so that nobody gets it to chat with', async () => {
    await open('models');
    await click('browse');
    expect(row('mlx-community/Qwen3-Embedding-0.6B-4bit-DWQ').querySelector('h3')?.textContent).toContain(
      'Embeddings',
    );
    expect(row(QWEN).querySelector('h3')?.textContent).not.toContain('Embeddings');
  });

  it('gets a model, pauses it, goes on, and it is here', async () => {
    await open('models');
    await click('browse');
    await press(row(QWEN), 'get');
    await pass(1000);
    expect(row(QWEN).textContent).toContain('of 2.3 GB');
    await press(row(QWEN), 'pause');
    const about = row(QWEN).querySelector('[data-testid="about"]')?.textContent;
    expect(about).toContain('Paused');
    await pass(2000);
    expect(row(QWEN).querySelector('[data-testid="about"]')?.textContent).toBe(about);
    await press(row(QWEN), 'resume');
    await pass(200_000);
    await press(row(QWEN), 'chat-with');
    expect(host.chatsWith).toEqual([QWEN]);
  });

  it('shows the sum, and the slider moves it', async () => {
    await open('models');
    await click('browse');
    await press(row(QWEN), 'fit');
    const before = the('fit-kv').textContent;
    const slider = the('fit-context');
    if (!(slider instanceof HTMLInputElement)) throw new Error('no slider');
    slider.value = '0';
    slider.dispatchEvent(new InputEvent('input', { bubbles: true }));
    await pass(0);
    expect(the('fit-kv').textContent).not.toBe(before);
    expect(slider.getAttribute('aria-valuetext')).toBe('1K tokens');
  });

  it('says how to get a gated model', async () => {
    await open('models');
    await click('browse');
    await press(row('meta-llama/Llama-3.2-3B-Instruct-4bit'), 'how');
    expect(the('gated').textContent).toContain('Accept the terms');
    expect(the('gated-get')).toHaveProperty('disabled', true);
    await write('token-field', 'hf_secret');
    await click('keep-token');
    expect(the('token-source').dataset.source).toBe('keychain');
    expect(document.body.innerHTML).not.toContain('hf_secret');
    await click('gated-get');
    expect(host.queue.map((download) => download.id)).toEqual(['meta-llama/Llama-3.2-3B-Instruct-4bit']);
  });

  it('draws a card without what it would load or run', async () => {
    await open('models');
    await click('browse');
    await press(row(QWEN), 'open-card');
    await pass(50);
    const card = the('card-text');
    expect(card.querySelector('table')).not.toBeNull();
    expect(card.querySelectorAll('img, script, iframe, style')).toHaveLength(0);
    card.querySelector<HTMLElement>('a[href="https://example.org/paper"]')?.click();
    expect(host.opened).toEqual(['https://example.org/paper']);
    await click('card-close');
    expect(all('card')).toEqual([]);
  });

  it('describes a model when its row comes into view', async () => {
    host.catalog = host.catalog.map((model) => ({ ...model, described: false, fit: null }));
    const describeModel = vi.spyOn(host, 'describeModel');
    await open('models');
    await click('browse');
    expect(describeModel).not.toHaveBeenCalled();
    const seen = watched.find(({ node }) => node === row(QWEN));
    seen?.callback([{ isIntersecting: true } as IntersectionObserverEntry], {} as IntersectionObserver);
    await pass(50);
    expect(describeModel.mock.calls).toEqual([[QWEN]]);
  });

  it('asks for the next page at the end of the list', async () => {
    host.catalog = Array.from({ length: 70 }, (_, index) => ({ ...host.catalog[0]!, id: `a/model-${index}` }));
    await open('models');
    await click('browse');
    expect(all('hub-row')).toHaveLength(30);
    for (const rows of [60, 70]) {
      const end = watched.findLast(({ node }) => node === the('more'));
      end?.callback([{ isIntersecting: true } as IntersectionObserverEntry], {} as IntersectionObserver);
      await pass(50);
      expect(all('hub-row')).toHaveLength(rows);
    }
    expect(all('more')).toEqual([]);
  });

  it('by size is in one order over all pages', async () => {
    await open('models');
    await click('browse');
    await pass(300);
    const named = (id: string, bytes: number | null): HubModel => ({ ...host.catalog[0]!, id, bytes });
    vi.spyOn(host, 'searchModels')
      .mockResolvedValueOnce({
        models: [named('a/three', 3), named('a/nine', 9)],
        cursor: '2',
        cached_at: null,
        cached_because: null,
        left_out: 0,
      })
      .mockResolvedValueOnce({
        models: [named('a/two', 2), named('a/unknown', null), named('a/five', 5)],
        cursor: null,
        cached_at: null,
        cached_because: null,
        left_out: 0,
      });
    await click('sort');
    [...document.querySelectorAll<HTMLElement>('[role=option]')].at(-1)?.click();
    await pass(300);
    const end = the('more');
    watched
      .findLast(({ node }) => node === end)
      ?.callback([{ isIntersecting: true } as IntersectionObserverEntry], {} as IntersectionObserver);
    await pass(300);
    expect(all('hub-row').map((row) => row.dataset.id)).toEqual(['a/two', 'a/three', 'a/five', 'a/nine', 'a/unknown']);
  });

  it('says when it shows what was kept, finds nothing, or cannot ask', async () => {
    host.condition = 'offline';
    await open('models');
    await click('browse');
    expect(the('as-of').textContent).toContain(
      'Results from yesterday. Hugging Face didn’t respond. Connection failed.',
    );
    host.condition = 'healthy';
    await click('ask-again');
    expect(all('as-of')).toEqual([]);
    await host.setOffline(true);
    await click('filter-fits');
    expect(the('as-of').textContent).toContain('Results from yesterday. Ponder is offline.');
    await host.setOffline(false);
    await click('filter-fits');
    host.condition = 'empty';
    await click('filter-fits');
    expect(the('no-results').textContent).toContain('No models match these filters');
    host.condition = 'failing';
    await click('clear-filters');
    expect(the('search-failed').textContent).toContain('Connection failed');
    host.condition = 'healthy';
    await click('search-again');
    expect(all('hub-row').length).toBeGreaterThan(3);
  });
});

describe('On this computer', () => {
  it('makes a model the default one', async () => {
    await open('models');
    await click('tab-local');
    expect(all('model-row')).toHaveLength(host.local.length);
    await menu('mlx-community/gemma-4-e4b-it-4bit', 'make-default');
    await pass(50);
    expect(await host.defaultModel()).toBe('mlx-community/gemma-4-e4b-it-4bit');
    expect(all('model-row')[1]?.textContent).toContain('Default');
  });

  it('says of a model whose vision part cannot be read that it takes text alone', async () => {
    host.local = host.local.map((model) =>
      model.reference === GPT ? { ...model, vision_problem: WITHOUT_DEPTH } : model,
    );
    await open('models');
    await click('tab-local');
    expect(all('vision-problem').map(plain)).toEqual(['Text only. Ponder can’t use this model’s files for images.']);
    expect(the('vision-problem-details').textContent).toContain('config.json lacks `depth`.');
    expect(all('chat-with')).not.toHaveLength(0);
  });

  it('says what is wrong with a model in a sentence, wherever it is listed, and leaves the names of files as they are', async () => {
    const problems: HostError[] = [
      { ...UNKNOWN_FAMILY, arguments: { family: 'novel' }, message: 'models of type `novel` are not supported' },
      { code: 'model_broken', arguments: { file: 'config.json' }, message: 'config.json lacks `depth`' },
    ];
    host.local = host.local.map((model, index) => ({ ...model, problem: problems[index - 1] ?? null }));
    await open('models');
    await click('tab-local');
    const said = [
      'Can’t run this model yet. Ponder doesn’t support models of type novel.',
      'Model files are damaged. Some files of this model are missing or damaged. Your chats aren’t affected.',
    ];
    expect(all('problem').map(plain)).toEqual(said);
    const details = all('problem-details').map((line) => line.querySelector('bdi')?.textContent);
    expect(details).toEqual(['Models of type `novel` are not supported.', 'config.json lacks `depth`.']);
    await open('chat');
    await click('model-picker');
    const notes = [...document.querySelectorAll('[role=option][aria-disabled=true] .note')].map(plain);
    expect(notes.slice(0, 2)).toEqual(said);
  });

  it('verifies with progress, names what is wrong, and repairs it', async () => {
    host.damaged.add(GPT);
    await open('models');
    await click('tab-local');
    await menu(GPT, 'verify');
    await pass(700);
    expect(the('check').textContent).toContain('Verifying · ');
    await pass(5000);
    expect(the('check').dataset.kind).toBe('wrong');
    expect(the('check').querySelector('p')?.textContent.trim()).toBe('1 file is damaged: model.safetensors (changed)');
    expect(the('check-details').textContent).toContain('model.safetensors: its content is not what the hub has');
    await click('repair');
    await pass(5000);
    expect(the('check').dataset.kind).toBe('correct');
  });

  it('says what removing frees and who uses it, and does not remove what comes with the app', async () => {
    host.local = host.local.map((model) => (model.reference === GPT ? { ...model, last_used_at: 1 } : model));
    await open('models');
    await click('tab-local');
    await menu(GPT, 'remove');
    expect(the('frees').textContent).toContain('12.1 GB');
    expect(the('remove-chats').textContent).toBe('“Names for a boat”, “Why the sky is blue”…');
    await click('confirm-remove');
    await pass(50);
    expect(all('model-row').map((element) => element.dataset.reference)).not.toContain(GPT);
    await press(all('model-row')[0]!, 'model-menu');
    expect(all('remove')).toEqual([]);
  });

  it('brings a removed model back until the message about it is gone', async () => {
    const listed = (): (string | undefined)[] => all('model-row').map((element) => element.dataset.reference);
    const free = vi.spyOn(host, 'freeModel');
    await open('models');
    await click('tab-local');
    const remove = async (): Promise<void> => {
      await menu(GPT, 'remove');
      await click('confirm-remove');
      await pass(50);
      expect(listed()).not.toContain(GPT);
    };
    await remove();
    expect(the('toast').textContent).toContain('Removed');
    await click('toast-undo');
    await pass(50);
    expect(listed()).toContain(GPT);
    await pass(10_000);
    expect(free).not.toHaveBeenCalled();

    await remove();
    window.dispatchEvent(new KeyboardEvent('keydown', { key: 'z', ctrlKey: true, bubbles: true }));
    await pass(50);
    expect(listed()).toContain(GPT);

    await remove();
    expect(host.setAside.has(GPT)).toBe(true);
    await pass(9000);
    expect(all('toast')).toEqual([]);
    expect(free).toHaveBeenCalledExactlyOnceWith(GPT);
    window.dispatchEvent(new KeyboardEvent('keydown', { key: 'z', ctrlKey: true, bubbles: true }));
    await pass(50);
    expect(listed()).not.toContain(GPT);
  });

  it('takes a folder from the dialog of the system', async () => {
    await open('models');
    await click('tab-local');
    await click('add-folder');
    host.chosenFolder = null;
    await click('choose-folder');
    expect(all('own-folder')).toHaveLength(0);
    expect(all('folder-path')).toHaveLength(1);
    host.chosenFolder = '/home/somebody/Models';
    await click('choose-folder');
    await pass(50);
    expect(the('own-folder').textContent).toContain('/home/somebody/Models');
    expect(all('folder-path')).toHaveLength(0);
  });

  it('tells of an update with what must be fetched', async () => {
    await open('models');
    await click('tab-local');
    await menu('mlx-community/gemma-4-e4b-it-4bit', 'ask-update');
    expect(the('update').textContent).toContain('2 files changed, 1.9 GB to download');
    await menu(GPT, 'ask-update');
    expect(all('no-update')).toHaveLength(1);
  });

  it('adds a folder and forgets it', async () => {
    await open('models');
    await click('tab-local');
    await click('add-folder');
    await write('folder-path', 'nowhere');
    the('folder-path').closest('form')?.requestSubmit();
    await pass(50);
    expect(the('toast').textContent).toContain('nowhere has no model in it');
    await write('folder-path', 'elsewhere');
    the('folder-path').closest('form')?.requestSubmit();
    await pass(50);
    expect(all('toast').map(({ textContent }) => textContent)).toEqual([
      expect.stringContaining('elsewhere has no model in it'),
    ]);
    the('folder-path').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
    await pass(50);
    expect(document.activeElement).toBe(the('add-folder'));
    host.drop('/Volumes/Models');
    await pass(50);
    expect(the('own-folder').textContent).toContain('Folder not found. Connect its disk');
    await click('forget-folder');
    await pass(50);
    expect(all('own-folder')).toEqual([]);
  });
});
