/** The answers of any chat that are being written, by this process or another. */

import { SvelteMap } from 'svelte/reactivity';

import type { StoredMessage } from '../../bindings/StoredMessage';
import type { Platform } from '../../host';
import { LiveAnswer, type FollowOutcome, type RequestFrame } from './liveAnswer.svelte';

export class LiveAnswers {
  readonly #answers = new SvelteMap<string, LiveAnswer>();
  /** Answers that could not be followed; they are read again instead. */
  readonly #unfollowable = new Set<string>();

  constructor(
    private readonly platform: Platform,
    private readonly requestFrame: RequestFrame,
    private readonly ended: (answer: LiveAnswer, outcome: FollowOutcome) => void,
  ) {}

  /** The answer of this message. */
  get(message: string): LiveAnswer | undefined {
    return this.#answers.get(message);
  }

  /** The answers of a chat, on whichever branch. */
  of(chat: string | null): LiveAnswer[] {
    return [...this.#answers.values()].filter(({ message }) => message.chat === chat);
  }

  /** True if an answer of this chat is being written. */
  isRunning(chat: string): boolean {
    return this.of(chat).length > 0;
  }

  /** Lets an answer be followed again that could not be. */
  retry(message: string): void {
    this.#unfollowable.delete(message);
  }

  /** Follows an answer that is being written. */
  follow(message: StoredMessage, continuing: boolean): void {
    const { id, state } = message;
    if (state !== 'streaming' || this.#answers.has(id) || this.#unfollowable.has(id)) return;
    const ended = (outcome: FollowOutcome): void => {
      this.#answers.delete(id);
      if (outcome.kind === 'lost') this.#unfollowable.add(id);
      this.ended(answer, outcome);
    };
    const answer: LiveAnswer = new LiveAnswer(message, this.platform, this.requestFrame, ended, continuing);
    this.#answers.set(id, answer);
    void answer.follow();
  }
}
