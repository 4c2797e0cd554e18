/** The part of the in-memory host that is about the desktop around the app. */

import type { Arrival } from '../bindings/Arrival';
import type { Command } from '../bindings/Command';
import type { Desktop } from '../bindings/Desktop';
import type { ImportReport } from '../bindings/ImportReport';
import type { QuitChoice } from '../bindings/QuitChoice';
import type { Unfinished } from '../bindings/Unfinished';
import type { DesktopPlatform } from './desktop';
import { FakePower } from './fakePower';

/** A desktop that has everything. */
export class FakeDesktop extends FakePower implements DesktopPlatform {
  desktopState: Desktop = { tray: null, global_shortcut: null, notifications: null, command: null, open_at_login: false, shortcut_refused: null };
  /** What runs when the app is asked to end. */
  runs: Unfinished = { answers: [], downloads: [] };
  /** What the windows asked the host to do. */
  readonly commands: Command[] = [];
  /** What the menus would offer. */
  available: Command[] = [];
  /** How the question was answered whether the app may end. */
  readonly quits: QuitChoice[] = [];
  /** Files that were imported after a question. */
  readonly importedFiles: string[] = [];
  /** Chats that quick entry showed in the chat window. */
  readonly shownChats: string[] = [];
  quickHidden = 0;
  quickHeight = 0;
  #arrivals: Arrival[] = [];
  readonly #files = new Set<string>();
  readonly #listeners = { command: new Set<(command: Command) => void>(), arrived: new Set<() => void>(), quit: new Set<() => void>(), quick: new Set<() => void>() };

  async desktop(): Promise<Desktop> {
    return this.desktopState;
  }
  async openAtLogin(on: boolean): Promise<void> {
    this.desktopState = { ...this.desktopState, open_at_login: on };
  }
  async runCommand(command: Command): Promise<void> {
    this.commands.push(command);
  }
  async setAvailableCommands(available: Command[]): Promise<void> {
    this.available = available;
  }
  async takeArrivals(): Promise<Arrival[]> {
    const arrivals = this.#arrivals;
    this.#arrivals = [];
    return arrivals;
  }
  async arrivedFile(key: string): Promise<ArrayBuffer> {
    this.#takeFile(key);
    return new TextEncoder().encode(`the file ${key}`).buffer;
  }
  async importArrived(key: string): Promise<ImportReport> {
    this.#takeFile(key);
    this.importedFiles.push(key);
    return { chats: 2, messages: 9, already_here: 0 };
  }
  async unfinished(): Promise<Unfinished> {
    return this.runs;
  }
  async quit(choice: QuitChoice): Promise<void> {
    this.quits.push(choice);
  }
  async hideQuickEntry(): Promise<void> {
    this.quickHidden += 1;
  }
  async fitQuickEntry(height: number): Promise<void> {
    this.quickHeight = height;
  }
  async showChat(id: string): Promise<void> {
    this.shownChats.push(id);
  }

  async onCommand(listener: (command: Command) => void): Promise<() => void> {
    return listening(this.#listeners.command, listener);
  }
  async onArrived(listener: () => void): Promise<() => void> {
    return listening(this.#listeners.arrived, listener);
  }
  async onQuitAsked(listener: () => void): Promise<() => void> {
    return listening(this.#listeners.quit, listener);
  }
  async onQuickShown(listener: () => void): Promise<() => void> {
    return listening(this.#listeners.quick, listener);
  }

  /** Brings something to the app, as a link or the desktop does. */
  bring(...arrivals: Arrival[]): void {
    this.#arrivals.push(...arrivals);
    for (const arrival of arrivals) if ('key' in arrival) this.#files.add(arrival.key);
    for (const listener of this.#listeners.arrived) listener();
  }
  #takeFile(key: string): void {
    if (!this.#files.delete(key)) throw { code: 'not_found', message: 'this file was taken already; open it once more' };
  }
  /** Chooses a command in a menu. */
  choose(command: Command): void {
    for (const listener of this.#listeners.command) listener(command);
  }
  /** Asks the app to end. */
  askToQuit(): void {
    for (const listener of this.#listeners.quit) listener();
  }
  /** Shows quick entry. */
  showQuickEntry(): void {
    for (const listener of this.#listeners.quick) listener();
  }
}

function listening<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
