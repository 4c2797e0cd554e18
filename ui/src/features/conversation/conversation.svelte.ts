/** The open chat: its branch, its draft, its settings and the answers that are being written. */

import { createContext } from 'svelte';

import type { ChatSettings } from '../../bindings/ChatSettings';
import type { ChatSummary } from '../../bindings/ChatSummary';
import type { ChatView } from '../../bindings/ChatView';
import type { Position } from '../../bindings/Position';
import type { ScrollPlace } from '../../bindings/ScrollPlace';
import type { Content } from '../../bindings/Content';
import { chatTitle } from '../../format/format';
import type { StoredMessage } from '../../bindings/StoredMessage';
import { attachmentsOf, textOf, words } from '../../shared/messageParts';
import { t } from '../../locales';
import { errorText } from '../../locales/host';
import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import { asHostError, type HostError, type Platform } from '../../host/types';
import type { FollowOutcome, LiveAnswer, RequestFrame } from './liveAnswer.svelte';
import { LiveAnswers } from './liveAnswers.svelte';
import { Branches } from './branches.svelte';
import type { Draft } from './draft.svelte';
import { Drafts } from './drafts.svelte';
import { HistoryPager } from './historyPager.svelte';
import { endOf, goesOn, withTurn } from '../../shared/turns';
import { contentOf, QuestionQueue, type QueuedQuestion } from './questionQueue.svelte';
import { SerializedWrites } from './serializedWrites';
import { RevisionTracker } from './revisionTracker';
import type { LocalPrefs } from '../../shared/localPrefs';
import { Compaction } from './compaction.svelte';
import { ReadEverything } from './readEverything.svelte';
import { SideBySide } from './sideBySide.svelte';
import { Temporary } from './temporary.svelte';
import { attempt, type Reporter } from '../../design/toasts.svelte';
import type { Undo } from '../../stores/undo.svelte';

