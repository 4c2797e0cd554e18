import { describe, expect, it, vi } from 'vitest';

import { addCollections } from '../../host/fake/documentExamples';
import { all, click, field, host, open, pass, submit, the, useWindow, write } from '../../testing/window';

useWindow();

async function openServer(): Promise<void> {
  await open('settings');
  await click('tab-server');
  await pass(0);
}

/** The address of the server, and the text about it. */
function state(): [string | undefined, string] {
  return [the('server-state').dataset.state, the('server-state').textContent ?? ''];
}

/** Records copied texts. */
function clipboard(): string[] {
  const copied: string[] = [];
  vi.stubGlobal('navigator', {
    ...navigator,
    clipboard: { writeText: async (text: string) => void copied.push(text) },
    platform: 'Linux',
    languages: ['en'],
  });
  return copied;
}

describe('the switch', () => {
  it('reveals port, key and network access while the server is on or in trouble', async () => {
    const shown = (): string[] =>
      ['server-port', 'new-server-key', 'server-network', 'no-clients', 'setup-text'].filter((name) => all(name).length);
    await openServer();
    expect(shown()).toEqual([]);
    await click('server-switch');
    await pass(0);
    expect(shown()).toHaveLength(5);
    await click('server-switch');
    expect(shown()).toEqual([]);
    host.taken.set(8231, null);
    await click('server-switch');
    expect(shown()).toContain('server-port');
  });

  it('is off at first, shows the addresses once it is on, and hides them again', async () => {
    const copied = clipboard();
    await openServer();
    expect(state()).toEqual(['off', 'Off']);
    expect(all('server-address')).toEqual([]);
    await click('server-switch');
    expect(host.app.server).toMatchObject({ on: true, port: 8231, network: false });
    expect(state()).toEqual(['on', 'Running. Apps on this computer can connect.']);
    expect(all('server-address').map((element) => element.textContent)).toEqual([
      'http://127.0.0.1:8231/v1',
      'http://127.0.0.1:8231',
    ]);
    all('copy-address')[0]?.click();
    await pass(0);
    expect(copied).toEqual(['http://127.0.0.1:8231/v1']);
    expect(the('no-clients').textContent).toContain('No requests yet');
    await click('server-switch');
    expect(state()[0]).toBe('off');
    expect(all('server-address')).toEqual([]);
  });

  it('says that it starts while a keychain waits for a person', async () => {
    await openServer();
    host.starting = true;
    await click('server-switch');
    expect(state()).toEqual(['starting', 'Starting…']);
    host.starting = false;
    await pass(1000);
    expect(state()[0]).toBe('on');
  });

  it('shows at once that a change is awaited', async () => {
    await openServer();
    const set = host.setServer.bind(host);
    vi.spyOn(host, 'setServer').mockImplementation(async (...settings) => {
      host.starting = true;
      const set_up = set(...settings);
      await new Promise((done) => setTimeout(done, 5000));
      host.starting = false;
      await set_up;
      return host.serverStatus();
    });
    await click('server-switch');
    expect(the('server-switch')).toHaveProperty('disabled', true);
    await pass(200);
    expect(state()[0]).toBe('starting');
    await pass(5000);
    expect(state()[0]).toBe('on');
    expect(the('server-switch')).toHaveProperty('disabled', false);
  });

  it('names who has the port, and takes another one', async () => {
    host.taken.set(8231, { name: 'python3', process: 4711 }).set(8232, null);
    await openServer();
    await click('server-switch');
    expect(state()).toEqual([
      'port_taken',
      'Port 8231 is in use by python3 (process 4711). Quit that app or use another port.',
    ]);
    expect(the('server-switch').getAttribute('aria-checked')).toBe('false');
    expect(host.app.server.on).toBe(true);
    await write('server-port', '8232');
    await submit('server-port');
    expect(state()).toEqual([
      'port_taken',
      'Port 8232 is in use by another app. Quit that app or use another port.',
    ]);
    host.taken.clear();
    await click('server-again');
    expect(state()[0]).toBe('on');
    expect(the('server-address').textContent).toBe('http://127.0.0.1:8232');
    expect(the('server-switch').getAttribute('aria-checked')).toBe('true');
  });

  it('is left off if its port stays taken', async () => {
    host.taken.set(8231, null);
    await openServer();
    await click('server-switch');
    expect(state()[0]).toBe('port_taken');
    await click('server-leave-off');
    expect([state()[0], host.app.server.on, all('server-leave-off').length]).toEqual(['off', false, 0]);
  });

  it('says why it could not be started', async () => {
    host.serverProblem = {
      code: 'bad_request',
      reason: 'server_address',
      arguments: { address: '127.0.0.1:80' },
      message: '127.0.0.1:80 cannot be listened on: permission denied',
    };
    await openServer();
    await click('server-switch');
    expect(state()).toEqual(['failed', 'Server couldn’t start. It can’t listen on 127.0.0.1:80. Choose another port.']);
    host.serverProblem = null;
    await click('server-again');
    expect(state()[0]).toBe('on');
  });

  it('refuses what is no port', async () => {
    await openServer();
    await click('server-switch');
    for (const wrong of ['0', '65536', 'eighty', '-1', '80.5']) {
      await write('server-port', wrong);
      await submit('server-port');
      expect(document.body.textContent).toContain('Enter a whole number from 1 to 65535.');
    }
    expect(host.app.server.port).toBe(8231);
    await write('server-port', '9000');
    await submit('server-port');
    expect([host.app.server.port, field('server-port').value]).toEqual([9000, '9000']);
  });

  it('keeps what is typed as a port while it hears of its requests', async () => {
    await openServer();
    await click('server-switch');
    await write('server-port', '90');
    await pass(10_000);
    expect(field('server-port').value).toBe('90');
    await click('server-network');
    expect(field('server-port').value).toBe('90');
  });
});

