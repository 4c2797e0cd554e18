/** Keyboard shortcuts: one table for the listener and for the labels. */

/** What a shortcut does. */
export type Command = 'new-chat' | 'search' | 'composer' | 'regenerate' | 'thinking' | 'answer-now' | 'models' | 'settings';

const SHORTCUTS: Record<Command, { key: string; shift: boolean }> = {
  'new-chat': { key: 'n', shift: false },
  search: { key: 'f', shift: true },
  composer: { key: 'l', shift: false },
  regenerate: { key: 'r', shift: true },
  thinking: { key: 't', shift: true },
  'answer-now': { key: 'a', shift: true },
  models: { key: 'm', shift: true },
  settings: { key: ',', shift: false },
};

/** The keys of an event that a shortcut looks at. */
export type Keys = Pick<KeyboardEvent, 'key' | 'metaKey' | 'ctrlKey' | 'shiftKey' | 'altKey'>;

/** Whether shortcuts use Command rather than Control. */
export function usesCommandKey(platform: string): boolean {
  return /mac/i.test(platform);
}

/** The command that was asked for. */
export function commandOf(event: Keys, mac: boolean): Command | null {
  const modifier = mac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  if (!modifier || event.altKey) return null;
  const key = event.key.toLowerCase();
  for (const [command, shortcut] of entries) {
    if (shortcut.key === key && shortcut.shift === event.shiftKey) return command;
  }
  return null;
}

/** How a shortcut is written: `⌘⇧F`, `Ctrl+Shift+F`. */
export function shortcutLabel(command: Command, mac: boolean): string {
  const { key, shift } = SHORTCUTS[command];
  const letter = key.toUpperCase();
  return mac ? `⌘${shift ? '⇧' : ''}${letter}` : `Ctrl+${shift ? 'Shift+' : ''}${letter}`;
}

function isCommand(name: string): name is Command {
  return name in SHORTCUTS;
}

const entries = Object.entries(SHORTCUTS).flatMap(([name, shortcut]) =>
  isCommand(name) ? [[name, shortcut] as const] : [],
);
