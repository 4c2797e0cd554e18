/** The pages of the Settings window, and its rows: their names, for the window, its search and the command palette. */

import type { WindowPage } from '../../bindings/WindowPage';
import { t, type Key } from '../../locales';
import type { en } from '../../locales/en';
import type { Rest } from '../../locales/en/catalogue';
import { folded } from '../../shared/findText';

/** The key of a text without arguments. */
export type PlainKey = { [K in Key]: [] extends Rest<(typeof en)[K]> ? K : never }[Key];

/** The name of a page, also in the address of the window. */
export type PageName = Exclude<WindowPage, 'local' | 'discover' | 'downloads'>;

export interface Page {
  readonly name: PageName;
  readonly labelKey: PlainKey;
  /** The heading that it is the first below. */
  readonly groupKey?: PlainKey;
}

export const PAGES: readonly Page[] = [
  { name: 'general', labelKey: 'settings.page.general', groupKey: 'settings.group.app' },
  { name: 'appearance', labelKey: 'settings.page.appearance' },
  { name: 'chats', labelKey: 'settings.page.chats' },
  { name: 'models', labelKey: 'settings.page.models', groupKey: 'settings.group.models' },
  { name: 'connections', labelKey: 'settings.page.connections' },
  { name: 'tools', labelKey: 'settings.page.tools' },
  { name: 'server', labelKey: 'settings.page.server' },
  { name: 'privacy', labelKey: 'settings.page.privacy', groupKey: 'settings.group.data' },
  { name: 'about', labelKey: 'settings.page.about' },
];

export interface Row {
  readonly page: PageName;
  readonly labelKey: PlainKey;
  /** Its label on a Mac, if that is another. */
  readonly labelKeyMac?: PlainKey;
  readonly aboutKey?: PlainKey;
  /** True if it shows a stored setting, not an action or figures. */
  readonly setting?: true;
  /** Below the page's *Advanced*, or shown only when it matters: while the server runs or is in trouble. */
  readonly under?: 'advanced' | 'revealed';
  /** True if a Mac has nothing to set there. */
  readonly notOnMac?: true;
  /** True if it needs a graphics card with a memory of its own. */
  readonly onlyWithCard?: true;
}

const setting = true;

