import { describe, expect, it } from 'vitest';

import { cases } from './cases';
import { fakeHost, type FakeHost } from '../../host/fake';
import { COMMAND_WINDOWS } from '../../host/generated';

/** A host that records the commands that are called. */
function recorded(host: FakeHost): { host: FakeHost; called: Set<keyof typeof COMMAND_WINDOWS> } {
  const called = new Set<keyof typeof COMMAND_WINDOWS>();
  const isCommand = (name: string | symbol): name is keyof typeof COMMAND_WINDOWS => Object.hasOwn(COMMAND_WINDOWS, name);
  const recording = new Proxy(host, {
    get(target, name): unknown {
      if (isCommand(name)) called.add(name);
      return Reflect.get(target, name);
    },
  });
  return { host: recording, called };
}

describe('the in-memory host', () => {
  it.each(cases)('$name', async ({ run, window = 'chat' }) => {
    const { host, called } = recorded(fakeHost(1));
    await run(host);
    // The app asks each case in the page of its window.
    const refused = [...called].filter((command) => !COMMAND_WINDOWS[command].includes(window));
    expect(refused).toEqual([]);
  });
});
