/** The host inside the app: Tauri's IPC. The only file that knows Tauri. */

import { Channel, invoke } from '@tauri-apps/api/core';
import { listen } from '@tauri-apps/api/event';

import type { AnswerEvent } from '../bindings/AnswerEvent';
import type { Platform } from './types';

/** Whether this page runs in the app's web view. */
export const insideTauri = '__TAURI_INTERNALS__' in window;

export const tauri: Platform = {
  chats: () => invoke('chats'),
  chat: (id) => invoke('chat', { id }),
  createChat: (settings) => invoke('create_chat', { settings }),
  renameChat: (id, title) => invoke('rename_chat', { id, title }),
  pinChat: (id, pinned) => invoke('pin_chat', { id, pinned }),
  deleteChat: (id) => invoke('delete_chat', { id }),
  restoreChat: (id) => invoke('restore_chat', { id }),
  setChatSettings: (id, settings) => invoke('set_chat_settings', { id, settings }),
  setDraft: (id, draft) => invoke('set_draft', { id, draft }),

  send: (chat, text) => invoke('send', { chat, text }),
  regenerate: (message) => invoke('regenerate', { message }),
  showBranch: (message) => invoke('show_branch', { message }),
  stop: (message) => invoke('stop', { message }),
  answerNow: (message) => invoke('answer_now', { message }),
  continueAnswer: (message) => invoke('continue_answer', { message }),
  running: () => invoke('running'),
  attach: (message, from, onEvent) =>
    invoke('attach', { message, from, onEvent: new Channel<AnswerEvent>(onEvent) }),

  models: () => invoke('models'),
  defaultModel: () => invoke('default_model'),
  setDefaultModel: (reference) => invoke('set_default_model', { reference }),
  openModelsWindow: () => invoke('open_models_window'),
  engineStatus: () => invoke('engine_status'),

  openLink: (url) => invoke('open_link', { url }),
  firstPaint: () => invoke('first_paint'),

  onChatsChanged: (listener) => listen('chats_changed', () => listener()),
  onModelsChanged: (listener) => listen('models_changed', () => listener()),
};
