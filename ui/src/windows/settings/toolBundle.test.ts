/** A server in a file: what it says of itself, what it needs, and that it is added switched off. */

import { describe, expect, it } from 'vitest';

import type { BundleField } from '../../bindings/BundleField';
import type { ToolBundle } from '../../bindings/ToolBundle';
import { all, click, field, host, open, pass, the, useWindow, write } from '../../testing/window';

useWindow();

const one = (key: string, more: Partial<BundleField> = {}): BundleField => ({
  key,
  title: `Title of ${key}`,
  description: '',
  kind: 'text',
  required: false,
  sensitive: false,
  multiple: false,
  default: [],
  ...more,
});

const BUNDLE: ToolBundle = {
  hash: 'hash',
  name: 'Notes',
  version: '1.2.0',
  author: 'Ada\u202e',
  description: 'Reads <b>notes</b>.',
  command: 'node /data/tool-bundles/hash/index.js ${user_config.folders}',
  parts: [{ name: 'API_KEY', value: '${user_config.key}' }],
  fields: [
    one('key', { required: true, sensitive: true }),
    one('folders', { kind: 'folder', multiple: true, default: ['/home/me'] }),
    one('fast', { kind: 'switch', default: ['false'] }),
  ],
  tools: ['read', 'write'],
  files: 12,
  bytes: 34_000,
  missing: null,
};

async function openSheet(): Promise<void> {
  await open('settings');
  await click('tab-tools');
  await pass(0);
  await click('open-bundle-tools');
  await pass(10);
}

async function submit(): Promise<void> {
  field('bundle-name').form?.requestSubmit();
  await pass(10);
}

describe('a server in a file', () => {
  it('is shown whole before it is added, switched off', async () => {
    host.bundle = BUNDLE;
    await openSheet();
    const about = the('bundle-about').textContent;
    for (const part of ['1.2.0', 'Ada⟨U+202E⟩', 'Reads <b>notes</b>.', 'read, write', '12 files'])
      expect(about).toContain(part);
    expect(the('tool-command').textContent).toBe(BUNDLE.command);
    expect(all('bundle-missing')).toEqual([]);
    expect(field('bundle-field').type).toBe('password');
    await write('bundle-field', 's3cret');
    const lines = the('bundle-lines') as HTMLTextAreaElement;
    expect(lines.value).toBe('/home/me');
    lines.value = '/a\n\n /b ';
    lines.dispatchEvent(new InputEvent('input', { bubbles: true }));
    await click('bundle-switch');
    await submit();
    expect(host.bundleValues).toEqual([
      { key: 'key', values: ['s3cret'] },
      { key: 'folders', values: ['/a', '/b'] },
      { key: 'fast', values: ['true'] },
    ]);
    expect(all('tool-bundle-sheet')).toEqual([]);
    const added = host.toolServers.at(-1);
    expect([added?.name, added?.state]).toEqual(['Notes', { kind: 'off' }]);
  });

  it('says which value or program is missing', async () => {
    host.bundle = { ...BUNDLE, missing: 'node', fields: [one('level', { required: true, kind: 'number' })] };
    await openSheet();
    expect(the('bundle-missing').textContent).toContain('needs node');
    await submit();
    expect(the('bundle-problem').textContent).toContain('Title of level: this has to be filled in');
    expect(host.toolServers.length).toBe(1);
  });

  it('that cannot be used says why, and another one can be chosen', async () => {
    const why = 'this is no bundle that can be used: “../x” in it leads elsewhere';
    host.bundle = { code: 'bad_request', reason: 'tools_refused', arguments: { why }, message: why };
    await openSheet();
    expect(the('bundle-problem').textContent).toContain('leads elsewhere');
    expect(the('add-bundle').matches(':disabled')).toBe(true);
    host.bundle = BUNDLE;
    await click('choose-bundle');
    await pass(10);
    expect(all('bundle-about').length).toBe(1);
  });

  it('is none if none was chosen', async () => {
    await openSheet();
    expect(all('tool-bundle-sheet')).toEqual([]);
  });
});
