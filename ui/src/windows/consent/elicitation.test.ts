/** Requests of servers amid a call, in the window of calls that wait. */

import axe from 'axe-core';
import { afterEach, describe, expect, it, vi } from 'vitest';

import type { ElicitationField } from '../../bindings/ElicitationField';
import type { ElicitationInput } from '../../bindings/ElicitationInput';
import type { WaitingElicitation } from '../../bindings/WaitingElicitation';
import { chooseLanguage } from '../../locales/languages.svelte';
import { hostileTexts } from '../../testing/hostileTexts';
import { all, click, host, open, pass, the, useWindow } from '../../testing/window';
import { FormDraft } from './formDraft.svelte';

useWindow();
afterEach(() => chooseLanguage(['en']));

const text = { kind: 'text', format: null, min: null, max: null, default: null } as const;
const choices = [
  { value: 's', title: 'Small' },
  { value: 'l', title: 'Large' },
];

const field = (name: string, input: ElicitationInput, more: Partial<ElicitationField> = {}): ElicitationField => ({
  name,
  title: `The ${name}`,
  description: '',
  required: false,
  looks_secret: false,
  input,
  ...more,
});

const FIELDS = [
  field('name', { ...text, min: 2, default: 'Ada' }, { required: true, description: 'As on the ticket.' }),
  field('mail', { ...text, format: 'email' }),
  field('age', { kind: 'number', whole: true, min: '0', max: null, default: '12345678901234567890' }),
  field('member', { kind: 'boolean', default: null }),
  field('size', { kind: 'one', choices, default: 'l' }),
  field('days', { kind: 'some', choices, min: null, max: 1, default: ['s'] }),
];

const FORM: WaitingElicitation = {
  id: 'one',
  chat: 'chat-1',
  tool: { server: 'travel', tool: 'book' },
  server_name: 'Travel',
  server_command: 'uvx travel-server',
  message: 'Who is travelling?',
  wants: { kind: 'form', fields: FIELDS },
};

const PAGE = 'https://pay.example.org:8443/session?state=9';
const ADDRESS: WaitingElicitation = { ...FORM, wants: { kind: 'address', url: PAGE, host: 'pay.example.org:8443' } };

async function openElicitations(...elicited: WaitingElicitation[]): Promise<void> {
  host.setElicited(elicited);
  await open('consent');
}

/** Lets the person have looked at it. */
const look = (): Promise<void> => pass(500);

function input(name: string): HTMLInputElement | HTMLTextAreaElement {
  const found = all('elicited-field').find(({ dataset }) => dataset['name'] === name);
  if (!(found instanceof HTMLInputElement || found instanceof HTMLTextAreaElement)) throw new Error(`no field ${name}`);
  return found;
}

async function fill(name: string, value: string): Promise<void> {
  const element = input(name);
  element.value = value;
  element.dispatchEvent(new InputEvent('input', { bubbles: true }));
  await pass(0);
}

const sent = (): unknown => host.sentForms.map(({ values }) => JSON.parse(values));

describe('the form of a server', () => {
  it('is shown with its server, its words and its fields, filled in as the server says', async () => {
    await openElicitations(FORM);
    expect(the('consent-title').textContent).toBe('This server asks you for something');
    expect(the('elicitation-server').textContent).toBe('Travel');
    expect(the('elicitation-command').textContent).toBe('uvx travel-server');
    expect(the('elicitation-message').textContent).toBe('Who is travelling?');
    expect(the('elicitation').textContent).toContain('While book runs');
    expect(all('elicited').map(({ dataset }) => dataset['name'])).toEqual(FIELDS.map(({ name }) => name));
    expect([input('name').value, input('mail').value, input('age').value]).toEqual(['Ada', '', '12345678901234567890']);
    expect(the('elicited-choice').textContent?.trim()).toBe('Large');
    expect(all('elicited-option').map((box) => box instanceof HTMLInputElement && box.checked)).toEqual([true, false]);
    expect(the('elicited-about').textContent).toBe('As on the ticket.');
    expect(all('elicited-secret')).toEqual([]);
  });

  it('is sent as the person wrote it, once', async () => {
    await openElicitations(FORM);
    await look();
    await fill('mail', 'ada@example.org');
    all('elicited-option')[1]?.click();
    all('elicited-option')[0]?.click();
    await pass(0);
    await click('elicitation-send');
    expect(host.sentForms[0]?.values).toContain('"age":12345678901234567890');
    expect(host.sentForms[0]?.values).toContain('"days":["l"]');
    expect(host.sentForms[0]?.values).not.toContain('member');
    expect(all('elicitation')).toEqual([]);
    expect(the('consent-none').textContent).toContain('No call waits.');
  });

  it('says what is wrong with it, and goes on waiting', async () => {
    await openElicitations(FORM);
    await look();
    await fill('name', '');
    await fill('mail', 'ada');
    await fill('age', '-1');
    all('elicited-option')[1]?.click();
    await click('elicitation-send');
    expect(all('elicited-problem').map(({ textContent }) => textContent)).toEqual([
      'Fill this in.',
      'Enter an email address like name@example.org.',
      'At least 0',
      '',
      '',
      'Choose at most 1',
    ]);
    expect(input('mail').getAttribute('aria-invalid')).toBe('true');
    expect(sent()).toEqual([]);
    await fill('name', 'Ada');
    await fill('mail', '');
    await fill('age', '');
    all('elicited-option')[1]?.click();
    await click('elicitation-send');
    expect(sent()).toEqual([{ name: 'Ada', size: 'l', days: ['s'] }]);
  });

  it('warns of a field that looks like a secret', async () => {
    const secret = field('password', text, { looks_secret: true });
    await openElicitations({ ...FORM, wants: { kind: 'form', fields: [secret] } });
    expect(the('elicited-secret').textContent).toContain('must not ask for those');
  });

  it('is not sent by a click or a key that was meant for something else', async () => {
    await openElicitations(FORM);
    expect(document.activeElement).toBe(the('consent-title'));
    await click('elicitation-send');
    const button = the('elicitation-send');
    button.dispatchEvent(new Event('pointerdown', { bubbles: true }));
    await look();
    button.click();
    for (const key of ['Enter', 'Escape', ' '])
      document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    await pass(10);
    expect([host.sentForms, host.declined]).toEqual([[], []]);
    window.dispatchEvent(new FocusEvent('focus'));
    await click('elicitation-send');
    expect(host.sentForms).toEqual([]);
    await look();
    await click('elicitation-send');
    expect(host.sentForms).toHaveLength(1);
  });

  it('is declined at once', async () => {
    await openElicitations(FORM, { ...FORM, id: 'two' });
    expect(the('consent-count').textContent).toBe('1 of 2');
    await click('elicitation-decline');
    expect([host.declined, host.sentForms]).toEqual([['one'], []]);
    expect(all('elicitation')).toHaveLength(1);
  });

  it('that is gone says that nothing was sent', async () => {
    await openElicitations(FORM);
    await look();
    host.elicited = [];
    await click('elicitation-send');
    expect(the('consent-refused').textContent).toContain('Nothing was sent.');
  });

  it('keeps texts of strangers text, and runs and loads nothing of them', async () => {
    const ran = vi.fn();
    vi.stubGlobal('ran', ran);
    vi.stubGlobal('alert', ran);
    for (const hostile of hostileTexts(30, 11)) {
      const fields = [
        field(hostile, { ...text, default: hostile }, { title: hostile, description: hostile }),
        field(`${hostile} 2`, { kind: 'one', choices: [{ value: hostile, title: hostile }], default: hostile }),
      ];
      await openElicitations({ ...FORM, message: hostile, server_name: hostile, wants: { kind: 'form', fields } });
      if (hostile !== '') expect(the('elicitation-message').textContent).toBe(hostile);
      expect(document.querySelectorAll('[data-testid=consent] :is(img, a, iframe, script, form)')).toHaveLength(0);
    }
    expect(ran).not.toHaveBeenCalled();
  });
});

