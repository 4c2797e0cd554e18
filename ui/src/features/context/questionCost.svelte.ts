/** The share of the model's context that the question in the composer takes. */

import { filesOf } from '../../shared/files';
import { t } from '../../locales';
import type { Conversation } from '../conversation/conversation.svelte';
import { DraftTokens } from './draftTokens.svelte';
import type { FileCosts } from '../../files/fileCosts.svelte';
import type { Library } from '../library/library.svelte';
import type { Models } from '../../stores/models.svelte';
import type { ImageCosts } from '../../images/imageCosts.svelte';

interface Stores {
  conversation: Conversation;
  models: Models;
  costs: ImageCosts;
  fileCosts: FileCosts;
  library: Library;
}

/** The share of the context from which on the tokens of a draft are shown. */
const WORTH_A_FIGURE = 0.5;

export class QuestionCost {
  readonly #typed: DraftTokens;
  readonly #reference = $derived.by(
    () => this.stores.conversation.settings.model ?? this.stores.models.defaultReference,
  );
  /** The project of the open chat, or of the new one. */
  readonly project = $derived.by(() => this.stores.library.projectOf(this.stores.conversation));
  readonly #projectFiles = $derived.by(() => filesOf(this.project?.files ?? []));
  readonly #projectTokens = $derived.by(() => this.stores.fileCosts.sumOf(this.#reference, this.#projectFiles));
  /** A text about the project's files that the first question includes; `null` after it, and without files. */
  readonly along = $derived.by(() => {
    const count = this.#projectFiles.length;
    if (count === 0 || !this.project || this.stores.conversation.messages.length > 0) return null;
    const said = t('project.along', { count, name: this.project.name });
    return this.#projectTokens === null ? said : `${said} · ${t('image.tokens', { count: this.#projectTokens })}`;
  });
  /** Tokens that the chat takes of its model's context already, or will with its first question. */
  readonly used = $derived.by(() => {
    const usage = this.stores.conversation.lastAnswer?.usage;
    return (usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0) || (this.#projectTokens ?? 0);
  });
  /**
   * A text about its tokens, with a flag if it fills the rest of the context; `null` while nothing is typed or counted,
   * and as long as most of the context stays free.
   */
  readonly cost = $derived.by(() => {
    const { conversation, models, costs, fileCosts } = this.stores;
    if (this.#typed.tokens === null) return null;
    const reference = this.#reference;
    const { attachments } = conversation.draft;
    const images = costs.sumOf(
      reference,
      conversation.settings.image_detail,
      attachments.filter((part) => part.kind === 'image'),
    );
    const count = this.#typed.tokens + (fileCosts.sumOf(reference, filesOf(attachments)) ?? 0) + (images ?? 0);
    const whole = models.find(conversation.settings.model)?.context;
    if (!whole) return null;
    const context = Math.min(whole, conversation.settings.context ?? whole);
    if (this.used + count < WORTH_A_FIGURE * context) return null;
    const free = Math.max(0, context - this.used);
    const full = count >= free;
    return { text: full ? t('composer.tokensFull', { count, free }) : t('composer.tokens', { count }), full };
  });

  /** The last prefetched prompt. */
  #ahead = '';

  constructor(private readonly stores: Stores) {
    this.#typed = new DraftTokens(stores.fileCosts);
  }

  /** Counts the draft as it is now. */
  watch(): void {
    this.#typed.watch(this.#reference, this.stores.conversation.draft.text);
    if (this.#projectFiles.length > 0) void this.stores.fileCosts.ask(this.#reference, this.#projectFiles);
    this.#readAhead();
  }

  /** Prefetches the project's instructions and files while the first question is typed, once for each state of them. */
  #readAhead(): void {
    const { conversation, library } = this.stores;
    const project = this.project;
    if (conversation.id !== null || !project || this.#projectFiles.length === 0) {
      this.#ahead = '';
      return;
    }
    const wanted = JSON.stringify([project, conversation.settings]);
    if (wanted === this.#ahead || conversation.draft.text.trim() === '') return;
    this.#ahead = wanted;
    library.prefetch(project.id, conversation.settings);
  }
}
