/** The prompts of servers beside the user's snippets. Those of servers that run are known at once. */

import type { ServerPrompt } from '../../bindings/ServerPrompt';
import type { Snippet } from '../../bindings/Snippet';
import type { Platform } from '../../host/types';

/** The meaning of a name after a slash: a text, a prompt of a server, or the servers that may have more. */
export type Suggestion =
  | { readonly kind: 'snippet'; readonly name: string; readonly text: string }
  | { readonly kind: 'prompt'; readonly name: string; readonly prompt: ServerPrompt }
  | { readonly kind: 'more'; readonly name: '' };

export class ServerPrompts {
  list = $state.raw<readonly ServerPrompt[]>([]);
  /** True if a server that does not run may have more. */
  more = $state(false);
  /** True while servers are started for it. */
  starting = $state(false);

  constructor(private readonly platform: Pick<Platform, 'serverPrompts'>) {}

  /** Reads those of the servers that run; with `start`, also of those that are switched on. */
  async read(start = false): Promise<void> {
    if (this.starting) return;
    this.starting = start;
    try {
      const { prompts, more } = await this.platform.serverPrompts(start);
      [this.list, this.more] = [prompts, more];
    } finally {
      this.starting = false;
    }
  }

  /** These snippets, then the prompts, and the servers that may have more. */
  with(snippets: readonly Snippet[]): Suggestion[] {
    return [
      ...snippets.map(({ name, text }) => ({ kind: 'snippet', name, text }) as const),
      ...this.list.map((prompt) => ({ kind: 'prompt', name: wordOf(prompt.name), prompt }) as const),
      ...(this.more ? [{ kind: 'more', name: '' } as const] : []),
    ];
  }
}

/** A name as one word, as it can be typed after a slash. */
function wordOf(name: string): string {
  return name.replace(/[^\p{L}\p{N}_-]+/gu, '-').slice(0, 40);
}
