/** How full the open chat's context is, and what its model remembers of it. */

import type { Content } from '../../bindings/Content';
import type { ContextUse } from '../../bindings/ContextUse';
import type { StoredMessage } from '../../bindings/StoredMessage';
import { words } from '../../shared/messageParts';
import { t } from '../../locales';
import type { Platform } from '../../host';
import { asHostError, type HostError } from '../../host/types';
import type { Conversation } from './conversation.svelte';
import type { Reporter } from '../../design/toasts.svelte';

/** The share of a context from which on a person is warned. */
export const NEARLY_FULL = 0.8;

export class Compaction {
  /** The chat's use of its model's context; `null` if unknown. */
  use = $state.raw<ContextUse | null>(null);
  /** Why the last question was not taken, if it did not fit. */
  full = $state.raw<HostError | null>(null);
  /** True while a summary is being written. */
  summarising = $state(false);

  #asked = 0;

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Reporter,
    private readonly conversation: Conversation,
  ) {}

  /** How much of the context is taken, from 0 to 1. */
  get share(): number | null {
    return this.use?.context ? Math.min(1, this.use.tokens / this.use.context) : null;
  }

  get nearlyFull(): boolean {
    return (this.share ?? 0) >= NEARLY_FULL;
  }

  /** Asks again how full the context is. */
  async refresh(): Promise<void> {
    const { id } = this.conversation;
    const asked = ++this.#asked;
    // A chat whose model is gone or whose endpoint is silent has no figure.
    const use = id === null ? null : await this.platform.contextUse(id, []).catch(() => null);
    if (asked === this.#asked) this.use = use;
  }

  /** Lets the model forget the oldest turns, so that what is being written has room. */
  async forget(): Promise<void> {
    const { id } = this.conversation;
    if (id !== null && (await this.conversation.changeBranch(() => this.platform.forgetOldest(id, this.#question))))
      this.#changed();
  }

  /** Has the oldest turns summarized by the model, which then remembers the summary in their place. */
  async summarise(): Promise<void> {
    const { id } = this.conversation;
    if (id === null || this.summarising) return;
    await this.#summary(async () => {
      const view = await this.platform.summariseOldest(id, this.#question);
      if (id === this.conversation.id) await this.conversation.changeBranch(async () => view);
      this.#changed();
    });
  }

  /** Goes on in a new chat that carries a summary of this one; what is being written goes along. */
  async carryOver(title: string): Promise<void> {
    const { id } = this.conversation;
    if (id === null || this.summarising) return;
    await this.#summary(async () => {
      const made = await this.platform.carryOver(id, t('memory.carriedTitle', { title }));
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
    if (id !== null) void this.platform.stopSummary(id).catch((reason: unknown) => this.toasts.report(reason));
  }

  /** Changes what the model is told in place of what it does not remember; `null` lets it remember everything again. */
  async change(message: StoredMessage, summary: string | null): Promise<void> {
    const cut = summary === null ? null : { summary: summary.trim() === '' ? null : summary.trim() };
    if (await this.conversation.changeBranch(() => this.platform.setMemoryCut(message.id, cut))) this.#changed();
  }

  get #question(): Content[] {
    const { draft } = this.conversation;
    return [...draft.attachments, ...words(draft.text)];
  }

  #changed(): void {
    this.full = null;
    void this.refresh();
  }

  async #summary(make: () => Promise<void>): Promise<void> {
    this.summarising = true;
    try {
      await make();
    } catch (reason) {
      if (asHostError(reason).code !== 'stopped') this.toasts.report(reason);
    } finally {
      this.summarising = false;
    }
  }
}
