/** What the windows can ask of their host about the desktop around the app. */

import type { Arrival } from '../bindings/Arrival';
import type { Command } from '../bindings/Command';
import type { Desktop } from '../bindings/Desktop';
import type { ImportReport } from '../bindings/ImportReport';
import type { QuitChoice } from '../bindings/QuitChoice';
import type { Unfinished } from '../bindings/Unfinished';
import type { Unsubscribe } from './types';

export interface DesktopPlatform {
  /** What the desktop can do of what can be set. */
  desktop(): Promise<Desktop>;
  /** Opens the app at login from now on, or no longer. */
  openAtLogin(on: boolean): Promise<void>;

  /** Does a command that is not the chat window's own. */
  runCommand(command: Command): Promise<void>;
  /** Tells the menus what the chat window can do now. */
  setAvailableCommands(available: Command[]): Promise<void>;

  /** What was brought to the app from outside since this was asked last. */
  takeArrivals(): Promise<Arrival[]>;
  /** The bytes of a file that was brought, once. */
  arrivedFile(key: string): Promise<ArrayBuffer>;
  /** Imports the chats of a file that was brought. */
  importArrived(key: string): Promise<ImportReport>;

  /** What runs while the app is asked to end. */
  unfinished(): Promise<Unfinished>;
  /** Answers whether it may. */
  quit(choice: QuitChoice): Promise<void>;

  hideQuickEntry(): Promise<void>;
  /** Makes quick entry as high as what it shows, in pixels. */
  fitQuickEntry(height: number): Promise<void>;
  /** Shows a chat in the chat window. */
  showChat(id: string): Promise<void>;

  /** Called with a command that was chosen in a menu. */
  onCommand(listener: (command: Command) => void): Promise<Unsubscribe>;
  /** Called when something was brought. */
  onArrived(listener: () => void): Promise<Unsubscribe>;
  /** Called when the app is to end while something runs. */
  onQuitAsked(listener: () => void): Promise<Unsubscribe>;
  /** Called when quick entry is shown. */
  onQuickShown(listener: () => void): Promise<Unsubscribe>;
}
