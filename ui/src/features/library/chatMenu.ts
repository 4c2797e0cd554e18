/** The commands about a chat, for its row in the sidebar and for its title. */

import type { ChatSummary } from '../../bindings/ChatSummary';
import type { Item } from '../../design';
import { t } from '../../locales';
import type { Chats } from '../../stores/chats.svelte';
import type { Dialogs } from './dialogs.svelte';
import type { Library } from './library.svelte';

interface Stores {
  chats: Chats;
  dialogs: Dialogs;
  library: Library;
}

interface Actions {
  rename: () => void;
  remove: () => void;
  /** The chats of its export: those selected together, if it is one of them. */
  exported: readonly ChatSummary[];
}

export function chatMenu(chat: ChatSummary, { chats, dialogs, library }: Stores, actions: Actions): Item[] {
  const { rename, remove, exported } = actions;
  return [
    { label: t('chat.rename'), icon: 'pencil', run: rename, test: 'rename-chat' },
    {
      label: t(chat.pinned ? 'chat.unpin' : 'chat.pin'),
      icon: 'pin',
      run: () => void chats.pin(chat.id, !chat.pinned),
      test: 'pin-chat',
    },
    {
      label: t('library.move'),
      icon: 'folder',
      run: () => dialogs.show({ kind: 'move', chat }),
      test: 'move-chat-to-project',
    },
    {
      label: t(chat.archived ? 'library.unarchive' : 'library.archive'),
      icon: 'archive',
      run: () => void library.archive(chat.id, !chat.archived),
      test: 'archive-chat',
    },
    {
      label: exported.length > 1 ? t('export.some', { count: exported.length }) : t('export.one'),
      icon: 'reveal',
      run: () => dialogs.show({ kind: 'export', chats: exported }),
      test: 'export-chat',
    },
    { label: t('chat.delete'), icon: 'trash', run: remove, danger: true, test: 'delete-chat' },
  ];
}
