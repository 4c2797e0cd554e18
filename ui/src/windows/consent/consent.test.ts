/** The window of calls that wait: how one is read, allowed and refused. */

import axe from 'axe-core';
import { afterEach, describe, expect, it, vi } from 'vitest';

import type { WaitingCall } from '../../bindings/WaitingCall';
import type { JsonValue } from '../../bindings/serde_json/JsonValue';
import { chooseLanguage } from '../../locales/languages.svelte';
import { hostileTexts } from '../../testing/hostileTexts';
import { all, click, host, open, pass, the, useWindow, write } from '../../testing/window';

useWindow();
afterEach(() => chooseLanguage(['en']));

const WRITE: WaitingCall = {
  answer: 'message-2',
  call: 'a1b2c3d4e',
  hash: 'hash-1',
  chat: 'chat-1',
  tool: { server: 'files', tool: 'write_file' },
  server_name: 'Files',
  server_command: 'npx -y @modelcontextprotocol/server-filesystem /home/ada/notes',
  title: 'Write a file',
  host: null,
  description: 'Writes a text to a file.',
  former_description: null,
  parameters: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'The path.' },
      text: { type: 'string' },
      mode: { type: 'integer' },
      append: { type: 'boolean' },
      encoding: { enum: ['utf-8', 'latin-1'] },
      tags: { type: 'array', items: { type: 'string' } },
      limit: { type: 'number' },
    },
    required: ['path', 'text'],
  },
  arguments: { path: 'tea.md', text: 'one\ntwo', mode: 420, append: false, encoding: 'utf-8', tags: ['tea'] },
  arguments_text: '',
  effects: { read_only: false, destructive: true, open_world: false },
  reason: 'new',
  reading: null,
  can_keep: true,
};

const textOf = (value: JsonValue): string => JSON.stringify(value, null, 2);
/** The same as it is listed. */
const SHOWN: WaitingCall = { ...WRITE, arguments_text: textOf(WRITE.arguments) };
/** The arguments that the person sent, if they are others. */
const sent = (): unknown => JSON.parse(host.approvals[0]?.arguments ?? 'null');

async function openCalls(...calls: Partial<WaitingCall>[]): Promise<void> {
  const named = calls.map((call, place) => ({ ...WRITE, call: `call-${place}`, hash: `hash-${place}`, ...call }));
  host.setWaiting(named.map((call) => ({ ...call, arguments_text: call.arguments_text || textOf(call.arguments) })));
  await open('consent');
}

/** Lets the person have looked at the call. */
const look = (): Promise<void> => pass(500);

function argument(name: string): HTMLInputElement | HTMLTextAreaElement {
  const found = all('argument').find(({ dataset }) => dataset['name'] === name);
  if (!(found instanceof HTMLInputElement || found instanceof HTMLTextAreaElement))
    throw new Error(`no field for ${name}`);
  return found;
}

async function fill(element: HTMLInputElement | HTMLTextAreaElement, text: string): Promise<void> {
  element.value = text;
  element.dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(0);
}

function whole(): HTMLTextAreaElement {
  const found = the('arguments-text');
  if (!(found instanceof HTMLTextAreaElement)) throw new Error('the whole is no text area');
  return found;
}

const isDisabled = (name: string): boolean => the(name).matches(':disabled');

