/** The fake host's desktop, windows and links: a desktop that has everything. */

import type { OpenRequest } from '../../bindings/OpenRequest';
import type { Command } from '../../bindings/Command';
import type { Desktop } from '../../bindings/Desktop';
import type { QuitChoice } from '../../bindings/QuitChoice';
import type { RunningWork } from '../../bindings/RunningWork';
import type { PageRequest } from '../../bindings/PageRequest';
import type { WindowPage } from '../../bindings/WindowPage';
import type { Platform } from '../types';
import { listen, refusal } from './shared';

export const desktopControls = () => ({
  desktopState: { tray: null, global_shortcut: null, notifications: null, command: null, open_at_login: false, shortcut_refused: null } as Desktop,
  /** The work that runs when the app is asked to quit. */
  runs: { answers: [], downloads: [] } as RunningWork,
  /** The commands that windows asked the host to run. */
  commands: [] as Command[],
  /** The commands that the menus would offer. */
  available: [] as Command[],
  checked: [] as Command[],
  /** The answers to the question of quitting. */
  quits: [] as QuitChoice[],
  /** Files that were imported after a question. */
  importedFiles: [] as string[],
  /** Chats that quick entry showed in the chat window. */
  shownChats: [] as string[],
  quickHidden: 0,
  quickHeight: 0,
  /** The pages of other windows that were asked for. */
  shownPages: [] as WindowPage[],
  /** Every link that was opened. */
  opened: [] as string[],
});

export function desktop(host: ReturnType<typeof desktopControls>) {
  let requests: OpenRequest[] = [];
  const files = new Set<string>();
  const listeners = {
    command: new Set<(command: Command) => void>(),
    page: new Set<(asked: PageRequest) => void>(),
    openRequested: new Set<() => void>(),
    quit: new Set<() => void>(),
    quick: new Set<() => void>(),
  };
  const takeFile = (key: string): void => {
    if (!files.delete(key)) throw refusal('not_found', 'this file was taken already; open it once more', {}, 'file_gone');
  };
  const calls = {
    async desktop() {
      return host.desktopState;
    },
    async openAtLogin(on) {
      host.desktopState = { ...host.desktopState, open_at_login: on };
    },
    async runCommand(command) {
      host.commands.push(command);
    },
    async setAvailableCommands(available, checked) {
      host.available = available;
      host.checked = checked;
    },
    async takeOpenRequests() {
      const taken = requests;
      requests = [];
      return taken;
    },
    async openedFile(key) {
      takeFile(key);
      return new TextEncoder().encode(`the file ${key}`).buffer;
    },
    async importOpened(key) {
      takeFile(key);
      host.importedFiles.push(key);
      return { chats: 2, messages: 9, already_here: 0, dropped_images: 0 };
    },
    async runningWork() {
      return host.runs;
    },
    async quit(choice) {
      host.quits.push(choice);
    },
    async hideQuickEntry() {
      host.quickHidden += 1;
    },
    async fitQuickEntry(height) {
      host.quickHeight = height;
    },
    async showChat(id) {
      host.shownChats.push(id);
    },
    async openWindow(name) {
      window.open(`?window=${name}`, '_blank', 'width=900,height=640');
    },
    async showPage(page, row) {
      host.shownPages.push(page);
      for (const listener of listeners.page) listener({ page, row });
    },
    async openLink(url) {
      if (!/^(?:https?|mailto):/i.test(url)) throw refusal('bad_request', 'Only web and mail addresses are opened from a chat.', {}, 'link_refused');
      host.opened.push(url);
    },
    async firstPaint() {},
    onCommand: (listener) => listen(listeners.command, listener),
    onPageAsked: (listener) => listen(listeners.page, listener),
    onOpenRequested: (listener) => listen(listeners.openRequested, listener),
    onQuitAsked: (listener) => listen(listeners.quit, listener),
    onQuickShown: (listener) => listen(listeners.quick, listener),
  } satisfies Partial<Platform>;
  return {
    ...calls,
    /** Brings something to the app, as a link or the desktop does. */
    bring(...brought: OpenRequest[]): void {
      requests.push(...brought);
      for (const request of brought) if ('key' in request) files.add(request.key);
      for (const listener of listeners.openRequested) listener();
    },
    /** Chooses a command in a menu. */
    choose(command: Command): void {
      for (const listener of listeners.command) listener(command);
    },
    /** Asks the app to quit. */
    askToQuit(): void {
      for (const listener of listeners.quit) listener();
    },
    showQuickEntry(): void {
      for (const listener of listeners.quick) listener();
    },
  };
}