describe('the key', () => {
  it('is made, hidden, shown, copied, replaced and removed', async () => {
    const copied = clipboard();
    await openServer();
    await click('server-switch');
    expect(the('server-key').textContent).toBe('••••••••••••••••');
    expect(document.body.innerHTML).not.toContain('ponder-1');
    await click('copy-server-key');
    expect(copied).toEqual(['ponder-11111111']);
    await click('show-server-key');
    expect(the('server-key').textContent).toBe('ponder-11111111');
    await click('show-server-key');
    expect(document.body.innerHTML).not.toContain('ponder-1');
    await click('new-server-key');
    await click('show-server-key');
    expect(the('server-key').textContent).toBe('ponder-22222222');
    await click('forget-server-key');
    expect(all('server-key')).toEqual([]);
    expect(host.app.server.key_made_at).toBeNull();
    expect(state()[0]).toBe('on');
    // Another port leaves it without one; switched on again it has one.
    await write('server-port', '9000');
    await submit('server-port');
    expect(host.app.server.key_made_at).toBeNull();
    await click('server-switch');
    await click('server-switch');
    expect(host.app.server.key_made_at).not.toBeNull();
  });

  it('is not made if there is one already, or the environment has it', async () => {
    await openServer();
    await click('server-switch');
    const made = host.app.server.key_made_at;
    await click('server-switch');
    await click('server-switch');
    expect(host.app.server.key_made_at).toBe(made);
    await click('forget-server-key');
    await click('server-switch');
    host.keyOfEnvironment = true;
    await click('server-switch');
    expect([state()[0], host.app.server.key_made_at]).toEqual(['on', null]);
  });

  it('is not made where no keychain could keep it, and the server is on all the same', async () => {
    host.keychainProblem = { code: 'keychain', message: 'this computer’s keychain cannot be used (there is none)' };
    await openServer();
    await click('server-switch');
    expect([state()[0], host.app.server.on, host.app.server.key_made_at]).toEqual(['on', true, null]);
  });

  it('is needed for other computers', async () => {
    await openServer();
    await click('server-switch');
    await click('forget-server-key');
    await click('server-network');
    expect(state()).toEqual([
      'key_needed',
      'Network access needs an API key. Create one to start the server.',
    ]);
    await click('new-server-key');
    expect(state()).toEqual(['on', 'Running. Apps on this computer and your network can connect.']);
    expect(the('server-address').textContent).toBe('http://192.168.1.7:8231');
    await click('forget-server-key');
    expect(state()[0]).toBe('key_needed');
  });

  it('is not asked by other computers if the person declines in the dialog of the system', async () => {
    await openServer();
    await click('server-switch');
    host.dialogAnswer = 'no';
    await click('server-network');
    expect([state()[0], host.app.server.network, host.asked]).toEqual(['on', false, ['network']]);
    expect(the('server-network').getAttribute('aria-checked')).toBe('false');
    host.dialogAnswer = 'yes';
    await click('server-network');
    expect(host.app.server.network).toBe(true);
    // Another port changes nothing about who may ask.
    await write('server-port', '8232');
    await submit('server-port');
    expect(host.asked).toEqual(['network', 'network']);
  });

  it('that is lost leaves the server off, and says so', async () => {
    await openServer();
    await click('server-switch');
    await click('server-switch');
    host.loseServerKey();
    await click('server-switch');
    expect(state()).toEqual([
      'key_needed',
      'Off. The API key is missing from your keychain.',
    ]);
    await click('forget-server-key');
    expect(state()[0]).toBe('on');
  });

  it('says why the keychain did not take it', async () => {
    await openServer();
    await click('server-switch');
    host.keychainProblem = { code: 'keychain', message: 'this computer’s keychain cannot be used (there is none)' };
    await click('new-server-key');
    expect(the('server-key-problem').textContent).toContain('Keychain isn’t available');
    host.keychainProblem = null;
    await click('new-server-key');
    expect(all('server-key-problem')).toEqual([]);
  });

  it('of the environment cannot be changed here', async () => {
    host.keyOfEnvironment = true;
    await openServer();
    await click('server-switch');
    expect([all('new-server-key').length, all('forget-server-key').length, all('show-server-key').length]).toEqual([
      0, 0, 1,
    ]);
    expect(document.body.textContent).toContain('Set outside Ponder');
  });
});

