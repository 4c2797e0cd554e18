/** Reading all documents of a chat for a question, which is asked with the notes. */

import { SvelteMap } from 'svelte/reactivity';

import type { CallProgress } from '../../bindings/CallProgress';
import type { Content } from '../../bindings/Content';
import type { Position } from '../../bindings/Position';
import type { Turn } from '../../bindings/Turn';
import { attempt, type Reporter } from '../../design/toasts.svelte';
import type { Platform } from '../../host';
import { textOf } from '../../shared/messageParts';
import type { Conversation } from './conversation.svelte';

const BEGINS: CallProgress = { done: null, total: null, message: null, asks: false };

export class ReadEverything {
  /** True while the user is asked about the cost. */
  offered = $state(false);
  /** How far the reading of each chat is. */
  readonly #progress = new SvelteMap<string, CallProgress>();
  /** The question that is asked next with everything read. */
  #question: string | null = null;

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Reporter,
    private readonly conversation: Conversation,
  ) {}

  /** How far the reading of a chat's documents is; `null` if they are not read. */
  of(chat: string | null): CallProgress | null {
    return (chat !== null && this.#progress.get(chat)) || null;
  }

  /** Sends the draft after all documents were read for it. */
  async ask(): Promise<void> {
    const { text } = this.conversation.draft;
    this.#question = text.trim();
    try {
      await this.conversation.send(text);
    } finally {
      this.#question = null;
    }
  }

  /** Sends a question, after reading everything if that was wanted for it. Other chats can be asked meanwhile. */
  async send(chat: string, content: Content[], position: Position): Promise<Turn> {
    if (this.#question === null || textOf(content) !== this.#question)
      return this.platform.send(chat, content, position);
    this.#question = null;
    this.#progress.set(chat, BEGINS);
    this.conversation.sending = false;
    try {
      return await this.platform.sendAfterReading(chat, content, position, (progress) => {
        if (this.#progress.has(chat)) this.#progress.set(chat, progress);
      });
    } finally {
      this.#progress.delete(chat);
    }
  }

  /** Stops the reading of a chat's documents; the question comes back into the draft. */
  async stop(chat: string): Promise<void> {
    await attempt(this.toasts, () => this.platform.stopReading(chat));
  }
}