const LIST = {
  language: { page: 'general', labelKey: 'settings.language', setting },
  defaultModel: { page: 'general', labelKey: 'settings.model', aboutKey: 'settings.model.about', setting },
  login: { page: 'general', labelKey: 'settings.app.login', setting },
  tray: {
    page: 'general',
    labelKey: 'settings.app.tray',
    labelKeyMac: 'settings.app.trayMac',
    aboutKey: 'settings.app.trayAbout',
    setting,
  },
  quickEntry: { page: 'general', labelKey: 'settings.app.quick', aboutKey: 'settings.app.quickAbout', setting },
  notifications: {
    page: 'general',
    labelKey: 'settings.app.notifications',
    aboutKey: 'settings.app.notificationsAbout',
    setting,
  },
  keepAwake: { page: 'general', labelKey: 'power.keepAwake', setting },
  commandLine: { page: 'general', labelKey: 'settings.app.command', aboutKey: 'settings.app.commandAbout' },

  theme: { page: 'appearance', labelKey: 'appearance.theme', setting },
  textSize: { page: 'appearance', labelKey: 'appearance.textSize', setting },
  width: { page: 'appearance', labelKey: 'appearance.width', setting },
  codeTheme: { page: 'appearance', labelKey: 'appearance.code', setting },
  thoughts: { page: 'appearance', labelKey: 'appearance.thoughts', aboutKey: 'appearance.thoughtsAbout', setting },
  density: { page: 'appearance', labelKey: 'appearance.density', setting, under: 'advanced' },

  defaultPreset: { page: 'chats', labelKey: 'preset.default', setting },
  presets: { page: 'chats', labelKey: 'preset.heading', aboutKey: 'preset.note', setting },
  thinking: { page: 'chats', labelKey: 'settings.thinking.switch', aboutKey: 'settings.thinking.switchAbout', setting },
  titles: { page: 'chats', labelKey: 'settings.chats.titles', aboutKey: 'settings.chats.titlesAbout', setting },
  snippets: { page: 'chats', labelKey: 'settings.snippets', aboutKey: 'settings.snippets.about', setting },
  notes: { page: 'chats', labelKey: 'notes.title', aboutKey: 'notes.about', setting },
  budget: { page: 'chats', labelKey: 'thinking.budget', aboutKey: 'thinking.budget.about', setting, under: 'advanced' },
  imageDetail: {
    page: 'chats',
    labelKey: 'settings.images.detail',
    aboutKey: 'settings.images.detailAbout',
    setting,
    under: 'advanced',
  },

  loadedModels: { page: 'models', labelKey: 'engine.loaded' },
  unload: { page: 'models', labelKey: 'engine.unload', aboutKey: 'engine.unloadAbout', setting },
  device: { page: 'models', labelKey: 'engine.device', aboutKey: 'engine.deviceAbout', setting, onlyWithCard: true },
  embeddingModel: { page: 'models', labelKey: 'settings.embedding', aboutKey: 'settings.embedding.about', setting },
  folders: { page: 'models', labelKey: 'settings.folders', aboutKey: 'settings.folders.about', setting },
  token: { page: 'models', labelKey: 'network.token', setting },
  threads: {
    page: 'models',
    labelKey: 'engine.threads',
    aboutKey: 'engine.threadsAbout',
    setting,
    under: 'advanced',
    notOnMac: true,
  },
  promptCache: { page: 'models', labelKey: 'engine.prefix', aboutKey: 'engine.prefixAbout', setting, under: 'advanced' },
  hubAddress: { page: 'models', labelKey: 'network.hub', under: 'advanced' },

  endpoints: { page: 'connections', labelKey: 'settings.endpoints', aboutKey: 'settings.endpoints.intro', setting },

  toolServers: { page: 'tools', labelKey: 'settings.tools', aboutKey: 'settings.tools.intro', setting },
  webSearch: { page: 'tools', labelKey: 'settings.tools.search', aboutKey: 'settings.tools.search.about', setting },
  toolGrants: { page: 'tools', labelKey: 'settings.tools.grants', aboutKey: 'settings.tools.grantsAbout' },

  server: { page: 'server', labelKey: 'server.switch', aboutKey: 'server.intro', setting },
  serverAddresses: { page: 'server', labelKey: 'server.address', under: 'revealed' },
  serverPort: { page: 'server', labelKey: 'server.port', setting, under: 'revealed' },
  serverKey: { page: 'server', labelKey: 'server.key', setting, under: 'revealed' },
  serverNetwork: {
    page: 'server',
    labelKey: 'server.network',
    aboutKey: 'server.network.about',
    setting,
    under: 'revealed',
  },
  serverDocuments: {
    page: 'server',
    labelKey: 'server.documents',
    aboutKey: 'server.documents.about',
    setting,
    under: 'revealed',
  },
  serverActivity: { page: 'server', labelKey: 'server.activity', under: 'revealed' },
  serverSetup: { page: 'server', labelKey: 'server.setup', aboutKey: 'server.setup.about', under: 'revealed' },

  offline: { page: 'privacy', labelKey: 'network.offline', aboutKey: 'network.offlineAbout', setting },
  requests: { page: 'privacy', labelKey: 'network.requests', aboutKey: 'network.requestsAbout' },
  storage: { page: 'privacy', labelKey: 'data.storage', aboutKey: 'data.attachmentsAbout' },
  backups: { page: 'privacy', labelKey: 'data.backups', aboutKey: 'data.backupsAbout' },
  damagedFiles: { page: 'privacy', labelKey: 'data.setAside', aboutKey: 'data.setAsideAbout', under: 'revealed' },
  exportImport: { page: 'privacy', labelKey: 'data.exportImport', aboutKey: 'data.exportImportAbout' },
  deleteAll: { page: 'privacy', labelKey: 'data.deleteAll', aboutKey: 'data.deleteAllAbout' },

  updates: { page: 'about', labelKey: 'update.title' },
  licenses: { page: 'about', labelKey: 'settings.about.licenses', aboutKey: 'settings.about.licensesAbout' },
} as const satisfies Record<string, Row>;

export type RowName = keyof typeof LIST;
export const ROWS: Readonly<Record<RowName, Row>> = LIST;
export const ROW_NAMES = Object.keys(LIST) as RowName[];

/** The rows that this kind of computer has. */
export function rowsOn(mac: boolean, card: boolean): RowName[] {
  return ROW_NAMES.filter((name) => !(mac && ROWS[name].notOnMac) && (card || !ROWS[name].onlyWithCard));
}

/** The label of a row on this kind of computer. */
export function rowLabel(name: RowName, mac: boolean): string {
  const { labelKey, labelKeyMac } = ROWS[name];
  return t(mac && labelKeyMac ? labelKeyMac : labelKey);
}

/** The help below the label; empty if there is none. */
export function rowAbout(name: RowName): string {
  const { aboutKey } = ROWS[name];
  return aboutKey ? t(aboutKey) : '';
}

/** The label of the page that a row is on. */
export function rowPage(name: RowName): string {
  const page = PAGES.find((page) => page.name === ROWS[name].page);
  return page ? t(page.labelKey) : '';
}

/** The rows whose label, help or page contains every word, those with the words in their label first. */
export function foundRows(query: string, mac: boolean, card = false): RowName[] {
  const words = folded(query).split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const holds = (text: string): boolean => words.every((word) => text.includes(word));
  const all = rowsOn(mac, card);
  const labeled = all.filter((name) => holds(folded(rowLabel(name, mac))));
  const others = all.filter(
    (name) => !labeled.includes(name) && holds(folded(`${rowLabel(name, mac)} ${rowAbout(name)} ${rowPage(name)}`)),
  );
  return [...labeled, ...others];
}