export class Conversation {
  /** `null`: a new chat, which is created with its first question. */
  id = $state<string | null>(null);
  messages = $state.raw<readonly StoredMessage[]>([]);
  settings = $state.raw<ChatSettings>(DEFAULT_CHAT_SETTINGS);
  /** The unsent question. */
  draft: Draft;
  /** True while a question is on its way to the host, or waits for its images to be read. */
  sending = $state(false);
  /** The announcement for a screen reader: the answer that has just ended. */
  announcement = $state('');
  /** A counter of requests to scroll to the end: a chat was opened, a question was sent. */
  scrollToEndRequests = $state(0);
  /** The stored scroll position of the last opened chat; `null`: its end. */
  scrollPlace = $state.raw<ScrollPlace | null>(null);
  /** Edits of the chat's tree. */
  readonly branches: Branches;
  /** The compaction of the chat's context. */
  readonly compaction: Compaction;
  /** The temporary chat. */
  readonly temporary: Temporary;
  /** Reading all documents for a question. */
  readonly everything: ReadEverything;
  /** Two answers to one question, side by side. */
  readonly two: SideBySide;
  /** Loads the rest of a long chat after its end is shown. */
  readonly pager: HistoryPager;
  /** Answers of any chat that are being written, by this process or another, by their message. */
  readonly live: LiveAnswers;
  /** True while an answer of this chat is being written, when nothing else can start. */
  readonly busy = $derived.by(() => this.running !== null);
  readonly #queue = new QuestionQueue();
  /** The project of a new chat that does not exist yet. */
  project = $state<string | null>(null);
  /** The settings that a new chat starts with. */
  #defaults = DEFAULT_CHAT_SETTINGS;
  #opening = 0;
  readonly #drafts: Drafts;
  #cancelSend = false;
  readonly #shown = new RevisionTracker();
  readonly #writes: SerializedWrites;
  /** The open chat as the list of chats had it last. */
  #listed: ChatSummary | null = null;

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Reporter,
    undo: Undo,
    requestFrame: RequestFrame,
    private readonly localPrefs: LocalPrefs,
  ) {
    this.#drafts = new Drafts(platform, (chat, content) => void this.#storeDraft(chat, content));
    this.#writes = new SerializedWrites(platform);
    this.draft = $state.raw(this.#drafts.begin(null, []));
    this.branches = new Branches(platform, toasts, undo, this);
    this.compaction = new Compaction(platform, toasts, this);
    this.temporary = new Temporary(platform, toasts, this);
    this.everything = new ReadEverything(platform, toasts, this);
    this.two = new SideBySide(this);
    this.live = new LiveAnswers(platform, requestFrame, (answer, outcome) => this.#ended(answer, outcome));
    this.pager = new HistoryPager(platform, toasts, requestFrame, this);
  }

  /** The answer of this chat that is being written, on whichever branch. */
  get running(): LiveAnswer | null {
    return this.live.of(this.id)[0] ?? null;
  }

  /** The last answer of the branch. */
  get lastAnswer(): StoredMessage | null {
    return this.messages.findLast((message) => message.role === 'assistant') ?? null;
  }

  /** Opens the temporary chat, or else the last open one. */
  async reopen(): Promise<void> {
    const id = this.localPrefs.openChat;
    const opening = ++this.#opening;
    if (await this.temporary.reopen()) return;
    // It is no error at the start if the chat was deleted since.
    const view = id ? await this.platform.chat(id).catch(() => null) : null;
    if (opening !== this.#opening) return;
    if (view) this.enter(view);
    else this.openNew();
  }

  async open(id: string): Promise<void> {
    if (id === this.id) return;
    this.flushDraft();
    const opening = ++this.#opening;
    await attempt(this.toasts, async () => {
      const view = await this.platform.chat(id);
      if (opening === this.#opening) this.enter(view);
    });
  }

  /** Begins a new chat, in this project. */
  openNew(project: string | null = null): void {
    this.flushDraft();
    this.project = project;
    this.#opening += 1;
    [this.id, this.messages, this.settings] = [null, [], this.#defaults];
    this.draft = this.#drafts.open(null, this.localPrefs.newDraft);
    this.localPrefs.openChat = '';
    this.#leave();
    // The model that was used last may be another one by now.
    void this.readDefaults();
  }

  /** Reads the settings that new chats start with. An open and untouched new chat takes them as well. */
  async readDefaults(): Promise<void> {
    const defaults = await this.platform.newChatSettings().catch((reason: unknown) => this.toasts.report(reason));
    if (!defaults) return;
    if (this.id === null && this.settings === this.#defaults) this.settings = defaults;
    this.#defaults = defaults;
  }

  /** Clears the state of the chat that was open. */
  #leave(): void {
    this.temporary.leave();
    this.pager.leave();
    this.branches.editing = null;
    this.two.leave();
    [this.compaction.full, this.compaction.use] = [null, null];
  }

  /** Shows this chat instead of the open one. */
  enter(view: ChatView): void {
    this.#leave();
    const { id } = view.summary;
    this.id = id;
    this.temporary.open = this.temporary.has(id);
    this.draft = this.#drafts.open(id, this.#queue.withoutQueued(id, view.draft));
    this.messages = [];
    this.localPrefs.openChat = this.temporary.open ? '' : id;
    this.scrollPlace = view.scroll_place;
    this.#show(view);
    if (view.scroll_place === null) this.scrollToEndRequests += 1;
  }

  /** Goes on with the open chat, which was temporary, as with any other. */
  becomeKept(id: string): void {
    this.localPrefs.openChat = id;
    void this.#storeDraft(id, [...this.draft.attachments, ...words(this.draft.text)]);
  }

  /** Reads the open chat again if the list reports a newer revision: another window or process wrote to it. */
  async sync(summary: ChatSummary | null): Promise<void> {
    if (summary === null && this.id !== null && this.#listed?.id === this.id) {
      // A question on its way comes back first.
      if (!this.sending) this.#leaveDeleted(this.#listed);
      return;
    }
    this.#listed = summary;
    if (summary?.id === this.id && summary.unread && document.visibilityState !== 'hidden')
      void this.platform.markRead(summary.id).catch(() => {});
    if (summary === null || summary.id !== this.id || this.sending || this.running) return;
    if (!this.#shown.lacks(summary)) return;
    this.#shown.show(summary);
    await this.reload();
  }

  /** Leaves the open chat, which another window or program has deleted. Its draft moves to a new chat. */
  #leaveDeleted({ id, title }: ChatSummary): void {
    const { draft } = this;
    const waiting = this.#queue.take(id);
    if (waiting) draft.putBack(waiting.text, waiting.items);
    const kept = !draft.empty;
    if (kept) this.#drafts.moveToNew(draft, this.localPrefs.newDraft);
    else draft.clear();
    this.openNew();
    this.toasts.say(t(kept ? 'chat.deletedElsewhereDraft' : 'chat.deletedElsewhere', { title: chatTitle(title) }));
  }

  /** Reads the open chat again. */
  async reload(): Promise<void> {
    const id = this.id;
    if (id === null) return;
    try {
      this.#show(await this.pager.connected(await this.platform.chat(id)));
    } catch (reason) {
      if (id === this.id) this.toasts.report(reason);
    }
  }

  /** Sends a question with the draft's attachments, as soon as they are read. On failure both return to the draft. */
  async send(text: string): Promise<void> {
    const draft = this.draft;
    const busy = this.sending || this.running !== null || this.everything.of(this.id) !== null;
    if (busy || (text.trim() === '' && draft.items.length === 0)) return;
    this.sending = true;
    this.#cancelSend = false;
    let { settings } = this;
    let chat = this.#drafts.chatOf(draft);
    const position = endOf(this.messages);
    try {
      await draft.settled();
      if (this.#cancelSend || draft.broken) return;
      const content = [...draft.attachments, ...words(text.trim())];
      if (content.length === 0) return;
      if (this.draft === draft) settings = this.settings;
      if (chat !== null) this.#drafts.keep(chat, draft);
      const { items } = draft;
      draft.clear();
      try {
        if (chat === null) {
          const { project } = this;
          chat = (await this.platform.createChat(settings === this.#defaults ? null : settings)).summary.id;
          if (project !== null) await this.platform.moveChat(chat, project);
          this.localPrefs.newDraft = [];
          this.#drafts.give(draft, chat);
          if (this.draft === draft) {
            this.id = chat;
            this.localPrefs.openChat = chat;
          }
        }
        await this.#ask(chat, content, position, this.two.take(settings));
        void this.#storeDraft(chat, [...draft.attachments, ...words(draft.text)]);
      } catch (reason) {
        this.#refused(chat, reason);
        // Without a chat it is the new one's draft, which may be another one by now.
        const target = chat === null && this.id === null ? this.draft : draft;
        target.putBack(text, items);
        if (this.draft !== target) target.flush();
      }
    } finally {
      this.sending = false;
      if (chat !== null) this.#drafts.release(chat, draft);
    }
  }

  /** Sends a question of a chat, which may not be the open one, for one answer or two. */
  async #ask(
    chat: string,
    content: Content[],
    position: Position,
    two: [ChatSettings, ChatSettings] | null = null,
  ): Promise<void> {
    await this.#writes.landed();
    await this.temporary.settled();
    const turn = two
      ? await this.platform.sendToTwo(chat, content, position, two)
      : await this.everything.send(chat, content, position);
    const [answer, beside] = 'answers' in turn ? turn.answers : [turn.answer];
    this.follow(answer);
    // From its first question on a chat keeps its model.
    if (this.id === chat && this.settings.model === null) this.settings = { ...this.settings, model: answer.model };
    if (this.id === chat && 'answer' in turn) this.#shown.added(turn, this.messages);
    if (this.id === chat) this.#showTurn(turn.question, answer);
    if (beside && this.id === chat) this.two.show(answer, beside);
    else if (beside) this.follow(beside);
  }

  /** The question of the open chat that waits for the answer before it. */
  get queued(): QueuedQuestion | null {
    return this.#queue.of(this.id);
  }

  /** Lets the draft's question wait for the answer that runs. */
  async enqueue(): Promise<void> {
    const { draft } = this;
    const chat = this.#drafts.chatOf(draft);
    if (chat === null || draft.empty || this.sending) return;
    await draft.settled();
    if (draft.broken || draft.empty) return;
    if (!this.live.isRunning(chat)) return this.draft === draft ? this.send(draft.text) : undefined;
    this.#queue.add(chat, { text: draft.text, items: draft.items });
    draft.clear();
    void this.#storeDraft(chat, []);
  }

  /** Takes the question that waits back: it is not asked. */
  unqueue(): QueuedQuestion | null {
    const queued = this.id === null ? null : this.#queue.take(this.id);
    if (queued) void this.#storeDraft(this.id ?? '', [...this.draft.attachments, ...words(this.draft.text)]);
    return queued;
  }

  /** Lets a question wait that was taken back; if nothing runs any more, it is in the draft again. */
  requeue(chat: string, queued: QueuedQuestion): void {
    if (this.live.isRunning(chat)) this.#queue.add(chat, queued);
    else this.#giveBack(chat, queued);
  }

  /** Sends the queued question of an answer that has ended; after one that was stopped or failed, the user decides. */
  async #askQueued(chat: string, ended: StoredMessage | null): Promise<void> {
    // Of two answers the later one is waited for, and after calls of tools the answer to their results.
    if (this.live.isRunning(chat) || (ended && goesOn(ended))) return;
    const kept = this.#queue.kept(chat);
    const queued = this.#queue.take(chat);
    if (!queued) return;
    if (ended?.state !== 'complete') return this.#giveBack(chat, queued);
    try {
      // Text typed meanwhile is a draft that asking clears.
      const open = this.id === chat ? this.draft : null;
      const draft = open ? null : (await this.platform.chat(chat)).draft.slice(kept.length);
      await this.#ask(chat, contentOf(queued), this.id === chat ? endOf(this.messages) : 'end');
      const rest = open && this.draft === open ? [...open.attachments, ...words(open.text)] : draft;
      if (rest && rest.length > 0) await this.#storeDraft(chat, [...rest]);
    } catch (reason) {
      this.toasts.report(reason);
      this.#giveBack(chat, queued);
    }
  }

  /** A chat that is not open has it stored already, at the beginning of its draft. */
  #giveBack(chat: string, { text, items }: QueuedQuestion): void {
    if (this.id === chat) this.draft.putBack(text, items);
  }

  /** Shows a question that was stored, with all that it comes after. */
  #showTurn(question: StoredMessage, answer: StoredMessage): void {
    this.messages = withTurn(this.messages, question, answer);
    this.compaction.full = null;
    this.scrollToEndRequests += 1;
  }

  /** A question was refused; its text is kept. */
  #refused(chat: string | null, reason: unknown): void {
    const error = asHostError(reason);
    if (error.code === 'context_full' && chat !== null && chat === this.id) this.compaction.full = error;
    else this.toasts.report(reason);
    // The message before it may be gone.
    if (error.code === 'not_found') void this.reload();
  }

  /** Sends an edited question; the original keeps its branch. Returns true on success. */
  async sendInstead(before: StoredMessage, text: string): Promise<boolean> {
    if (this.running || this.sending || text.trim() === '') return false;
    this.sending = true;
    try {
      const content = [...attachmentsOf(before.parts), ...words(text.trim())];
      await this.#ask(before.chat, content, before.parent === null ? 'beginning' : { after: before.parent });
      return true;
    } catch (reason) {
      this.#refused(before.chat, reason);
      return false;
    } finally {
      this.sending = false;
    }
  }

  /** Does not send the question that waits for its images; it stays in the draft. */
  readonly cancelSend = (): void => void (this.#cancelSend = true);

  /** Ends this answer, or all of the chat. */
  async stop(message: string | null = null): Promise<void> {
    const answers = this.live.of(this.id).filter((answer) => message === null || answer.message.id === message);
    await Promise.all(answers.map((answer) => attempt(this.toasts, () => answer.stop())));
  }

  /** Ends the thought of an answer that is being written, here or in another process. */
  async answerNow(message: string): Promise<void> {
    await attempt(this.toasts, () => this.live.get(message)?.answerNow() ?? this.platform.answerNow(message));
  }

  /** Continues an answer that ended early, or stops one that is being written for that; false if it was refused. */
  async continueAnswer(message: string): Promise<boolean> {
    const live = this.live.get(message);
    if (live) return attempt(this.toasts, () => live.stop(true));
    this.live.retry(message);
    return this.changeBranch(() => this.platform.continueAnswer(message), message);
  }

  /** Continues an answer that was stopped for that; if it does not go on, the question that waits is next. */
  async #goOn({ continues }: LiveAnswer, message: StoredMessage): Promise<void> {
    if (continues && message.continuable && (await this.continueAnswer(message.id))) return;
    await this.#askQueued(message.chat, message);
  }

  /** Starts another answer to the same question, with other settings if given. */
  async regenerate(message: string, change: Partial<ChatSettings> = {}): Promise<void> {
    if (this.running) return;
    const settings = Object.keys(change).length > 0 ? { ...this.settings, ...change } : null;
    await this.changeBranch(() => this.platform.regenerate(message, settings));
    this.scrollToEndRequests += 1;
  }

  /** Shows the branch that this message is on. */
  async showBranch(message: string): Promise<void> {
    await this.changeBranch(() => this.platform.showBranch(message));
  }

  /** Stores the draft now, before the chat or the window is left. Images in progress are added later. */
  flushDraft(): void {
    const { draft } = this;
    this.#drafts.leave(draft, () => this.draft === draft);
  }

  async #storeDraft(chat: string | null, draft: Content[]): Promise<void> {
    if (chat === null) return void (this.localPrefs.newDraft = draft);
    if (this.temporary.has(chat)) return;
    await attempt(this.toasts, () => this.platform.setDraft(chat, [...this.#queue.kept(chat), ...draft]));
  }

  /** Changes some settings of the open chat, or of the new one. */
  async changeSettings(change: Partial<ChatSettings>): Promise<void> {
    const refused = await this.trySettings(change);
    if (refused) this.toasts.report(refused);
  }

  /** Sets some of it; why that was refused, then nothing is changed. */
  async trySettings(change: Partial<ChatSettings>): Promise<HostError | null> {
    const { id } = this;
    const refused = await this.#writes.change(this, change);
    if (!refused && id !== null && id === this.id) void this.compaction.refresh(); // The count was for the old settings.
    return refused;
  }

  /** Shows the result of a call that changes the chat. Returns true if it succeeded. */
  async changeBranch(call: () => Promise<ChatView>, continuing: string | null = null): Promise<boolean> {
    return attempt(this.toasts, async () => {
      await this.#writes.landed();
      this.#show(await this.pager.connected(await call()), continuing);
    });
  }

  #show(view: ChatView, continuing: string | null = null): void {
    // Whichever process writes an answer, the host lets it be followed.
    for (const message of [...view.messages, ...view.beside]) this.follow(message, message.id === continuing);
    // The chat may have been left meanwhile.
    if (view.summary.id !== this.id) return;
    if (!this.#writes.pending(this.id)) this.settings = view.settings;
    this.#shown.show(view.summary);
    this.messages = this.pager.show(view.messages);
    this.two.look(view);
    const due = this.running ? null : this.#queue.due(this.id, this.messages);
    if (due) void this.#askQueued(this.id, due.after);
  }

  /** Follows an answer that is being written. */
  follow(message: StoredMessage, continuing = false): void {
    this.live.follow(message, continuing);
  }

  #ended(answer: LiveAnswer, outcome: FollowOutcome): void {
    if (outcome.kind === 'lost') {
      if (answer.message.chat === this.id) void this.reload();
      void this.#askQueued(answer.message.chat, null);
      this.toasts.report(outcome.reason);
      return;
    }
    const { message } = outcome;
    this.two.ended(message);
    void this.#goOn(answer, message);
    if (message.chat !== this.id) return;
    this.#shown.ended(message);
    if (message.error?.code === 'context_full' && message.parts.length === 0)
      return void this.#takenBack(message, message.error);
    this.messages = this.messages.map((other) => (other.id === message.id ? message : other));
    this.announcement = textOf(message.parts) || (message.error ? errorText(message.error) : t('answer.empty'));
  }

  /** A question did not fit, as its model found: the host moved it back into the draft, unless it was stored. */
  async #takenBack(answer: StoredMessage, error: HostError): Promise<void> {
    await this.reload();
    if (answer.chat !== this.id) return;
    this.compaction.full = error;
    if (this.messages.some((message) => message.id === answer.id) || !this.draft.empty) return;
    const { draft } = await this.platform.chat(answer.chat);
    if (answer.chat === this.id && this.draft.empty) this.draft = this.#drafts.begin(answer.chat, draft);
  }
}

/** The open chat. */
export const [useConversation, provideConversation] = createContext<Conversation>();
