/** What the question that is being written takes of the model's context. */

import { filesOf } from '../lib/files';
import { t } from '../messages';
import type { Chats } from './chats.svelte';
import type { Conversation } from './conversation.svelte';
import { DraftTokens } from './draftTokens.svelte';
import type { FileCosts } from './fileCosts.svelte';
import type { Keeping } from './keeping.svelte';
import type { Models } from './models.svelte';
import type { PictureCosts } from './pictureCosts.svelte';

interface Stores {
  conversation: Conversation;
  models: Models;
  costs: PictureCosts;
  fileCosts: FileCosts;
  chats: Chats;
  keeping: Keeping;
}

export class QuestionCost {
  readonly #typed: DraftTokens;
  readonly #reference = $derived.by(() => this.stores.conversation.settings.model ?? this.stores.models.defaultReference);
  readonly #folder = $derived.by(() => {
    const { conversation, chats, keeping } = this.stores;
    return keeping.folder(conversation.id === null ? conversation.folder : (chats.find(conversation.id)?.folder ?? null));
  });
  readonly #folderFiles = $derived.by(() => filesOf(this.#folder?.files ?? []));
  readonly #folderTokens = $derived.by(() => this.stores.fileCosts.sumOf(this.#reference, this.#folderFiles));
  /** What the first question takes along from the chat's folder, in words; `null` once it was asked, and if there is nothing. */
  readonly along = $derived.by(() => {
    const count = this.#folderFiles.length;
    if (count === 0 || !this.#folder || this.stores.conversation.messages.length > 0) return null;
    const said = t('folder.along', { count, name: this.#folder.name });
    return this.#folderTokens === null ? said : `${said} · ${t('picture.tokens', { count: this.#folderTokens })}`;
  });
  /** Tokens that the chat takes of its model's context already, or will with its first question. */
  readonly used = $derived.by(() => this.stores.conversation.usedTokens || (this.#folderTokens ?? 0));
  /** Its tokens in words, and whether it fills what is left; `null` while nothing is typed or counted. */
  readonly cost = $derived.by(() => {
    const { conversation, models, costs, fileCosts } = this.stores;
    if (this.#typed.tokens === null) return null;
    const reference = this.#reference;
    const { attachments } = conversation.draft;
    const pictures = costs.sumOf(reference, conversation.settings.image_detail, attachments.filter((part) => part.kind === 'image'));
    const count = this.#typed.tokens + (fileCosts.sumOf(reference, filesOf(attachments)) ?? 0) + (pictures ?? 0);
    const context = models.find(conversation.settings.model)?.context;
    const free = context ? Math.max(0, context - this.used) : null;
    const full = free !== null && count >= free;
    return { text: full ? t('composer.tokensFull', { count, free }) : t('composer.tokens', { count }), full };
  });

  /** What was read ahead last. */
  #ahead = '';

  constructor(private readonly stores: Stores) {
    this.#typed = new DraftTokens(stores.fileCosts);
  }

  /** Has the draft counted as it is now. */
  watch(): void {
    this.#typed.watch(this.#reference, this.stores.conversation.draft.text);
    if (this.#folderFiles.length > 0) void this.stores.fileCosts.ask(this.#reference, this.#folderFiles);
    this.#readAhead();
  }

  /** Has the model read what a new chat takes along from its folder while the first question is typed, once for each state of it. */
  #readAhead(): void {
    const { conversation, keeping } = this.stores;
    const folder = this.#folder;
    if (conversation.id !== null || !folder || this.#folderFiles.length === 0) {
      this.#ahead = '';
      return;
    }
    const wanted = JSON.stringify([folder, conversation.settings]);
    if (wanted === this.#ahead || conversation.draft.text.trim() === '') return;
    this.#ahead = wanted;
    keeping.prefetch(folder.id, conversation.settings);
  }
}