describe('a call that waits', () => {
  it('is shown with its server, its command, its effects and all of its arguments', async () => {
    await openCalls({});
    expect(the('call-tool').textContent).toBe('Files/write_file');
    expect(the('call-title').textContent).toBe('Write a file');
    expect(the('call-command').textContent).toBe(WRITE.server_command);
    expect(the('description').textContent).toBe(WRITE.description);
    expect(the('call-reason').textContent).toContain('You haven’t allowed this tool before.');
    expect(the('call-effects').textContent).toBe('May delete or overwrite data');
    expect(all('argument').map(({ dataset }) => `${dataset['name']} ${dataset['kind']}`)).toEqual([
      'path text',
      'text long',
      'mode integer',
      'append boolean',
      'tags json',
    ]);
    expect(the('argument-choice').textContent?.trim()).toBe('utf-8');
    const values = ['path', 'text', 'mode'].map((name) => argument(name).value);
    expect(values).toEqual(['tea.md', 'one\ntwo', '420']);
    expect(argument('tags').value).toBe('[\n  "tea"\n]');
    expect(all('add-argument').map(({ textContent }) => textContent?.trim())).toEqual(['limit']);
  });

  it.each([
    ['changed', 'has changed since you allowed it'],
    ['rule', 'to be asked about every call'],
    ['untrusted_result', 'text from strangers'],
    ['many_calls', 'many calls'],
    ['again', 'It may have run before.'],
  ] as const)('says why it asks: %s', async (reason, words) => {
    await openCalls({ reason });
    expect(the('call-reason').textContent).toContain(words);
  });

  it('says what reading all documents costs, before it is allowed', async () => {
    const reading = { passages: 212, parts: 14, tokens: 46_218, note_tokens: 5_600, seconds: 310 };
    await openCalls({ reading });
    expect(the('call-reading').textContent).toContain('Reads 212 passages in 14 parts, about 46,000 tokens');
    expect(the('call-reading').textContent).toContain('Estimated time: 5 min');
  });

  it.each([
    [12, 'Estimated time: 15 s'],
    [5_000, 'Estimated time: 1 h 23 min'],
    [null, null],
  ])('estimates a time of %s seconds only if the model was measured', async (seconds, words) => {
    await openCalls({ reading: { passages: 1, parts: 1, tokens: 87, note_tokens: 400, seconds } });
    const shown = the('call-reading').textContent ?? '';
    expect(shown).toContain('Reads 1 passage in 1 part, about 87 tokens');
    expect(shown.includes('Estimated time')).toBe(words !== null);
    if (words !== null) expect(shown).toContain(words);
    host.setWaiting([]);
    await pass(10);
    expect(all('call-reading')).toEqual([]);
  });

  it('is shown beside the description that was allowed, and folds a long one', async () => {
    const long = Array.from({ length: 9 }, (_, line) => `Line ${line}`).join('\n');
    await openCalls({ reason: 'changed', former_description: 'It was harmless.', description: long });
    expect(the('former-description').textContent).toBe('It was harmless.');
    expect(the('description').textContent).toBe(long);
    expect(the('description').classList.contains('folded')).toBe(true);
    await click('description-more');
    expect(the('description').classList.contains('folded')).toBe(false);
  });

  it('keeps texts of strangers text, whichever direction they claim', async () => {
    const turned = 'safe \u202Egnihton\u202C <img src=x onerror=ran()> [a](https://evil.example)';
    const texts = { title: turned, description: turned, server_command: turned };
    await openCalls({ ...texts, arguments: { path: turned, text: turned } });
    for (const name of ['call-title', 'description', 'call-command']) {
      expect(the(name).textContent).toBe(turned);
      expect(the(name).children).toHaveLength(0);
    }
    expect(the('description').getAttribute('dir')).toBe('auto');
    expect(argument('path').value).toBe('safe ⟨U+202E⟩gnihton⟨U+202C⟩ <img src=x onerror=ran()> [a](https://evil.example)');
    expect(document.querySelectorAll('[data-testid=consent] :is(img, a, iframe, script)')).toHaveLength(0);
  });

  it('runs and loads nothing of hostile texts', async () => {
    const ran = vi.fn();
    vi.stubGlobal('ran', ran);
    vi.stubGlobal('alert', ran);
    for (const text of hostileTexts(40, 7)) {
      const parameters = { type: 'object', properties: { [text]: { type: 'string', description: text } } };
      const tool = { server: text, tool: text };
      await openCalls({ tool, server_name: text, description: text, parameters, arguments: { [text]: text } });
      expect(the('description').textContent).toBe(text);
      expect(document.querySelectorAll('[data-testid=consent] :is(img, a, iframe, script, form)')).toHaveLength(0);
    }
    expect(ran).not.toHaveBeenCalled();
  });

  it('names the host that it reaches, for which a further consent holds', async () => {
    await openCalls({ host: 'example.org:8443', tool: { server: 'ponder', tool: 'fetch_page' } });
    expect(the('call-host').textContent?.trim()).toBe('Connects to example.org:8443');
    expect(the('call-reason').textContent).toContain('for this site before');
    expect(['chat', 'always'].map((extent) => the(`allow-${extent}`).textContent?.trim())).toEqual([
      'This site in this chat',
      'Always for this site',
    ]);
    await openCalls({});
    expect(all('call-host')).toEqual([]);
    expect(the('allow-always').textContent?.trim()).toBe('Always for this tool');
  });

  it('is one of several, oldest first', async () => {
    await openCalls({ call: 'old' }, {}, {});
    expect(the('consent-count').textContent).toBe('1 of 3');
    await look();
    await click('allow-once');
    expect(host.approvals.map(({ call }) => call)).toEqual(['old']);
    expect(the('consent-count').textContent).toBe('1 of 2');
  });
});

