/** The host as the windows see it. Nothing in here knows Tauri; `tauri.ts` and `fake` fulfil it. */

import type { AppUpdate } from '../bindings/AppUpdate';
import type { Command } from '../bindings/Command';
import { ERROR_CODES, REASONS } from '../bindings/constants';
import type { Reason } from '../bindings/Reason';
import type { Error as HostError } from '../bindings/Error';
import type { ErrorCode } from '../bindings/ErrorCode';
import type { MemoryRelease } from '../bindings/MemoryRelease';
import type { Settings } from '../bindings/Settings';
import type { PageRequest } from '../bindings/PageRequest';
import type { Commands } from './generated';

export type { HostError };

/** Takes back a subscription. */
export type Unsubscribe = () => void;

/** The events of the host. */
export interface Events {
  /** Called when the list of chats is no longer the one that `chats` gave. */
  onChatsChanged(listener: () => void): Promise<Unsubscribe>;
  /** Called with the settings after a change, in whichever window or process. */
  onSettingsChanged(listener: (settings: Settings) => void): Promise<Unsubscribe>;
  /** Called when the models or the default model have changed. */
  onModelsChanged(listener: () => void): Promise<Unsubscribe>;
  /** Called when the offline switch or the token is no longer the one that `netSettings` gave. */
  onNetworkChanged(listener: () => void): Promise<Unsubscribe>;
  /** Called when servers of tools, their states or what is allowed are no longer those that `tools` gave. */
  onToolsChanged(listener: () => void): Promise<Unsubscribe>;
  /** Called when other calls wait for a person than `waitingCalls` gave, or other requests than `waitingElicitations` gave. */
  onWaitingCallsChanged(listener: () => void): Promise<Unsubscribe>;
  /** Called when calls are further than `runningCalls` gave. */
  onRunningCallsChanged(listener: () => void): Promise<Unsubscribe>;
  /** Called when collections, their files or how far they are read are no longer those that `collections` gave. */
  onCollectionsChanged(listener: () => void): Promise<Unsubscribe>;
  /** Called when folders or files are dropped onto the window. */
  onDropped(listener: (paths: string[]) => void): Promise<Unsubscribe>;
  /** Called in the chat window when a new chat with a model is asked for. */
  onChatWith(listener: (reference: string) => void): Promise<Unsubscribe>;
  /** Called with the newest version that is known when that has changed. */
  onAppUpdateChanged(listener: (update: AppUpdate) => void): Promise<Unsubscribe>;
  /** Called when memory was freed because the computer ran short of it. */
  onMemoryReleased(listener: (release: MemoryRelease) => void): Promise<Unsubscribe>;
  /** Called when other models are in memory than `engineStatus` gave. */
  onEngineChanged(listener: () => void): Promise<Unsubscribe>;
  /** Called with a command that was chosen in a menu. */
  onCommand(listener: (command: Command) => void): Promise<Unsubscribe>;
  /** Called with the page that a window is asked for; each window knows its own. */
  onPageAsked(listener: (asked: PageRequest) => void): Promise<Unsubscribe>;
  /** Called when a link or a file was brought to the app. */
  onOpenRequested(listener: () => void): Promise<Unsubscribe>;
  /** Called when the app is to quit while something runs. */
  onQuitAsked(listener: () => void): Promise<Unsubscribe>;
  /** Called when quick entry is shown. */
  onQuickShown(listener: () => void): Promise<Unsubscribe>;
}

/** The host. Every call may reject with a {@link HostError}. */
export interface Platform extends Commands, Events {
  /** The address of a stored image: small, for a list, or whole. Always in a format that web views show. */
  imageUrl(attachment: string, size: 'preview' | 'whole'): string;
}

function isCode(value: unknown): value is ErrorCode {
  return ERROR_CODES.some((code) => code === value);
}

function isReason(value: unknown): value is Reason {
  return REASONS.some((reason) => reason === value);
}

function isArguments(value: unknown): value is NonNullable<HostError['arguments']> {
  return typeof value === 'object' && value !== null && Object.values(value).every((one) => typeof one === 'string' || typeof one === 'number');
}

/** The error of a rejected call. A failure without a code is one of the bridge itself, such as an unknown command. */
export function asHostError(reason: unknown): HostError {
  if (typeof reason === 'object' && reason !== null && 'message' in reason) {
    const code = 'code' in reason && isCode(reason.code) ? reason.code : 'bad_request';
    const args = 'arguments' in reason && isArguments(reason.arguments) ? { arguments: reason.arguments } : {};
    const because = 'reason' in reason && isReason(reason.reason) ? { reason: reason.reason } : {};
    return { code, ...because, ...args, message: String(reason.message) };
  }
  return { code: 'bad_request', message: String(reason) };
}
