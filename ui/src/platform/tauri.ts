/** The host inside the app: Tauri's IPC. The only file that knows Tauri. */

import { Channel, convertFileSrc, invoke } from '@tauri-apps/api/core';
import { listen } from '@tauri-apps/api/event';

import type { AnswerEvent } from '../bindings/AnswerEvent';
import type { Download } from '../bindings/Download';
import type { Settings } from '../bindings/Settings';
import type { VerifyProgress } from '../bindings/VerifyProgress';
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

  send: (chat, content, position) => invoke('send', { chat, content, position }),
  regenerate: (message) => invoke('regenerate', { message }),
  showBranch: (message) => invoke('show_branch', { message }),
  stop: (message) => invoke('stop', { message }),
  answerNow: (message) => invoke('answer_now', { message }),
  continueAnswer: (message) => invoke('continue_answer', { message }),
  attach: (message, from, onEvent) =>
    invoke('attach', { message, from, onEvent: new Channel<AnswerEvent>(onEvent) }),

  // The bytes are the body of the call, because as JSON they would be a list of numbers.
  addPicture: (bytes) => invoke('add_picture', bytes),
  clipboardPicture: () => invoke('clipboard_picture'),
  pictureUrl: (attachment, size) => `${convertFileSrc(attachment, 'attachment')}?size=${size}`,
  pictureTokens: (model, detail, sizes) => invoke('picture_tokens', { model, detail, sizes }),
  dragPicture: (attachment, name) => invoke('drag_picture', { attachment, name }),
  pictureStorage: () => invoke('picture_storage'),

  models: () => invoke('models'),
  defaultModel: () => invoke('default_model'),
  setDefaultModel: (reference) => invoke('set_default_model', { reference }),
  openWindow: (name) => invoke('open_window', { name }),
  engineStatus: () => invoke('engine_status'),
  capabilities: (reference) => invoke('capabilities', { reference }),

  endpoints: () => invoke('endpoints'),
  endpointAddress: (url) => invoke('endpoint_address', { url }),
  endpointModels: () => invoke('endpoint_models'),
  testEndpoint: (name) => invoke('test_endpoint', { name }),
  addEndpoint: (name, url, key) => invoke('add_endpoint', { name, url, key }),
  setEndpointKey: (name, key) => invoke('set_endpoint_key', { name, key }),
  removeEndpoint: (name) => invoke('remove_endpoint', { name }),

  searchModels: (query) => invoke('search_models', { query }),
  describeModel: (id) => invoke('describe_model', { id }),
  modelCard: (id) => invoke('model_card', { id }),
  firstModels: () => invoke('first_models'),
  fitOf: (reference, context) => invoke('fit_of', { reference, context }),
  memory: () => invoke('memory'),

  download: (id, revision) => invoke('download', { id, revision }),
  pauseDownload: (id) => invoke('pause_download', { id }),
  resumeDownload: (id) => invoke('resume_download', { id }),
  cancelDownload: (id) => invoke('cancel_download', { id }),
  moveDownload: (id, place) => invoke('move_download', { id, place }),
  watchDownloads: (onChange) => invoke('watch_downloads', { onChange: new Channel<Download[]>(onChange) }),

  verifyModel: (reference, onProgress) =>
    invoke('verify_model', { reference, onProgress: new Channel<VerifyProgress>(onProgress) }),
  repairModel: (reference, onProgress) =>
    invoke('repair_model', { reference, onProgress: new Channel<VerifyProgress>(onProgress) }),
  removalOf: (reference) => invoke('removal_of', { reference }),
  removeModel: (reference) => invoke('remove_model', { reference }),
  updateOf: (reference) => invoke('update_of', { reference }),
  revealModel: (reference) => invoke('reveal_model', { reference }),
  modelFolders: () => invoke('model_folders'),
  addModelFolder: (path) => invoke('add_model_folder', { path }),
  forgetModelFolder: (path) => invoke('forget_model_folder', { path }),
  chatWith: (reference) => invoke('chat_with', { reference }),

  netSettings: () => invoke('net_settings'),
  setOffline: (offline) => invoke('set_offline', { offline }),
  setToken: (token) => invoke('set_token', { token }),
  outboundRequests: () => invoke('outbound_requests'),

  serverStatus: () => invoke('server_status'),
  setServer: (on, port, network) => invoke('set_server', { on, port, network }),
  newServerKey: () => invoke('new_server_key'),
  forgetServerKey: () => invoke('forget_server_key'),
  serverKey: () => invoke('server_key'),
  servedModels: () => invoke('served_models'),
  clientSetups: (model, withKey) => invoke('client_setups', { model, withKey }),

  settings: () => invoke('settings'),
  changeSettings: (change) => invoke('change_settings', { change }),
  chatWindowState: () => invoke('chat_window_state'),
  setChatWindowState: (state) => invoke('set_chat_window_state', { state }),

  openLink: (url) => invoke('open_link', { url }),
  firstPaint: () => invoke('first_paint'),

  onChatsChanged: (listener) => listen('chats_changed', () => listener()),
  onSettingsChanged: (listener) => listen<Settings>('settings_changed', (event) => listener(event.payload)),
  onNetworkChanged: (listener) => listen('network_changed', () => listener()),
  onModelsChanged: (listener) => listen('models_changed', () => listener()),
  onDropped: (listener) => listen<{ paths: string[] }>('tauri://drag-drop', (event) => listener(event.payload.paths)),
  onChatWith: (listener) => listen<string>('chat_with', (event) => listener(event.payload)),
};
