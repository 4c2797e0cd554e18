/** The host inside the app: Tauri's IPC. The only file that knows Tauri. */

import { Channel, convertFileSrc, invoke } from '@tauri-apps/api/core';
import { listen } from '@tauri-apps/api/event';

import type { AppUpdate } from '../bindings/AppUpdate';
import type { Command } from '../bindings/Command';
import type { MemoryRelease } from '../bindings/MemoryRelease';
import type { Settings } from '../bindings/Settings';
import type { PageRequest } from '../bindings/PageRequest';
import { commandsThrough } from './generated';
import { asHostError, type Platform } from './types';

/** True if this page runs in the app's web view. */
export const insideTauri = '__TAURI_INTERNALS__' in window;

/** A JSON text in which every letter outside of ASCII is escaped, because headers hold ASCII alone. */
function asciiJson(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Calls the host, and tells it if the history turns out to be damaged, so that it asks what to do. */
const invokeNotingDamage: typeof invoke = async (command, call, options) => {
  try {
    return await invoke(command, call, options);
  } catch (error) {
    if (asHostError(error).code === 'history_damaged') void invoke('note_history_damage').catch(() => {});
    throw error;
  }
};

export const tauri: Platform = {
  ...commandsThrough({ invoke: invokeNotingDamage, channel: (callback) => new Channel(callback), header: asciiJson }),

  imageUrl: (attachment, size) => `${convertFileSrc(attachment, 'attachment')}?size=${size}`,

  onChatsChanged: (listener) => listen('chats_changed', () => listener()),
  onSettingsChanged: (listener) => listen<Settings>('settings_changed', (event) => listener(event.payload)),
  onAppUpdateChanged: (listener) => listen<AppUpdate>('app_update_changed', (event) => listener(event.payload)),
  onMemoryReleased: (listener) => listen<MemoryRelease>('memory_released', (event) => listener(event.payload)),
  onEngineChanged: (listener) => listen('engine_changed', () => listener()),
  onNetworkChanged: (listener) => listen('network_changed', () => listener()),
  onModelsChanged: (listener) => listen('models_changed', () => listener()),
  onToolsChanged: (listener) => listen('tools_changed', () => listener()),
  onWaitingCallsChanged: (listener) => listen('waiting_calls_changed', () => listener()),
  onRunningCallsChanged: (listener) => listen('running_calls_changed', () => listener()),
  onCollectionsChanged: (listener) => listen('collections_changed', () => listener()),
  onDropped: (listener) => listen<{ paths: string[] }>('tauri://drag-drop', (event) => listener(event.payload.paths)),
  onCommand: (listener) => listen<Command>('command', (event) => listener(event.payload)),
  onPageAsked: (listener) => listen<PageRequest>('show_page', (event) => listener(event.payload)),
  onOpenRequested: (listener) => listen('open_requested', () => listener()),
  onQuitAsked: (listener) => listen('quit_asked', () => listener()),
  onQuickShown: (listener) => listen('quick_shown', () => listener()),
  onChatWith: (listener) => listen<string>('chat_with', (event) => listener(event.payload)),
};
