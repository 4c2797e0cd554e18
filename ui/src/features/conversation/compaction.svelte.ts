/** The share of its context that the open chat takes, and compaction. */

import type { Content } from '../../bindings/Content';
import type { ContextUse } from '../../bindings/ContextUse';
import type { StoredMessage } from '../../bindings/StoredMessage';
import type { SummaryProgress } from '../../bindings/SummaryProgress';
import { words } from '../../shared/messageParts';
import { t } from '../../locales';
import type { Platform } from '../../host';
import { asHostError, type HostError } from '../../host/types';
import type { Conversation } from './conversation.svelte';
import { attempt, type Reporter } from '../../design/toasts.svelte';

/** The share of a context at which the user is warned. */
export const NEARLY_FULL = 0.8;

export class Compaction {
  /** The chat's use of its model's context; `null` if unknown. */
  use = $state.raw<ContextUse | null>(null);
  /** Why the last question was not taken, if it did not fit. */
  full = $state.raw<HostError | null>(null);
  /** True while a summary is being written. */
  summarizing = $state(false);
  /** How far it is; `null` before its first figure. */
  progress = $state.raw<SummaryProgress | null>(null);

  #asked = 0;

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Reporter,
    private readonly conversation: Conversation,
  ) {}

  /** The share of the context in use; above 1 if the chat does not fit. */
  get share(): number | null {
    return this.use?.context ? this.use.tokens / this.use.context : null;
  }

  get nearlyFull(): boolean {
    return (this.share ?? 0) >= NEARLY_FULL;
  }

  /** A text about a chat that takes more than its model's context; `null` if it takes less. */
  get tooMany(): string | null {
    const { tokens = 0, context = null } = this.use ?? {};
    return context !== null && tokens > context
      ? t('compaction.tooMany', { used: tokens, context, count: tokens - context })
      : null;
  }

  /** True if older turns can be left out: the model remembers more than one. */
  get hasOlderTurns(): boolean {
    const { messages } = this.conversation;
    const start = messages.findLastIndex((message) => message.compaction_mark !== null) + 1;
    return messages.slice(start).filter((message) => message.role === 'user').length > 1;
  }

  /** Asks again how full the context is. */
  async refresh(): Promise<void> {
    const { id } = this.conversation;
    const asked = ++this.#asked;
    // A chat whose model is gone or whose endpoint does not answer has no figure.
    const use = id === null ? null : await this.platform.contextUse(id, []).catch(() => null);
    if (asked === this.#asked) this.use = use;
  }

  /** Drops the oldest turns from the model's view, so that the draft fits. */
  async dropOldestTurns(): Promise<void> {
    const { id } = this.conversation;
    if (id !== null && (await this.conversation.changeBranch(() => this.platform.dropOldestTurns(id, this.#question))))
      this.#changed();
  }

  /** Lets the model summarize the oldest turns, and shows it the summary in their place. */
  async summarizeOldestTurns(): Promise<void> {
    const { id } = this.conversation;
    if (id === null || this.summarizing) return;
    await this.#summary(async () => {
      const view = await this.platform.summarizeOldestTurns(id, this.#question, this.#heard);
      if (id === this.conversation.id) await this.conversation.changeBranch(async () => view);
      this.#changed();
    });
  }

  /** Continues in a new chat that carries a summary of this one; the draft moves along. */
  async forkWithSummary(title: string): Promise<void> {
    const { id } = this.conversation;
    if (id === null || this.summarizing) return;
    await this.#summary(async () => {
      const made = await this.platform.forkWithSummary(id, t('compaction.carriedTitle', { title }), this.#heard);
      if (id !== this.conversation.id) return;
      const { text, items } = this.conversation.draft;
      this.conversation.draft.clear();
      this.conversation.draft.flush();
      this.full = null;
      await this.conversation.open(made.summary.id);
      this.conversation.draft.putBack(text, items);
    });
  }

  /** Gives up the summary that is being written. */
  stop(): void {
    const { id } = this.conversation;
    if (id !== null) void attempt(this.toasts, () => this.platform.stopSummary(id));
  }

  /** Changes the summary at a compaction mark; `null` removes the mark, so that the model sees all messages again. */
  async change(message: StoredMessage, summary: string | null): Promise<void> {
    const mark = summary === null ? null : { summary: summary.trim() === '' ? null : summary.trim() };
    if (await this.conversation.changeBranch(() => this.platform.setCompactionMark(message.id, mark))) this.#changed();
  }

  readonly #heard = (progress: SummaryProgress): void => void (this.progress = progress);

  get #question(): Content[] {
    const { draft } = this.conversation;
    return [...draft.attachments, ...words(draft.text)];
  }

  #changed(): void {
    this.full = null;
    void this.refresh();
  }

  async #summary(make: () => Promise<void>): Promise<void> {
    this.summarizing = true;
    this.progress = null;
    try {
      await make();
    } catch (reason) {
      if (asHostError(reason).code !== 'stopped') this.toasts.report(reason);
    } finally {
      this.summarizing = false;
    }
  }
}
