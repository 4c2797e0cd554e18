/** The preview: what a response wrote, shown as what it makes. Opened by a person alone, and gone with its chat. */

import { createContext } from 'svelte';

import type { StoredMessage } from '../../bindings/StoredMessage';
import type { Platform } from '../../host/types';
import { t } from '../../locales';
import { artifactOf, artifactsIn, type Artifact, type ArtifactKind } from '../../markdown/artifact';
import { textOf } from '../../shared/messageParts';
import type { Toasts } from '../../design/toasts.svelte';
import type { Conversation } from '../conversation/conversation.svelte';

/** The part of a conversation that the preview reads. */
type Branch = Pick<Conversation, 'messages' | 'live'>;

export class Preview {
  /** `null` while the preview is closed. */
  shown = $state.raw<Artifact | null>(null);
  /** The address of its page; `null` until it is held, and for diagrams, which draw themselves. */
  address = $state<string | null>(null);
  /** Why its page was taken away. */
  stopped = $state<'person' | 'focus' | null>(null);
  /** True if its code is shown in place of it. */
  asCode = $state(false);
  /** Grows each time that a person opens it. */
  openings = $state(0);
  /** All that the branch has of what is shown, oldest first. */
  readonly versions = $derived.by((): readonly Artifact[] => {
    const { shown } = this;
    if (!shown) return [];
    const same = this.#all().filter(({ kind, name }) => kind === shown.kind && name === shown.name);
    return same.some(({ code }) => code === shown.code) ? same : [shown];
  });
  /** The place of the shown version. */
  readonly index = $derived(this.versions.findLastIndex(({ code }) => code === this.shown?.code));
  readonly #known = new WeakMap<StoredMessage, readonly Artifact[]>();
  /** The artifacts of running answers so far, and the number of fences with which they were found. */
  readonly #growing = new Map<string, { fences: number; artifacts: readonly Artifact[] }>();
  /** The number of versions when it was looked at last. */
  #count = 0;
  #asked = 0;
  /** The control that opened it. */
  #opener: HTMLElement | null = null;

  constructor(
    private readonly platform: Pick<Platform, 'showPreview' | 'closePreview'>,
    private readonly toasts: Pick<Toasts, 'say' | 'report'>,
    private readonly branch: Branch,
  ) {}

  /** Says so if the page before this one ended with a preview: its script may have been without end. */
  async recover(): Promise<void> {
    if (await this.platform.closePreview().catch(() => false)) this.toasts.say(t('preview.ended'));
  }

  /** Opens what this code makes. */
  open(kind: ArtifactKind, code: string): void {
    const known = this.#all().findLast((artifact) => artifact.kind === kind && artifact.code === code);
    this.asCode = false;
    this.#opener = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    this.openings += 1;
    void this.show(known ?? artifactOf(kind, code));
  }

  /** Shows this version from its beginning. */
  async show(artifact: Artifact): Promise<void> {
    const asked = ++this.#asked;
    this.shown = artifact;
    this.address = null;
    this.stopped = null;
    this.#count = this.versions.length;
    if (artifact.kind === 'mermaid') return;
    try {
      const address = await this.platform.showPreview(artifact.code, artifact.kind === 'svg');
      if (asked === this.#asked) this.address = address;
    } catch (reason) {
      if (asked !== this.#asked) return;
      this.toasts.report(reason);
      this.close();
    }
  }

  /** Shows another version. */
  step(by: number): void {
    const other = this.versions[this.index + by];
    if (other) void this.show(other);
  }

  /** Begins the page again. */
  reload(): void {
    if (this.shown) void this.show(this.shown);
  }

  /** Takes the page away; what it did is lost. */
  stop(reason: 'person' | 'focus'): void {
    this.#asked += 1;
    this.address = null;
    this.stopped = reason;
  }

  /** Shows a version that has just been finished, if the newest before it is shown. */
  follow(): void {
    const { length } = this.versions;
    const newest = this.versions.at(-1);
    const before = this.index;
    const grew = this.#count > 0 && length > this.#count && before === this.#count - 1;
    this.#count = length;
    if (grew && newest && this.stopped === null) void this.show(newest);
  }

  /** Closes it; the control that opened it has the focus again, if the preview had it. */
  close(pane: HTMLElement | null = null): void {
    if (!this.shown) return;
    if (pane?.contains(document.activeElement) && this.#opener?.isConnected) this.#opener.focus();
    this.#asked += 1;
    this.shown = null;
    this.address = null;
    this.stopped = null;
    this.#opener = null;
    void this.platform.closePreview().catch(() => {});
  }

  #all(): Artifact[] {
    return this.branch.messages
      .filter(({ role }) => role === 'assistant')
      .flatMap((message) => this.#of(message, this.branch.live.get(message.id)?.message ?? null));
  }

  #of(message: StoredMessage, live: StoredMessage | null): readonly Artifact[] {
    if (live) {
      const text = textOf(live.parts);
      const fences = text.split(/`{3}|~{3}/).length;
      const before = this.#growing.get(live.id);
      if (before?.fences === fences) return before.artifacts;
      const artifacts = artifactsIn(text, true);
      this.#growing.set(live.id, { fences, artifacts });
      return artifacts;
    }
    this.#growing.delete(message.id);
    let known = this.#known.get(message);
    if (!known) this.#known.set(message, (known = artifactsIn(textOf(message.parts), false)));
    return known;
  }
}

/** The preview of the chat window. */
export const [usePreview, providePreview] = createContext<Preview>();
