/** The open chat: its branch, its draft, its settings and the answers that are being written. */

import { SvelteMap } from 'svelte/reactivity';

import type { ChatSettings } from '../bindings/ChatSettings';
import type { ChatSummary } from '../bindings/ChatSummary';
import type { ChatView } from '../bindings/ChatView';
import type { Content } from '../bindings/Content';
import type { Settings } from '../bindings/Settings';
import type { StoredMessage } from '../bindings/StoredMessage';
import { textOf, words } from '../lib/parts';
import { t } from '../messages';
import { errorText } from '../messages/host';
import { DEFAULT_CHAT_SETTINGS } from '../platform/types';
import type { Platform } from '../platform';
export type { RequestFrame } from './answer.svelte';
import { LiveAnswer, type FollowOutcome, type RequestFrame } from './answer.svelte';
import { Draft } from './draft.svelte';
import type { Reporter } from './toasts.svelte';

/** What this window remembers between two starts: which chat was open, and the draft of a new chat. */
export interface LocalPrefs {
  /** Empty: a new one. */
  openChat: string;
  newDraft: readonly Content[];
}

export class Conversation {
  /** `null`: a new chat, which is made when its first question is sent. */
  id = $state<string | null>(null);
  messages = $state.raw<readonly StoredMessage[]>([]);
  settings = $state.raw<ChatSettings>(DEFAULT_CHAT_SETTINGS);
  /** What is being written and not sent. */
  draft: Draft;
  /** Whether a question is on its way to the host, or waits for its pictures to be read. */
  sending = $state(false);
  /** What a screen reader announces: the answer that has just ended. */
  announcement = $state('');
  /** Grows when the view should scroll to its end: a chat was opened, a question was asked. */
  scrollToEnd = $state(0);
  /** Answers of any chat that are being written, by this process or another, by their message. */
  readonly live = new SvelteMap<string, LiveAnswer>();

