/** The fake host's resources and prompts of servers. No server runs: tests and examples say what each has. */

import type { ServerPrompt } from '../../bindings/ServerPrompt';
import type { ServerResources } from '../../bindings/ServerResources';
import type { Platform } from '../types';
import type { fileControls } from './files';
import { hashOf } from './images';
import { refusal, type Shared } from './shared';

export const serverResourceControls = () => ({
  serverFiles: [] as readonly ServerResources[],
  /** The texts of resources by their addresses. */
  resourceTexts: new Map<string, string>(),
  /** The prompts of servers that run, and of those that are started for theirs. */
  runningPrompts: [] as readonly ServerPrompt[],
  sleepingPrompts: [] as readonly ServerPrompt[],
  /** The texts of prompts by their names, with `{argument}` in them. */
  promptTexts: new Map<string, string>(),
});

type Controls = Shared & ReturnType<typeof fileControls> & ReturnType<typeof serverResourceControls>;

export function serverResources(host: Controls) {
  return {
    async serverResources() {
      return [...host.serverFiles];
    },
    async attachResource(server, uri, name) {
      const text = host.resourceTexts.get(uri);
      if (text === undefined) {
        const known = host.serverFiles.some((list) => list.server === server);
        if (!known) throw refusal('not_found', `there is no server ${server}`);
        const why = 'its answer holds no content';
        throw refusal('bad_request', why, { why }, 'tools_refused');
      }
      const attachment = hashOf(new TextEncoder().encode(text));
      const pieces = text.match(/[^\n]*\n|[^\n]+/g) ?? [];
      host.texts.set(attachment, { unit: 'lines', pieces });
      const excerpt = { unit: 'lines', first: 1, last: pieces.length, of: pieces.length } as const;
      const called = name || (uri.split('/').at(-1) ?? uri);
      return { kind: 'file', attachment, media_type: 'text/plain', name: called, bytes: text.length, excerpt };
    },
    async serverPrompts(start) {
      if (start) {
        host.runningPrompts = [...host.runningPrompts, ...host.sleepingPrompts];
        host.sleepingPrompts = [];
      }
      return { prompts: [...host.runningPrompts], more: host.sleepingPrompts.length > 0 };
    },
    async serverPrompt(server, name, values) {
      const text = host.runningPrompts.some((prompt) => prompt.server === server && prompt.name === name)
        ? host.promptTexts.get(name)
        : undefined;
      if (text === undefined) throw refusal('not_found', `there is no server ${server}`);
      return values.reduce((filled, [argument, value]) => filled.replaceAll(`{${argument}}`, value), text);
    },
  } satisfies Partial<Platform>;
}
