/** The state of a collection of documents in words. */

import type { CollectionFile } from '../../bindings/CollectionFile';
import type { CollectionSource } from '../../bindings/CollectionSource';
import type { CollectionView } from '../../bindings/CollectionView';
import { ago } from '../../format/quantities';
import { locale, t } from '../../locales';
import { errorText, errorWords } from '../../locales/host';

/** The place of a collection on this computer: its folder, or the first of its files. */
export function pathOf(source: CollectionSource): string {
  switch (source.kind) {
    case 'folder':
      return source.path;
    case 'files':
      return source.paths.join(', ');
    case 'chats':
      return t('documents.ownChatsNote');
  }
}

/** The icon of a collection. */
export function iconOf(source: CollectionSource): 'folder' | 'file' | 'chats' {
  if (source.kind === 'chats') return 'chats';
  return source.kind === 'folder' ? 'folder' : 'file';
}

/** The work on a collection: `Reading 12 of 340`, `Up to date · checked 5 minutes ago`. */
export function activityText({ activity, waiting, synced_at }: CollectionView, now: number): string {
  switch (activity.kind) {
    case 'looking':
      return t('documents.looking');
    case 'reading':
      return t('documents.reading', { done: activity.done, of: activity.of });
    case 'paused':
      return [t('documents.paused'), ...(waiting > 0 ? [t('documents.waiting', { count: waiting })] : [])].join(' · ');
    case 'failed':
      return errorText(activity.error);
    case 'idle': {
      const state = waiting > 0 ? t('documents.waiting', { count: waiting }) : t('documents.idle');
      return synced_at === null ? state : `${state} · ${t('documents.checked', { when: ago(synced_at, now) })}`;
    }
  }
}

/** That changes are not noticed by themselves, and why; empty if they are. */
export function unwatchedText({ unwatched }: CollectionView): string {
  if (unwatched === null) return '';
  const why =
    unwatched.kind === 'not_possible'
      ? t('documents.unwatched.not_possible')
      : unwatched.kind === 'watch_limit'
        ? t('documents.unwatched.watch_limit', { setting: unwatched.setting })
        : t('documents.unwatched.too_many_folders', { most: unwatched.most });
  return `${t('documents.unwatched')} ${why}`;
}

/** The part that is read of what is being read, from 0 to 1; `null` if nothing is, or nobody knows. */
export function shareOf({ activity }: CollectionView): number | null {
  return activity.kind === 'reading' && activity.of > 0 ? activity.done / activity.of : null;
}

/** The amounts of a collection: `38 files read · 212 passages · 2 files can’t be read · 3 images not read`. */
export function amountsText({ source, read, passages, failed, images }: CollectionView): string {
  return [
    t(source.kind === 'chats' ? 'documents.readChats' : 'documents.read', { count: read }),
    t('documents.passages', { count: passages }),
    ...(failed > 0 ? [t('documents.unreadable', { count: failed })] : []),
    ...(images > 0 ? [t('documents.images', { count: images })] : []),
  ].join(' · ');
}

/** The files and folders that are left out, by their reasons; empty without any. */
export function leftOutText({ left_out }: CollectionView): string {
  if (left_out.length === 0) return '';
  const list = [...left_out]
    .sort((a, b) => b.count - a.count)
    .map(({ reason, count }) => t('documents.reasonCount', { reason: t(`documents.reason.${reason}`), count }));
  // The list is no inserted value: it runs in the direction of the language.
  const listed = new Intl.ListFormat(locale(), { style: 'short', type: 'unit' }).format(list);
  return `${t('documents.leftOut')} ${listed}`;
}

/** True for a file whose text is not in the index. */
export function isUnread({ state }: CollectionFile): boolean {
  return state.kind !== 'read';
}

/** The outcome of a file in words. */
export function outcomeText({ state }: CollectionFile): string {
  switch (state.kind) {
    case 'waiting':
      return t('documents.fileWaiting');
    case 'read':
      return t('documents.passages', { count: state.passages });
    case 'failed':
      // The rest of the sentence is for a file that is attached.
      return errorWords(state.error).title;
    case 'left_out':
      return state.reason === null ? t('documents.fileLeftOut') : t(`documents.reason.${state.reason}`);
  }
}
