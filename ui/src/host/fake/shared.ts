/** The state that several parts of the in-memory host share. */

import { DEFAULT_SETTINGS } from '../../bindings/constants';
import type { LocalModel } from '../../bindings/LocalModel';
import type { Error as HostError } from '../../bindings/Error';
import type { Settings } from '../../bindings/Settings';
import type { Unsubscribe } from '../types';
import { MODELS } from './localModels';
import type { Chat } from './tree';

/** The answer to a question of the system's dialog; *more* is its second button that agrees. */
export type DialogAnswer = 'yes' | 'more' | 'no';

/** The shared state; `pace` is the time between two pieces of an answer, in milliseconds. */
export const shared = (pace: number) => ({
  pace,
  /** The settings of the app. */
  app: DEFAULT_SETTINGS,
  /** The models on this computer. */
  local: [...MODELS] as LocalModel[],
  /** The chats by their ids, those in the trash included. */
  kept: new Map<string, Chat>(),
  /** The time that reading an image or a file takes, in milliseconds. */
  readingTime: 0,
  /** A person's answer to every question of the system's dialogs. */
  dialogAnswer: 'yes' as DialogAnswer,
  /** The questions that were asked so far. */
  asked: [] as ('endpoint' | 'network' | 'delete' | 'tools')[],
  chatListeners: new Set<() => void>(),
  modelListeners: new Set<() => void>(),
  settingsListeners: new Set<(settings: Settings) => void>(),
});

export type Shared = ReturnType<typeof shared>;

/** Adds a listener until the returned function is called. */
export async function listen<T>(listeners: Set<T>, listener: T): Promise<Unsubscribe> {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Asks a question in a dialog of the system. */
export function ask(host: Shared, question: Shared['asked'][number]): DialogAnswer {
  host.asked.push(question);
  return host.dialogAnswer;
}

export function chatsChanged({ chatListeners }: Shared): void {
  for (const listener of chatListeners) queueMicrotask(listener);
}

export function modelsChanged({ modelListeners }: Shared): void {
  for (const listener of modelListeners) queueMicrotask(listener);
}

/** Stores settings without the checks of `changeSettings`, as commands with checks of their own do. */
export function storeSettings(host: Shared, change: Partial<Settings>): Settings {
  host.app = { ...host.app, ...change };
  for (const listener of host.settingsListeners) queueMicrotask(() => listener(host.app));
  modelsChanged(host);
  return host.app;
}

export function localModel({ local }: Shared, reference: string): LocalModel {
  const model = local.find((other) => other.reference === reference);
  if (!model) throw refusal('model_not_found', `No model called ${reference} is on this computer. Nothing was changed.`, { reference }, 'model_missing');
  return model;
}

/** The model of a reference, or the default model; `null` for a model of an endpoint. */
export function modelOf(host: Shared, reference: string | null): LocalModel | null {
  return reference?.startsWith('endpoint:') ? null : localModel(host, reference ?? host.app.default_model);
}

export function refusal(
  code: HostError['code'],
  message: string,
  args?: HostError['arguments'],
  reason?: HostError['reason'],
): HostError {
  return { code, ...(reason ? { reason } : {}), ...(args ? { arguments: args } : {}), message };
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
