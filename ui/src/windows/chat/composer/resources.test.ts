/** Resources and prompts of servers in the composer, and tools that differ from those that a chat began with. */

import { describe, expect, it, vi } from 'vitest';

import type { ServerPrompt } from '../../../bindings/ServerPrompt';
import type { ServerResource } from '../../../bindings/ServerResource';
import { all, click, field, host, open, pass, the, useWindow, write } from '../../../testing/window';

useWindow();

const area = (): HTMLTextAreaElement => the('composer') as HTMLTextAreaElement;

async function openChat() {
  const chat = host.addChat('A chat', Date.now());
  await open('chat', chat.summary.id);
  return chat;
}

async function type(text: string): Promise<void> {
  area().focus();
  area().value = text;
  area().setSelectionRange(text.length, text.length);
  area().dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(10);
}

async function press(key: string): Promise<void> {
  area().dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  await pass(10);
}

const resource = (uri: string, more: Partial<ServerResource> = {}): ServerResource => ({
  uri,
  name: uri,
  description: '',
  media_type: 'text/plain',
  bytes: null,
  variables: [],
  ...more,
});

async function openSheet(): Promise<void> {
  await click('composer-add');
  await click('resources');
  await pass(10);
}

describe('resources of servers', () => {
  const list = { server: 's', server_name: 'Notes', problem: null };

  it('are asked for when the sheet opens, and one becomes an attachment', async () => {
    host.serverFiles = [{ ...list, resources: [resource('memo://tea', { name: 'Tea' }), resource('memo://sea')] }];
    host.resourceTexts.set('memo://tea', 'Green.\nBlack.');
    const asked = vi.spyOn(host, 'serverResources');
    const { summary } = await openChat();
    await click('composer-add');
    expect(asked).not.toHaveBeenCalled();
    await click('resources');
    await pass(10);
    expect(all('resource').length).toBe(2);
    await write('resource-search', 'tea');
    expect(all('resource').map((row) => row.textContent?.includes('Tea'))).toEqual([true]);
    await click('resource');
    await pass(500);
    expect(all('resources')).toEqual([]);
    expect(host.kept.get(summary.id)?.draft).toMatchObject([{ kind: 'file', name: 'Tea', media_type: 'text/plain' }]);
  });

  it('of a template are those that are filled in', async () => {
    const template = resource('memo://{day}', { name: 'A day', variables: ['day'] });
    host.serverFiles = [{ ...list, resources: [template] }];
    host.resourceTexts.set('memo://1%2F2', 'Rain.');
    const { summary } = await openChat();
    await openSheet();
    await write('resource-variable', '1/2');
    field('resource-variable').form?.requestSubmit();
    await pass(500);
    expect(host.kept.get(summary.id)?.draft).toMatchObject([{ kind: 'file' }]);
  });

  it('that do not come are said to be missing, and servers that fail say why', async () => {
    host.serverFiles = [
      { ...list, resources: [resource('memo://gone')] },
      { server: 'b', server_name: 'Broken', resources: [], problem: 'it ended' },
    ];
    await openChat();
    await openSheet();
    expect(the('resource-problem').textContent).toBe('it ended');
    await click('resource');
    await pass(10);
    expect(document.body.textContent).toContain('its answer holds no content');
  });

  it('are none if no server has any', async () => {
    await openChat();
    await openSheet();
    expect(the('no-resources').textContent).toContain('No server that is on has resources.');
  });
});

describe('prompts of servers', () => {
  const prompt = (name: string, names: readonly string[] = []): ServerPrompt => ({
    server: 's',
    server_name: 'Notes',
    name,
    title: name,
    description: '',
    arguments: names.map((one) => ({ name: one, description: `The ${one}.`, required: true })),
  });

  it('of servers that run stand among the snippets; one without arguments is put in at once', async () => {
    host.runningPrompts = [prompt('sum up')];
    host.promptTexts.set('sum up', 'Sum this up: ');
    const asked = vi.spyOn(host, 'serverPrompts');
    const sent = vi.spyOn(host, 'send');
    await openChat();
    await type('Hello');
    expect(asked).not.toHaveBeenCalled();
    await type('Hello /');
    expect(asked.mock.calls).toEqual([[false]]);
    expect(the('snippets').textContent).toContain('/sum-up');
    await press('Enter');
    expect([area().value, sent.mock.calls.length]).toEqual(['Hello Sum this up: ', 0]);
  });

  it('with arguments ask for them, and nothing is sent', async () => {
    host.runningPrompts = [prompt('review', ['code'])];
    host.promptTexts.set('review', 'Review {code}.');
    const sent = vi.spyOn(host, 'send');
    await openChat();
    await type('/');
    await press('Enter');
    expect(the('prompt-form').textContent).toContain('The code.');
    await write('prompt-argument', 'main.rs');
    field('prompt-argument').form?.requestSubmit();
    await pass(10);
    expect([area().value, all('prompt-form').length, sent.mock.calls.length]).toEqual(['Review main.rs.', 0, 0]);
  });

  it('of servers that do not run come once the person asks for them', async () => {
    host.sleepingPrompts = [prompt('later')];
    await openChat();
    await type('/');
    expect(the('more-prompts').textContent).toBe('Ask servers for prompts…');
    expect(the('snippets').textContent).not.toContain('/later');
    await press('Enter');
    expect(the('snippets').textContent).toContain('/later');
    // A word that is no name is sent as it is.
    await type('/x');
    expect(all('snippets')).toEqual([]);
  });

  it('that do not come leave the message as it is', async () => {
    host.runningPrompts = [prompt('lost')];
    await openChat();
    await type('/lost');
    await type('/');
    await press('Enter');
    expect(area().value).toBe('/');
    expect(the('toast').textContent).not.toBe('');
  });
});

describe('tools that changed', () => {
  const of = (tool: string) => ({ server: 's', tool });

  it('are told quietly and used once the person says so', async () => {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'one', { parts: [{ kind: 'text', text: 'Yes.', started_at: 0, ended_at: 0 }] });
    const { id } = chat.summary;
    host.toolsChanges.set(id, { added: [of('maps')], removed: [of('news')], changed: [of('weather')] });
    const used = vi.spyOn(host, 'useNewTools');
    await open('chat', id);
    await pass(500);
    expect(the('tools-changed').textContent).toContain('maps is new · news is off · weather has a new description');
    expect(used).not.toHaveBeenCalled();
    await click('use-new-tools');
    await pass(10);
    expect([used.mock.calls, all('tools-changed')]).toEqual([[[id]], []]);
  });

  it('are told again if they cannot be used', async () => {
    const chat = host.addChat('A chat', Date.now());
    host.addTurn(chat, 'one', { parts: [{ kind: 'text', text: 'Yes.', started_at: 0, ended_at: 0 }] });
    host.toolsChanges.set(chat.summary.id, { added: [of('maps')], removed: [], changed: [] });
    await open('chat', chat.summary.id);
    await pass(500);
    host.refuse = { call: 'useNewTools', error: { code: 'bad_request', reason: 'no_tool_runs', message: 'no' } };
    await click('use-new-tools');
    await pass(10);
    expect(the('toast').textContent).toContain('New tools cannot be used');
    expect(all('tools-changed').length).toBe(1);
  });
});
