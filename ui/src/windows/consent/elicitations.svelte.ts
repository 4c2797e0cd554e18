/** The requests of servers that wait for a person, as this window shows them. */

import type { FieldProblem } from '../../bindings/FieldProblem';
import type { WaitingElicitation } from '../../bindings/WaitingElicitation';
import { asHostError, type HostError, type Platform, type Unsubscribe } from '../../host';

export class Elicitations {
  /** Oldest first; `null` until they were listed for the first time. */
  list = $state.raw<readonly WaitingElicitation[] | null>(null);
  /** The reason why they could not be listed. */
  failure = $state.raw<HostError | null>(null);
  /** The reason why the last reply was refused; `gone` if its request does not wait any more. */
  refusal = $state.raw<{ error: HostError; gone: boolean } | null>(null);
  /** The faults in the values of the form. */
  problems = $state.raw<readonly FieldProblem[]>([]);
  /** True while a reply is on its way. */
  replying = $state(false);
  /** The number of the newest request for the list: an older one that ends later is not shown. */
  #asked = 0;

  constructor(private readonly platform: Platform) {}

  /** Lists them, and again after every change. */
  async open(): Promise<Unsubscribe> {
    const unsubscribe = await this.platform.onWaitingCallsChanged(() => void this.refresh());
    await this.refresh();
    return unsubscribe;
  }

  async refresh(): Promise<void> {
    const asked = (this.#asked += 1);
    try {
      const list = await this.platform.waitingElicitations();
      if (asked === this.#asked) [this.list, this.failure] = [list, null];
    } catch (reason) {
      if (asked === this.#asked) this.failure = asHostError(reason);
    }
  }

  /** Sends the values of a form, a JSON object as text. */
  send(id: string, values: string): Promise<void> {
    return this.#reply(id, async () => void (this.problems = await this.platform.sendForm(id, values)));
  }

  /** Opens the address that a server asks for. */
  openAddress(id: string): Promise<void> {
    return this.#reply(id, () => this.platform.openElicitedAddress(id));
  }

  decline(id: string): Promise<void> {
    return this.#reply(id, () => this.platform.declineElicitation(id));
  }

  async #reply(id: string, call: () => Promise<void>): Promise<void> {
    if (this.replying) return;
    this.replying = true;
    [this.refusal, this.problems] = [null, []];
    const error = await call().then(
      () => null,
      (reason: unknown) => asHostError(reason),
    );
    await this.refresh();
    if (error) this.refusal = { error, gone: !this.list?.some((other) => other.id === id) };
    this.replying = false;
  }
}