describe('consent', () => {
  it.each(['once', 'chat', 'always'] as const)('quotes what was shown: %s', async (extent) => {
    await openCalls({});
    await look();
    await click(`allow-${extent}`);
    const { answer } = WRITE;
    expect(host.approvals).toEqual([{ answer, call: 'call-0', hash: 'hash-0', extent, arguments: null }]);
    expect(the('consent-none').textContent).toContain('No call waits.');
  });

  it('is not given by a click or a key in the first half second', async () => {
    await openCalls({}, {});
    expect(document.activeElement).toBe(the('consent-title'));
    await pass(400);
    await click('allow-once');
    await click('allow-always');
    await look();
    expect(host.approvals).toEqual([]);
    await click('allow-once');
    expect(host.approvals).toHaveLength(1);
    // The next call has a half second of its own, and the focus is where no key decides.
    await click('allow-once');
    expect(host.approvals).toHaveLength(1);
    expect(document.activeElement).toBe(the('consent-title'));
  });

  it('is not given by a press that began before a person could look, nor by a key that is held down', async () => {
    await openCalls({});
    const button = the('allow-once');
    button.dispatchEvent(new Event('pointerdown', { bubbles: true }));
    await look();
    button.click();
    expect(host.approvals).toEqual([]);
    const held = new KeyboardEvent('keydown', { key: 'Enter', repeat: true, bubbles: true, cancelable: true });
    button.dispatchEvent(held);
    expect(held.defaultPrevented).toBe(true);
  });

  it('has its half second again when the window comes to the front', async () => {
    await openCalls({});
    await look();
    window.dispatchEvent(new FocusEvent('focus'));
    await click('allow-once');
    expect(host.approvals).toEqual([]);
    await look();
    await click('allow-once');
    expect(host.approvals).toHaveLength(1);
  });

  it('cannot be kept without a keychain', async () => {
    await openCalls({ can_keep: false });
    expect(all('allow-always')).toEqual([]);
    expect(all('allow-chat')).toHaveLength(1);
  });

  it('is refused with a word for the model, at once', async () => {
    await openCalls({});
    await write('deny-word', ' Not that file. ');
    await click('deny');
    expect(host.refusals).toEqual([{ call: 'call-0', hash: 'hash-0', word: 'Not that file.' }]);
    expect(host.approvals).toEqual([]);
  });

  it('does nothing on Escape and Enter', async () => {
    await openCalls({});
    await look();
    for (const key of ['Escape', 'Enter', ' '])
      document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    await pass(100);
    expect([host.approvals, host.refusals]).toEqual([[], []]);
    expect(all('waiting-call')).toHaveLength(1);
  });

  it('says that a call changed meanwhile, and shows it as it is now', async () => {
    await openCalls({});
    await look();
    host.waiting = [{ ...SHOWN, call: 'call-0', hash: 'hash-new', description: 'It deletes everything.' }];
    await click('allow-once');
    expect(host.approvals).toEqual([]);
    expect(the('consent-refused').textContent).toContain('This call changed or no longer waits. Nothing was allowed.');
    expect(the('description').textContent).toBe('It deletes everything.');
    // It is another one, so it has to be looked at.
    await click('allow-once');
    expect(host.approvals).toEqual([]);
  });

  it('says why a decision failed that could be made once more', async () => {
    await openCalls({});
    await look();
    host.refuse = { call: 'approveCall', error: { code: 'keychain', message: 'it is locked' } };
    await click('allow-always');
    expect(the('consent-refused').textContent).toContain('Keychain isn’t available');
    host.refuse = null;
    await click('allow-once');
    expect(host.approvals).toHaveLength(1);
    expect(all('consent-refused')).toEqual([]);
  });

  it('follows calls that come and go', async () => {
    await open('consent');
    expect(the('consent-none').textContent).toContain('No call waits.');
    host.setWaiting([SHOWN]);
    await pass(10);
    expect(all('waiting-call')).toHaveLength(1);
    await fill(argument('path'), 'coffee.md');
    // Another one at the end changes nothing of what is being written.
    host.setWaiting([SHOWN, { ...SHOWN, call: 'later', hash: 'later' }]);
    await pass(10);
    expect(argument('path').value).toBe('coffee.md');
    host.setWaiting([]);
    await pass(10);
    expect(all('consent-none')).toHaveLength(1);
  });

  it('says why the calls could not be listed, and lists them again', async () => {
    host.refuse = { call: 'waitingCalls', error: { code: 'busy', message: 'not now' } };
    await open('consent');
    expect(the('consent-failure').textContent).toContain('Ponder is busy');
    host.refuse = null;
    host.waiting = [SHOWN];
    await click('consent-again');
    expect(all('waiting-call')).toHaveLength(1);
    expect(all('consent-failure')).toEqual([]);
  });
});