it('lists who asks, and what is in flight', async () => {
  await openServer();
  await click('server-switch');
  expect(the('server-figures').textContent).toBe('0 active requests · 0.0 tok/s');
  host.figures = { in_flight: 1, connections: 3, tokens_per_second: 41.6, requests: 12 };
  host.inbound = [
    { name: 'Claude Code', requests: 12, prompt_tokens: 84_210, completion_tokens: 3120, last_seen_at: Date.now() },
  ];
  await pass(1000);
  expect(the('server-figures').textContent).toBe('1 active request · 42 tok/s');
  expect(all('client')).toHaveLength(1);
  for (const words of ['Claude Code', '12', '84,210', '3,120']) expect(the('client').textContent).toContain(words);
});

describe('a set-up', () => {
  it('has the address, the model and, once it is copied, the key', async () => {
    const copied = clipboard();
    await openServer();
    await click('server-switch');
    expect(the('setup-text').textContent).toContain('base_url = "http://127.0.0.1:8231/v1"');
    expect(the('setup-text').textContent).toContain('model = "pebble"');
    expect(the('setup-text').textContent).toContain('"••••••••"');
    await click('copy-setup');
    expect(copied.join()).toContain('experimental_bearer_token = "ponder-11111111"');
    await write('server-port', '9000');
    await submit('server-port');
    await pass(0);
    expect(the('setup-text').textContent).toContain('http://127.0.0.1:9000/v1');
  });

  it('is chosen by program and model, and a new model is offered at once', async () => {
    await openServer();
    await click('server-switch');
    await click('setup-program');
    all('setup-program')[0]?.parentElement?.querySelectorAll<HTMLElement>('[role="option"]')[1]?.click();
    await pass(0);
    expect(the('setup-text').textContent).toContain('Claude Code: http://127.0.0.1:8231 pebble ••••••••');
    const offered = async (): Promise<string[]> => {
      await click('setup-model');
      const options = [...document.querySelectorAll('[role="option"]')].map(
        (option) => option.textContent?.trim() ?? '',
      );
      await click('setup-model');
      return options;
    };
    const before = await offered();
    const [pebble] = host.local;
    if (!pebble) throw new Error('there is no model');
    host.local = [...host.local, { ...pebble, reference: 'org/new', name: 'new' }];
    await host.setDefaultModel('org/new');
    await pass(0);
    expect(await offered()).toEqual([...before, 'org/new']);
    expect(the('setup-text').textContent).toContain('org/new');
  });
});

describe('documents', () => {
  it('are closed to apps until they are checked, one by one', async () => {
    addCollections(host);
    await openServer();
    await click('server-switch');
    await pass(0);
    const boxes = (): HTMLInputElement[] => all('server-collection') as HTMLInputElement[];
    expect(boxes().map(({ checked }) => checked)).toEqual([false, false, false, false]);
    boxes()[1]?.click();
    await pass(0);
    boxes()[0]?.click();
    await pass(0);
    const named = host.keptCollections.map(({ view }) => view.id);
    expect(host.app.server.collections).toEqual([named[1], named[0]]);
    expect(boxes().map(({ checked }) => checked)).toEqual([true, true, false, false]);
    expect(state()[0]).toBe('on');
    boxes()[1]?.click();
    await pass(0);
    expect(host.app.server.collections).toEqual([named[0]]);
  });

  it('say so if there are none', async () => {
    await openServer();
    await click('server-switch');
    await pass(0);
    expect(the('no-server-documents').textContent).toBe('No documents yet. Add them in a project or chat.');
  });
});
