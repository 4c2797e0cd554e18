import { describe, expect, it } from 'vitest';

import { all, click, host, open, pass, the, useWindow } from '../../testing/window';

useWindow();

async function press(within: HTMLElement, name: string): Promise<void> {
  const button = within.querySelector<HTMLElement>(`[data-testid="${name}"]`);
  if (!button) throw new Error(`no ${name} in ${within.textContent}`);
  button.click();
  await pass(0);
}

const QWEN = 'mlx-community/Qwen3-4B-4bit';

describe('Downloads', () => {
  it('count down to the next try', async () => {
    host.addDownload(QWEN, 'waiting', 0.5, { code: 'network', message: 'The network is gone.' });
    await open('models');
    await click('tab-downloads');
    expect(the('download-about').textContent).toContain('retrying in 24 s');
    await pass(12_000);
    expect(the('download-about').textContent).toContain('retrying in 12 s');
    await pass(20_000);
    expect(the('download-about').textContent).toContain('retrying now');
  });

  it('are ordered, opened file by file, and ended only after a question', async () => {
    host.addDownload(QWEN, 'paused', 0.5);
    host.addDownload('mlx-community/SmolLM3-3B-4bit', 'paused', 0.1);
    await open('models');
    expect(the('tab-downloads').textContent).toContain('2');
    await click('tab-downloads');
    await press(all('download')[1]!, 'sooner');
    expect(all('download').map((element) => element.dataset.id)).toEqual(['mlx-community/SmolLM3-3B-4bit', QWEN]);
    await press(all('download')[1]!, 'show-files');
    expect(the('files').querySelectorAll('li')).toHaveLength(4);
    await press(all('download')[1]!, 'cancel');
    expect(the('cancel-dialog').textContent).toContain('will be deleted');
    expect(host.queue).toHaveLength(2);
    await click('confirm-cancel');
    expect(host.queue).toHaveLength(1);
  });

  it('say why they stand and can be tried again', async () => {
    host.addDownload(QWEN, 'failed', 0.5, { code: 'disk_full', message: 'The disk is full.' });
    await open('models');
    await click('tab-downloads');
    expect(the('download-error').textContent).toBe('Disk is full. Everything saved or downloaded is safe. Free up space, then try again.');
    await click('retry');
    await pass(600);
    expect(the('download').dataset.state).toBe('running');
  });

  it.each([
    [{ code: 'gated', arguments: { id: QWEN, host: 'evil.example' }, message: 'x' }, 'Get access…', 'discover'],
    [{ code: 'gated', reason: 'access_declined', message: 'x' }, 'Access token…', 'models'],
    [{ code: 'offline', message: 'x' }, 'Privacy & data…', 'privacy'],
    [{ code: 'disk_full', message: 'x' }, 'Show storage…', 'privacy'],
  ] as const)('offer the next step after a failure, as a page: %o', async (error, label, page) => {
    host.addDownload(QWEN, 'failed', 0.5, error);
    await open('models');
    await click('tab-downloads');
    expect(the('remedy').textContent).toBe(label);
    await click('remedy');
    expect([host.shownPages, host.opened]).toEqual([[page], []]);
  });

  it('offer no step that the app takes itself', async () => {
    host.addDownload(QWEN, 'waiting', 0.5, { code: 'disk_full', message: 'x' });
    host.addDownload('mlx-community/SmolLM3-3B-4bit', 'failed', 0.5, { code: 'network', message: 'x' });
    await open('models');
    await click('tab-downloads');
    expect([all('download-error').length, all('remedy')]).toEqual([2, []]);
  });

  it('draw only the rows that changed', async () => {
    for (let number = 0; number < 30; number++) host.addDownload(`a/model-${number}`, 'paused', 0.2);
    await open('models');
    await click('tab-downloads');
    const changed = new Set<string>();
    const observer = new MutationObserver((records) => {
      for (const record of records) {
        const node = record.target instanceof Element ? record.target : record.target.parentElement;
        const id = node?.closest<HTMLElement>('[data-testid="download"]')?.dataset.id;
        if (id) changed.add(id);
      }
    });
    observer.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    await host.resumeDownload('a/model-7');
    await pass(1500);
    observer.disconnect();
    expect([...changed]).toEqual(['a/model-7']);
  });

  it('show in the chat window, which takes a chat with a model', async () => {
    host.addDownload(QWEN, 'running', 0.5);
    await open('chat');
    await pass(300);
    expect(the('download-glance').textContent).toContain('Qwen3 4B 4bit');
    await host.chatWith('mlx-community/gemma-4-e4b-it-4bit');
    await pass(50);
    expect(the('model-picker').textContent?.trim()).toBe('Gemma 4 E4B');
    await pass(200_000);
    expect(all('download-glance')).toEqual([]);
    await host.resumeDownload(QWEN);
    await pass(500);
    expect(the('toast').textContent).toContain('Qwen3 4B 4bit is ready.');
    await click('model-picker');
    expect([...document.querySelectorAll('[role=option]')].map((option) => option.textContent).join()).toContain(
      'Qwen3 4B',
    );
  });
});
