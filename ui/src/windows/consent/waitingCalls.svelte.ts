/** The calls that wait for a person, as this window shows them. */

import type { CallApproval } from '../../bindings/CallApproval';
import type { WaitingCall } from '../../bindings/WaitingCall';
import { asHostError, type HostError, type Platform, type Unsubscribe } from '../../host';

export class WaitingCalls {
  /** Oldest first; `null` until they were listed for the first time. */
  list = $state.raw<readonly WaitingCall[] | null>(null);
  /** The reason why they could not be listed. */
  failure = $state.raw<HostError | null>(null);
  /** The reason why the last decision was refused; `gone` if its call does not wait any more as it was shown. */
  refusal = $state.raw<{ error: HostError; gone: boolean } | null>(null);
  /** True while a decision is on its way. */
  deciding = $state(false);
  /** The number of the newest request for the list: an older one that ends later is not shown. */
  #asked = 0;

  constructor(private readonly platform: Platform) {}

  /** Lists the calls, and again after every change. */
  async open(): Promise<Unsubscribe> {
    const unsubscribe = await this.platform.onWaitingCallsChanged(() => void this.refresh());
    await this.refresh();
    return unsubscribe;
  }

  async refresh(): Promise<void> {
    const asked = (this.#asked += 1);
    try {
      const list = await this.platform.waitingCalls();
      if (asked !== this.#asked) return;
      [this.list, this.failure] = [list, null];
    } catch (reason) {
      if (asked === this.#asked) this.failure = asHostError(reason);
    }
  }

  /** Consents to a call. */
  approve(approval: CallApproval): Promise<void> {
    return this.#decide(approval, () => this.platform.approveCall(approval));
  }

  /** Refuses a call, with a word for the model. */
  refuse(shown: WaitingCall, word: string): Promise<void> {
    const { answer, call, hash } = shown;
    return this.#decide(shown, () => this.platform.refuseCall(answer, call, hash, word));
  }

  /** Makes one decision at a time. The calls are listed again after it, also if it was refused. */
  async #decide(shown: Pick<WaitingCall, 'answer' | 'call' | 'hash'>, call: () => Promise<void>): Promise<void> {
    if (this.deciding) return;
    this.deciding = true;
    this.refusal = null;
    const error = await call().then(
      () => null,
      (reason: unknown) => asHostError(reason),
    );
    await this.refresh();
    const waits = this.list?.some(
      ({ answer, call, hash }) => answer === shown.answer && call === shown.call && hash === shown.hash,
    );
    if (error) this.refusal = { error, gone: !waits };
    this.deciding = false;
  }
}
