/**
 * An answer that is being written.
 *
 * Events are collected and applied once per frame. The message is built from its events alone: the parts that came with
 * the chat are dropped, because following from 0 repeats them all. Events that were already seen are dropped, and a
 * stream that breaks off is followed again from the last number, so that nothing is lost and nothing comes twice.
 */

import type { AnswerBody } from '../../bindings/AnswerBody';
import type { AnswerEvent } from '../../bindings/AnswerEvent';
import type { StoredMessage } from '../../bindings/StoredMessage';
import { appendContent } from '../../shared/messageParts';
import { t } from '../../locales';
import type { Platform } from '../../host';

/** Runs something before the next frame is drawn. */
export type RequestFrame = (run: () => void) => void;

/** The reason for waiting before the first word: the model and the prompt, or answers of others. */
export type Progress = Extract<AnswerBody, { type: 'progress' | 'waiting' }>;

/** The reason why this window stopped following an answer: its last message, or a lost connection. */
export type FollowOutcome = { kind: 'finished'; message: StoredMessage } | { kind: 'lost'; reason: unknown };

const RETRIES = 5;

export class LiveAnswer {
  /** The message as far as it has come. */
  message: StoredMessage;
  progress = $state.raw<Progress | null>(null);
  /** True after the user asked it to stop. */
  stopping = $state(false);
  /** True after the user asked it to end its thought. */
  answerNowRequested = $state(false);
  /** True if it is stopped to be continued. */
  continues = false;
  /** True while the model has produced nothing since the request to answer or to continue. */
  waiting = $state(true);

  #seen = 0;
  #queue: AnswerEvent[] = [];
  #scheduled = false;
  #ended = false;
  #retries = 0;

  constructor(
    message: StoredMessage,
    private readonly platform: Platform,
    private readonly requestFrame: RequestFrame,
    private readonly ended: (outcome: FollowOutcome) => void,
    /** True if an ended answer is continued; its first event then repeats all its content. */
    continuing = false,
  ) {
    this.message = $state.raw(continuing ? message : { ...message, parts: [], notices: [] });
  }

  /** Follows the answer until it ends. */
  async follow(): Promise<void> {
    try {
      await this.platform.attach(this.message.id, this.#seen, (event) => this.#receive(event));
    } catch (reason) {
      this.#end({ kind: 'lost', reason });
    }
  }

  /** Stops the answer, for good or to continue it; its content stays. */
  async stop(continues = false): Promise<void> {
    this.continues = continues;
    if (this.stopping) return;
    this.stopping = true;
    try {
      await this.platform.stop(this.message.id);
    } catch (reason) {
      this.stopping = false;
      this.continues = false;
      throw reason;
    }
  }

  /** Asks it to end its thought and to answer. */
  async answerNow(): Promise<void> {
    if (this.answerNowRequested) return;
    this.answerNowRequested = true;
    try {
      await this.platform.answerNow(this.message.id);
    } catch (reason) {
      this.answerNowRequested = false;
      throw reason;
    }
  }

  #receive(event: AnswerEvent): void {
    this.#queue.push(event);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.requestFrame(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    const events = this.#queue;
    this.#queue = [];
    let message = this.message;
    let progress = this.progress;
    for (const { body, seq } of events) {
      if (this.#ended) return;
      if (body.type === 'finished') {
        this.#end({ kind: 'finished', message: body.message });
        return;
      }
      if (body.type === 'detached') {
        this.#reattach();
        continue;
      }
      if (seq <= this.#seen) continue;
      this.#seen = seq;
      this.#retries = 0;
      if (body.type === 'progress' || body.type === 'waiting') {
        progress = body;
      } else {
        progress = null;
        message = applyEvent(message, body);
        // The first event repeats the content from before the continuation.
        if (body.type !== 'notice' && (body.type !== 'continued' || seq > 1)) this.waiting = false;
      }
    }
    this.message = message;
    this.progress = progress;
  }

  /** Follows the stream again, with a longer wait after each attempt that brought nothing. */
  #reattach(): void {
    if (this.#retries >= RETRIES) {
      this.#end({ kind: 'lost', reason: new Error(t('answer.lost')) });
      return;
    }
    const wait = this.#retries === 0 ? 0 : 100 * 2 ** this.#retries;
    this.#retries += 1;
    setTimeout(() => void this.follow(), wait);
  }

  #end(outcome: FollowOutcome): void {
    if (this.#ended) return;
    this.#ended = true;
    this.ended(outcome);
  }
}

/** The message with an event applied to it. */
export function applyEvent(
  message: StoredMessage,
  body: Extract<AnswerBody, { type: 'delta' | 'notice' | 'continued' }>,
): StoredMessage {
  switch (body.type) {
    case 'delta':
      return { ...message, parts: appendContent(message.parts, body.content, body.at) };
    case 'continued':
      return { ...message, parts: body.parts, notices: body.notices };
    case 'notice':
      return { ...message, notices: [...message.notices, body.notice] };
  }
}
