/** The components of the pages of the Settings window. A new page is a row here, and in the list of pages. */

import type { Component } from 'svelte';

import type { PageName } from '../../features/settingsSearch/rows';
import AboutPage from './AboutPage.svelte';
import AppearancePage from './AppearancePage.svelte';
import ChatsPage from './ChatsPage.svelte';
import ConnectionsPage from './ConnectionsPage.svelte';
import GeneralPage from './GeneralPage.svelte';
import ModelsPage from './ModelsPage.svelte';
import PrivacyPage from './PrivacyPage.svelte';
import ServerPage from './ServerPage.svelte';
import ToolsPage from './ToolsPage.svelte';

export const COMPONENTS: Readonly<Record<PageName, Component>> = {
  general: GeneralPage,
  appearance: AppearancePage,
  chats: ChatsPage,
  models: ModelsPage,
  connections: ConnectionsPage,
  tools: ToolsPage,
  server: ServerPage,
  privacy: PrivacyPage,
  about: AboutPage,
};