  /** Answers that could not be followed; they are read again instead. */
  readonly #unfollowable = new Set<string>();
  /** What a new chat begins with. */
  #defaults = DEFAULT_CHAT_SETTINGS;
  #opening = 0;
  /** Drafts that were left while pictures were being read or a question was being sent, by their chat. */
  readonly #unfinished = new Map<string | null, Draft>();
  /** Which chat a draft belongs to; it may be made while its first question is being sent. */
  readonly #chatOf = new WeakMap<Draft, string>();
  #holdBack = false;
  /** What the list of chats said of the chat that was read last, as far as its messages are known here. */
  #seen: ChatSummary | null = null;

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Reporter,
    private readonly requestFrame: RequestFrame,
    private readonly localPrefs: LocalPrefs,
  ) {
    this.draft = $state.raw(this.#draftOf(null, []));
  }

  /** The answer of this chat that is being written, on whichever branch. */
  get running(): LiveAnswer | null {
    for (const answer of this.live.values()) if (answer.message.chat === this.id) return answer;
    return null;
  }

  /** Whether this chat has an answer that is being written here. */
  isRunning(chat: string): boolean {
    for (const answer of this.live.values()) if (answer.message.chat === chat) return true;
    return false;
  }

  /** The last answer of the branch. */
  get lastAnswer(): StoredMessage | null {
    return this.messages.findLast((message) => message.role === 'assistant') ?? null;
  }

  /** Opens what was open last. */
  async reopen(): Promise<void> {
    const id = this.localPrefs.openChat;
    const opening = ++this.#opening;
    // It is no error at the start if the chat was deleted since.
    const view = id ? await this.platform.chat(id).catch(() => null) : null;
    if (opening !== this.#opening) return;
    if (view) this.#enter(view);
    else this.openNew();
  }

  async open(id: string): Promise<void> {
    if (id === this.id) return;
    this.flushDraft();
    const opening = ++this.#opening;
    try {
      const view = await this.platform.chat(id);
      if (opening === this.#opening) this.#enter(view);
    } catch (reason) {
      this.toasts.report(reason);
    }
  }

  openNew(): void {
    this.flushDraft();
    this.#opening += 1;
    this.id = null;
    this.messages = [];
    this.settings = this.#defaults;
    this.draft = this.#unfinished.get(null) ?? this.#draftOf(null, this.localPrefs.newDraft);
    this.localPrefs.openChat = '';
  }

  /** Lets new chats begin as it is set, the one that is open and untouched included. */
  setDefaults({ thinking, thinking_budget }: Settings): void {
    const untouched = this.id === null && this.settings === this.#defaults;
    this.#defaults = { ...DEFAULT_CHAT_SETTINGS, thinking, thinking_budget };
    if (untouched) this.settings = this.#defaults;
  }

  #enter(view: ChatView): void {
    this.id = view.summary.id;
    this.draft = this.#unfinished.get(view.summary.id) ?? this.#draftOf(view.summary.id, view.draft);
    this.messages = [];
    this.localPrefs.openChat = view.summary.id;
    this.#show(view);
    this.scrollToEnd += 1;
  }

  /** Reads the open chat again if its entry in the list of chats says that another process wrote to it. */
  async sync(summary: ChatSummary | null): Promise<void> {
    const seen = this.#seen;
    if (summary === null || summary.id !== this.id || this.sending || this.running) return;
    if (summary.id === seen?.id && summary.updated_at === seen.updated_at && summary.running === seen.running) return;
    this.#seen = summary;
    await this.reload();
  }

  /** Reads the open chat again. */
  async reload(): Promise<void> {
    const id = this.id;
    if (id === null) return;
    try {
      const view = await this.platform.chat(id);
      if (id === this.id) this.#show(view);
    } catch (reason) {
      if (id === this.id) this.toasts.report(reason);
    }
  }

  /**
   * Sends a question, with what is attached to the draft, as soon as that was read. Both come back to the draft if that fails, and stay
   * there if a picture cannot be read.
   */
  async send(text: string): Promise<void> {
    const draft = this.draft;
    if ((text.trim() === '' && draft.items.length === 0) || this.sending || this.running) return;
    this.sending = true;
    this.#holdBack = false;
    let { settings } = this;
    let chat = this.#chatOf.get(draft) ?? null;
    try {
      await draft.settled();
      if (this.#holdBack || draft.broken) return;
      const content = [...draft.attachments, ...words(text.trim())];
      if (content.length === 0) return;
      if (this.draft === draft) settings = this.settings;
      if (chat !== null) this.#unfinished.set(chat, draft);
      const { items } = draft;
      draft.clear();
      try {
        if (chat === null) {
          chat = (await this.platform.createChat(settings)).summary.id;
          this.localPrefs.newDraft = [];
          this.#chatOf.set(draft, chat);
          if (this.draft === draft) {
            this.id = chat;
            this.localPrefs.openChat = chat;
          }
        }
        const turn = await this.platform.send(chat, content, 'end');
        void this.#storeDraft(chat, [...draft.attachments, ...words(draft.text)]);
        this.#follow(turn.answer);
        if (this.id === chat) {
          // The chat may have been read again meanwhile.
          const known = new Set(this.messages.map((message) => message.id));
          this.messages = [...this.messages, ...[turn.question, turn.answer].filter((message) => !known.has(message.id))];
          this.scrollToEnd += 1;
        }
      } catch (reason) {
        this.toasts.report(reason);
        // Without a chat it is a draft of the new one, of which another may have been begun meanwhile.
        const target = chat === null && this.id === null ? this.draft : draft;
        target.putBack(text, items);
        if (this.draft !== target) target.flush();
      }
    } finally {
      this.sending = false;
      if (chat !== null && this.#unfinished.get(chat) === draft) this.#unfinished.delete(chat);
    }
  }

  /** Does not send the question that waits for its pictures; it stays in the draft. */
  holdBack(): void {
    this.#holdBack = true;
  }

  async stop(): Promise<void> {
    await this.running?.stop().catch((reason: unknown) => this.toasts.report(reason));
  }

  /** Ends the thought of an answer that is being written, here or in another process. */
  async answerNow(message: string): Promise<void> {
    const asked = this.live.get(message)?.answerNow() ?? this.platform.answerNow(message);
    await asked.catch((reason: unknown) => this.toasts.report(reason));
  }

  /** Continues an answer that ended early. */
  async continueAnswer(message: string): Promise<void> {
    if (this.running) return;
    this.#unfollowable.delete(message);
    await this.#changeBranch(() => this.platform.continueAnswer(message), message);
  }

  /** Starts another answer beside this one. */
  async regenerate(message: string): Promise<void> {
    if (this.running) return;
    await this.#changeBranch(() => this.platform.regenerate(message));
    this.scrollToEnd += 1;
  }

  /** Shows the branch that this message is on. */
  async showBranch(message: string): Promise<void> {
    await this.#changeBranch(() => this.platform.showBranch(message));
  }

  /** Stores the draft now, before the chat or the window is left. Pictures that are still being read come to it later. */
  flushDraft(): void {
    const { draft } = this;
    draft.flush();
    if (!draft.reading) return;
    const chat = this.#chatOf.get(draft) ?? null;
    this.#unfinished.set(chat, draft);
    void draft.settled().then(() => {
      if (this.draft !== draft) draft.flush();
      if (this.#unfinished.get(chat) === draft) this.#unfinished.delete(chat);
    });
  }

  #draftOf(chat: string | null, parts: readonly Content[]): Draft {
    const draft: Draft = new Draft(this.platform, parts, (content) => {
      const owner = this.#chatOf.get(draft);
      if (owner === undefined) this.localPrefs.newDraft = content;
      else void this.#storeDraft(owner, content);
    });
    if (chat !== null) this.#chatOf.set(draft, chat);
    return draft;
  }

  async #storeDraft(chat: string, draft: Content[]): Promise<void> {
    try {
      await this.platform.setDraft(chat, draft);
    } catch (reason) {
      this.toasts.report(reason);
    }
  }

  /** Sets some of what the open chat, or the new one, is set to. */
  async changeSettings(change: Partial<ChatSettings>): Promise<void> {
    const before = this.settings;
    this.settings = { ...before, ...change };
    if (this.id === null) return;
    try {
      await this.platform.setChatSettings(this.id, this.settings);
    } catch (reason) {
      this.settings = before;
      this.toasts.report(reason);
    }
  }

  async #changeBranch(call: () => Promise<ChatView>, continuing: string | null = null): Promise<void> {
    const id = this.id;
    try {
      const view = await call();
      if (id === this.id) this.#show(view, continuing);
    } catch (reason) {
      this.toasts.report(reason);
    }
  }

  #show(view: ChatView, continuing: string | null = null): void {
    this.settings = view.settings;
    this.#seen = view.summary;
    this.messages = view.messages;
    // Whichever process writes an answer, the host lets it be followed.
    for (const message of view.messages) this.#follow(message, message.id === continuing);
  }

  #follow(message: StoredMessage, continuing = false): void {
    if (message.state !== 'streaming' || this.live.has(message.id) || this.#unfollowable.has(message.id)) return;
    const answer = new LiveAnswer(message, this.platform, this.requestFrame, (outcome) => this.#ended(message.id, outcome), continuing);
    this.live.set(message.id, answer);
    void answer.follow();
  }

  #ended(id: string, outcome: FollowOutcome): void {
    const answer = this.live.get(id);
    this.live.delete(id);
    if (outcome.kind === 'lost') {
      this.#unfollowable.add(id);
      if (answer?.message.chat === this.id) void this.reload();
      this.toasts.report(outcome.reason);
      return;
    }
    const { message } = outcome;
    if (message.chat !== this.id) return;
    this.messages = this.messages.map((other) => (other.id === id ? message : other));
    this.announcement = textOf(message.parts) || (message.error ? errorText(message.error) : t('answer.empty'));
  }
}
