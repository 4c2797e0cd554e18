/** The pages of the Settings window, in their order. A new page is a row here, its component and its texts. */

import type { Component } from 'svelte';

import type { Key } from '../../locales';
import AboutPage from './AboutPage.svelte';
import AppPage from './AppPage.svelte';
import AppearancePage from './AppearancePage.svelte';
import ChatsPage from './ChatsPage.svelte';
import DataPage from './DataPage.svelte';
import EndpointsPage from './EndpointsPage.svelte';
import EnginePage from './EnginePage.svelte';
import FoldersPage from './FoldersPage.svelte';
import NetworkPage from './NetworkPage.svelte';
import ImagesPage from './ImagesPage.svelte';
import PresetsPage from './PresetsPage.svelte';
import ServerPage from './ServerPage.svelte';
import SnippetsPage from './SnippetsPage.svelte';
import ThinkingPage from './ThinkingPage.svelte';

export interface Page {
  /** Its name in the address of the window. */
  readonly name: string;
  readonly component: Component;
  readonly labelKey: Key;
}

export const PAGES = [
  { name: 'network', component: NetworkPage, labelKey: 'settings.page.network' },
  { name: 'appearance', component: AppearancePage, labelKey: 'settings.page.appearance' },
  { name: 'chats', component: ChatsPage, labelKey: 'settings.page.chats' },
  { name: 'presets', component: PresetsPage, labelKey: 'settings.page.presets' },
  { name: 'snippets', component: SnippetsPage, labelKey: 'settings.page.snippets' },
  { name: 'thinking', component: ThinkingPage, labelKey: 'settings.page.thinking' },
  { name: 'images', component: ImagesPage, labelKey: 'settings.page.images' },
  { name: 'folders', component: FoldersPage, labelKey: 'settings.page.folders' },
  { name: 'engine', component: EnginePage, labelKey: 'settings.page.engine' },
  { name: 'endpoints', component: EndpointsPage, labelKey: 'settings.page.endpoints' },
  { name: 'server', component: ServerPage, labelKey: 'settings.page.server' },
  { name: 'data', component: DataPage, labelKey: 'settings.page.data' },
  { name: 'app', component: AppPage, labelKey: 'settings.page.app' },
  { name: 'about', component: AboutPage, labelKey: 'settings.page.about' },
] as const satisfies readonly Page[];