describe('the arguments of a call that waits', () => {
  it('are sent as a person wrote them', async () => {
    await openCalls({});
    await look();
    await fill(argument('path'), 'coffee.md');
    await fill(argument('mode'), '384');
    expect(the('arguments-changed').textContent).toContain('You changed these arguments.');
    await click('allow-once');
    const changed = { path: 'coffee.md', text: 'one\ntwo', mode: 384, append: false, encoding: 'utf-8', tags: ['tea'] };
    expect(sent()).toEqual(changed);
    expect(host.approvals[0]?.hash).toBe('hash-0');
  });

  it('are the shown ones again after all was taken back', async () => {
    await openCalls({});
    await look();
    await fill(argument('path'), 'coffee.md');
    await click('arguments-reset');
    expect(argument('path').value).toBe('tea.md');
    await click('allow-once');
    expect(host.approvals[0]?.arguments).toBeNull();
  });

  it('are the same as fields and as one text', async () => {
    await openCalls({});
    await look();
    await fill(argument('path'), 'coffee.md');
    await click('arguments-json');
    expect(JSON.parse(whole().value)).toEqual({ ...Object(WRITE.arguments), path: 'coffee.md' });
    await fill(whole(), '{"path": "milk.md", "text": "three", "extra": {"a": 1}}');
    await click('arguments-json');
    expect([argument('path').value, argument('text').value]).toEqual(['milk.md', 'three']);
    expect(argument('extra').dataset['kind']).toBe('json');
    await click('allow-once');
    expect(sent()).toEqual({ path: 'milk.md', text: 'three', extra: { a: 1 } });
  });

  it('are not sent while a text in them says nothing', async () => {
    await openCalls({});
    await look();
    for (const [name, text] of [
      ['mode', '4.5'],
      ['mode', '1e400'],
      ['tags', '[tea'],
    ] as const) {
      await fill(argument(name), text);
      expect(['allow-once', 'allow-chat', 'allow-always'].every(isDisabled)).toBe(true);
      expect(the('arguments-problem').textContent).toContain(name);
      expect(isDisabled('arguments-json')).toBe(true);
      await click('allow-once');
      await click('arguments-reset');
    }
    await click('arguments-json');
    for (const text of ['{"path": ', '[1]', 'null', '{"path": "a"}']) {
      await fill(whole(), text);
      expect(isDisabled('allow-once')).toBe(true);
    }
    expect(the('arguments-problem').textContent).toBe('Missing: text');
    expect(host.approvals).toEqual([]);
    await click('deny');
    expect(host.refusals).toHaveLength(1);
  });

  it('can be added and taken out, but not those that are required', async () => {
    await openCalls({ arguments: { path: 'tea.md', mode: 420 } });
    await look();
    expect(the('arguments-problem').textContent).toBe('Missing: text');
    expect(isDisabled('allow-once')).toBe(true);
    await click('remove-argument');
    all('add-argument')[0]?.click();
    await pass(10);
    expect(document.activeElement).toBe(argument('text'));
    await fill(argument('text'), 'words');
    expect(all('remove-argument')).toEqual([]);
    await click('allow-once');
    expect(sent()).toEqual({ path: 'tea.md', text: 'words' });
  });

  it('show characters that cannot be seen, and send them unless somebody takes them out', async () => {
    const turned = 'notes\u202egnp.hs\u200b⟨U+0041⟩';
    await openCalls({ arguments: { path: turned, text: '\u{e0041}\r\n', 'tags': ['\u2066'] } });
    await look();
    expect(the('arguments-escaped').textContent).toContain('Invisible characters');
    expect(argument('path').value).toBe('notes⟨U+202E⟩gnp.hs⟨U+200B⟩⟨U+27E8⟩U+0041⟨U+27E9⟩');
    expect(argument('text').value).toBe('⟨U+E0041⟩⟨U+000D⟩\n');
    expect(argument('tags').value).toContain('"\\u2066"');
    await click('arguments-json');
    expect(whole().value).toContain('notes\\u202egnp.hs\\u200b⟨U+0041⟩');
    await click('arguments-json');
    await fill(argument('text'), 'tea');
    await click('allow-once');
    expect(sent()).toEqual({ path: turned, text: 'tea', tags: ['\u2066'] });
  });

  it('have no list for values that look alike but for what is hidden', async () => {
    const parameters = { type: 'object', properties: { to: { type: 'string', enum: ['ada', 'ada\u200b'] } } };
    await openCalls({ parameters, arguments: { to: 'ada\u200b' } });
    expect(all('argument-choice')).toEqual([]);
    expect(argument('to').value).toBe('"ada\\u200b"');
  });

  it('say nothing of it where every character is seen', async () => {
    await openCalls({ arguments: { path: 'größer 日本語 C:\\user', text: 'one\n\ttwo' } });
    expect(all('arguments-escaped')).toEqual([]);
  });
});