describe('the address of a server', () => {
  it('is shown whole, and opened only after the question about it', async () => {
    await openElicitations(ADDRESS);
    expect(the('consent-title').textContent).toBe('This server asks you to open a page');
    expect(the('elicitation-host').textContent).toBe('pay.example.org:8443');
    expect(the('elicitation-url').textContent).toBe(PAGE);
    expect(document.querySelectorAll('[data-testid=consent] a')).toHaveLength(0);
    await look();
    await click('elicitation-open');
    expect(host.openedAddresses).toEqual([]);
    expect(the('elicitation-question').textContent).toContain(PAGE);
    await click('elicitation-keep');
    expect(host.openedAddresses).toEqual([]);
    await click('elicitation-open');
    await click('elicitation-opens');
    expect(host.openedAddresses).toEqual([PAGE]);
    expect(all('elicitation')).toEqual([]);
  });

  it('that no browser opens goes on waiting, and says why', async () => {
    await openElicitations(ADDRESS);
    await look();
    host.refuse = { call: 'openElicitedAddress', error: { code: 'not_found', reason: 'no_browser', message: 'none' } };
    await click('elicitation-open');
    await click('elicitation-opens');
    expect(the('consent-refused').textContent).not.toBe('');
    expect(all('elicitation')).toHaveLength(1);
  });
});

describe('the values of a form', () => {
  const json = (fields: ElicitationField[], write: (draft: FormDraft) => void = () => {}): string => {
    const draft = new FormDraft(fields);
    write(draft);
    return draft.json;
  };

  it('are only those that have a value', () => {
    expect(json([field('a', text), field('b', { kind: 'boolean', default: null })])).toBe('{}');
    expect(json([field('b', { kind: 'boolean', default: null }, { required: true })])).toBe('{"b":false}');
    expect(json([field('b', { kind: 'boolean', default: true })])).toBe('{"b":true}');
  });

  it('are written as JSON, whatever they hold', () => {
    const odd = 'a"b\\c\n\u202e';
    expect(JSON.parse(json([field(odd, text)], (draft) => draft.write(odd, odd)))).toEqual({ [odd]: odd });
    const number = field('n', { kind: 'number', whole: false, min: null, max: null, default: null });
    for (const [typed, expected] of [
      ['1.5', '{"n":1.5}'],
      ['99999999999999999999', '{"n":99999999999999999999}'],
      ['1}', '{"n":"1}"}'],
      ['NaN', '{"n":"NaN"}'],
      [' ', '{}'],
    ] as const)
      expect(json([number], (draft) => draft.write('n', typed))).toBe(expected);
  });
});

it.each(['en', 'ar'])('keeps nobody out who uses a screen reader (%s)', async (language) => {
  await openElicitations(FORM);
  await chooseLanguage([language]);
  await pass(10);
  vi.useRealTimers();
  const rules = { 'color-contrast': { enabled: false } };
  const { violations } = await axe.run(document, { resultTypes: ['violations'], rules });
  vi.useFakeTimers();
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  expect(serious.map(({ id }) => id)).toEqual([]);
});
