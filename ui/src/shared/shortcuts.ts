/**
 * Keyboard shortcuts: one list for the listener, for the labels, for the sheet that lists them, and for the menus of
 * the host.
 */

import { createContext } from 'svelte';

import type { Command } from '../bindings/Command';
import shortcuts from './shortcuts.json';

export type { Command };

/** The commands that work in every window. */
export type WindowCommand = Extract<Command, 'zoom-in' | 'zoom-out' | 'zoom-reset' | 'help'>;

interface Shortcut {
  key: string;
  shift: boolean;
  /** Other keys with the same meaning: keyboards differ in the character of a key cap. */
  also?: readonly string[];
  /** True if Shift is ignored, because some keyboards need it for the key. */
  anyShift?: boolean;
  /** A key that means the same without the modifier key. */
  alone?: string;
}

const SHORTCUTS: Readonly<Record<Command, Shortcut | null>> = shortcuts;

/** The commands as they are listed, in groups. */
export const GROUPS = {
  chats: ['new-chat', 'temporary-chat', 'search', 'find', 'palette', 'chat-settings'],
  answers: ['composer', 'thinking', 'answer-now', 'regenerate', 'two-answers'],
  windows: ['models', 'settings', 'zoom-in', 'zoom-out', 'zoom-reset', 'help'],
} as const satisfies Record<string, readonly Command[]>;

/** The keys of an event that a shortcut looks at. */
export type Keys = Pick<KeyboardEvent, 'key' | 'metaKey' | 'ctrlKey' | 'shiftKey' | 'altKey'>;

/** True if shortcuts use Command rather than Control. */
export function usesCommandKey(platform: string): boolean {
  return /mac/i.test(platform);
}

/** The command of a key event. */
export function commandOf(event: Keys, mac: boolean): Command | null {
  const key = event.key.toLowerCase();
  const bare = !event.metaKey && !event.ctrlKey && !event.altKey && !event.shiftKey;
  const modifier = mac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  for (const [command, { key: wanted, shift, also, anyShift, alone }] of entries) {
    if (bare && alone === key) return command;
    if (!modifier || event.altKey) continue;
    if ((wanted === key || also?.includes(key)) && (anyShift || shift === event.shiftKey)) return command;
  }
  return null;
}

/** True if a command works in every window. */
export function isWindowCommand(command: Command): command is WindowCommand {
  return command === 'zoom-in' || command === 'zoom-out' || command === 'zoom-reset' || command === 'help';
}

/** The label of a shortcut: `⌘⇧F`, `Ctrl+Shift+F`; empty for a command without one. */
export function shortcutLabel(command: Command, mac: boolean): string {
  const shortcut = SHORTCUTS[command];
  if (!shortcut) return '';
  const { key, shift } = shortcut;
  // A minus as long as the plus is wide.
  const letter = key === '-' ? '−' : key.toUpperCase();
  return mac ? `⌘${shift ? '⇧' : ''}${letter}` : `Ctrl+${shift ? 'Shift+' : ''}${letter}`;
}

/**
 * True if an event means undoing the app's last action. A text field undoes letters instead, unless the action
 * (`newer`) came after the last letter there.
 */
export function asksUndo(event: KeyboardEvent, mac: boolean, newer = false): boolean {
  const modifier = mac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  if (!modifier || event.altKey || event.shiftKey || event.key.toLowerCase() !== 'z') return false;
  const field = fieldOf(event);
  return !field || (newer && field.hasAttribute('data-focus-home'));
}

/**
 * The edit that a key makes in the field with the focus, if the web view leaves that to the page: WebKitGTK has no
 * such keys.
 */
export function fieldCommand(event: KeyboardEvent, mac: boolean): 'undo' | 'redo' | null {
  if (mac || !event.ctrlKey || event.metaKey || event.altKey || !fieldOf(event)) return null;
  const key = event.key.toLowerCase();
  if (key === 'z') return event.shiftKey ? 'redo' : 'undo';
  return key === 'y' && !event.shiftKey ? 'redo' : null;
}

function fieldOf({ target }: Event): Element | null {
  return target instanceof Element ? target.closest('input, textarea, [contenteditable="true"]') : null;
}

function isCommand(name: string): name is Command {
  return name in SHORTCUTS;
}

/** Every command. */
export const COMMANDS: readonly Command[] = Object.keys(SHORTCUTS).filter(isCommand);

const entries = Object.entries(SHORTCUTS).flatMap(([name, shortcut]) =>
  isCommand(name) && shortcut ? [[name, shortcut] as const] : [],
);

/** The host's names of keys that have another name in pages. */
const NAMED: Readonly<Record<string, string>> = {
  ' ': 'Space',
  ArrowUp: 'Up',
  ArrowDown: 'Down',
  ArrowLeft: 'Left',
  ArrowRight: 'Right',
};

/**
 * The keys that are pressed, as the host hears them everywhere: `Alt+Space`. Empty if they could not be told from
 * typing, `null` while there is no other key than modifiers.
 *
 * macOS identifies a key by its place on the keyboard, X11 by its letter, whose place differs between keyboards.
 */
export function keysOf(
  event: Pick<KeyboardEvent, 'key' | 'code' | 'metaKey' | 'ctrlKey' | 'altKey' | 'shiftKey'>,
  mac: boolean,
): string | null {
  if (['Meta', 'Control', 'Alt', 'Shift', 'AltGraph', 'OS'].includes(event.key)) return null;
  const letter = mac || !/^[a-z]$/i.test(event.key) ? null : event.key.toUpperCase();
  // The key itself, without the modifiers' effect.
  const code = letter ?? /^(?:Key|Digit)(.)$/.exec(event.code)?.[1] ?? NAMED[event.key] ?? (event.code || event.key);
  const modifiers = [
    event.ctrlKey && 'Ctrl',
    event.altKey && 'Alt',
    event.metaKey && 'Super',
    event.shiftKey && 'Shift',
  ].filter((name) => name !== false);
  return modifiers.some((name) => name !== 'Shift') ? [...modifiers, code].join('+') : '';
}

const MAC_SIGNS: Readonly<Record<string, string>> = { Ctrl: '⌃', Alt: '⌥', Super: '⌘', Shift: '⇧' };

/** The label of such keys: `⌥Space`, `Alt+Space`. */
export function keysLabel(keys: string, mac: boolean): string {
  return mac
    ? keys
        .split('+')
        .map((key) => MAC_SIGNS[key] ?? key)
        .join('')
    : keys;
}

/** True if shortcuts of this window use Command rather than Control. */
export const [useMac, provideMac] = createContext<boolean>();