describe('numbers that a page would round', () => {
  const parameters = { type: 'object', properties: { account: { type: 'integer' }, note: { type: 'string' } } };
  const arguments_text = '{"account": 12345678901234567890, "note": "tea", "list": [9007199254740993]}';

  it('are shown and sent as they are written', async () => {
    await openCalls({ parameters, arguments_text });
    await look();
    expect([argument('account').value, argument('account').dataset['kind']]).toEqual(['12345678901234567890', 'integer']);
    expect(argument('list').value).toContain('9007199254740993');
    await fill(argument('note'), 'coffee');
    await click('arguments-json');
    expect(whole().value).toContain('"account": 12345678901234567890');
    await fill(whole(), whole().value.replace('12345678901234567890', '12345678901234567891'));
    await click('allow-once');
    expect(host.approvals.map((approval) => approval.arguments)).toEqual([
      '{"account":12345678901234567891,"note":"coffee","list":[9007199254740993]}',
    ]);
  });

  it('run as they are if nobody changed them', async () => {
    await openCalls({ parameters, arguments_text });
    await look();
    await fill(argument('account'), '1');
    await click('arguments-reset');
    await click('allow-once');
    expect(host.approvals.map((approval) => approval.arguments)).toEqual([null]);
  });
});

it.each(['en', 'ar'])('keeps nobody out who uses a screen reader (%s)', async (language) => {
  await openCalls({ reason: 'changed', former_description: 'Before' }, {});
  await chooseLanguage([language]);
  await pass(10);
  expect(document.documentElement.dir).toBe(language === 'ar' ? 'rtl' : 'ltr');
  vi.useRealTimers();
  const rules = { 'color-contrast': { enabled: false } };
  const { violations } = await axe.run(document, { resultTypes: ['violations'], rules });
  vi.useFakeTimers();
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  expect(serious.map(({ id }) => id)).toEqual([]);
});
