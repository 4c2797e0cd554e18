/** The host inside the app: Tauri's IPC. The only file that knows Tauri. */

import { Channel, convertFileSrc, invoke } from '@tauri-apps/api/core';
import { listen } from '@tauri-apps/api/event';

import type { AnswerEvent } from '../bindings/AnswerEvent';
import type { AppUpdate } from '../bindings/AppUpdate';
import type { Command } from '../bindings/Command';
import type { Download } from '../bindings/Download';
import type { MemoryRelease } from '../bindings/MemoryRelease';
import type { Settings } from '../bindings/Settings';
import type { VerifyProgress } from '../bindings/VerifyProgress';
import type { Platform } from './types';

/** Whether this page runs in the app's web view. */
export const insideTauri = '__TAURI_INTERNALS__' in window;

/** A JSON text in which every other letter than those of ASCII is escaped. */
function asciiJson(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export const tauri: Platform = {
  chats: () => invoke('chats'),
  chatsSince: (edition) => invoke('chats_since', { edition }),
  chat: (id) => invoke('chat', { id }),
  earlierMessages: (message) => invoke('earlier_messages', { message }),
  createChat: (settings) => invoke('create_chat', { settings }),
  renameChat: (id, title) => invoke('rename_chat', { id, title }),
  pinChat: (id, pinned) => invoke('pin_chat', { id, pinned }),
  deleteChat: (id) => invoke('delete_chat', { id }),
  restoreChat: (id) => invoke('restore_chat', { id }),
  setChatSettings: (id, settings) => invoke('set_chat_settings', { id, settings }),
  checkChatSettings: (settings) => invoke('check_chat_settings', { settings }),
  setDraft: (id, draft) => invoke('set_draft', { id, draft }),

  searchHistory: (query) => invoke('search_history', { query }),
  archiveChat: (id, archived) => invoke('archive_chat', { id, archived }),
  trash: () => invoke('trash'),
  purgeChat: (id) => invoke('purge_chat', { id }),
  folders: () => invoke('folders'),
  createFolder: (name) => invoke('create_folder', { name }),
  changeFolder: (id, name, systemPrompt) => invoke('change_folder', { id, name, systemPrompt }),
  putFolderFile: (id, file) => invoke('put_folder_file', { id, file }),
  removeFolderFile: (id, attachment) => invoke('remove_folder_file', { id, attachment }),
  deleteFolder: (id) => invoke('delete_folder', { id }),
  restoreFolder: (id) => invoke('restore_folder', { id }),
  moveChat: (id, folder) => invoke('move_chat', { id, folder }),
  prefetchFolder: (id, settings) => invoke('prefetch_folder', { id, settings }),
  exportChats: (ids, format, name) => invoke('export_chats', { ids, format, name }),
  showExport: (path) => invoke('show_export', { path }),
  importChats: (bytes) => invoke('import_chats', bytes),
  saveCode: (code, language) => invoke('save_code', { code, language }),
  historyState: () => invoke('history_state'),
  showDataFolder: () => invoke('show_data_folder'),
  beginAnew: () => invoke('begin_anew'),
  openReadOnly: () => invoke('open_read_only'),

  send: (chat, content, position) => invoke('send', { chat, content, position }),
  sendToTwo: (chat, content, position, settings) => invoke('send_to_two', { chat, content, position, settings }),
  regenerate: (message, settings) => invoke('regenerate', { message, settings }),
  showBranch: (message) => invoke('show_branch', { message }),
  editAnswer: (message, text) => invoke('edit_answer', { message, text }),
  deleteMessage: (message, scope) => invoke('delete_message', { message, scope }),
  forkChat: (message, title) => invoke('fork_chat', { message, title }),
  markRead: (id) => invoke('mark_read', { id }),
  setScrollPlace: (id, place) => invoke('set_scroll_place', { id, place }),
  contextUse: (id, question) => invoke('context_use', { id, question }),
  setMemoryCut: (message, cut) => invoke('set_memory_cut', { message, cut }),
  forgetOldest: (id, question) => invoke('forget_oldest', { id, question }),
  summariseOldest: (id, question) => invoke('summarise_oldest', { id, question }),
  stopSummary: (id) => invoke('stop_summary', { id }),
  carryOver: (id, title) => invoke('carry_over', { id, title }),
  stop: (message) => invoke('stop', { message }),
  answerNow: (message) => invoke('answer_now', { message }),
  continueAnswer: (message) => invoke('continue_answer', { message }),
  attach: (message, from, onEvent) =>
    invoke('attach', { message, from, onEvent: new Channel<AnswerEvent>(onEvent) }),

  // The bytes are the body of the call, because as JSON they would be a list of numbers.
  addPicture: (bytes) => invoke('add_picture', bytes),
  // A header holds ASCII letters alone.
  addFile: (bytes, name) => invoke('add_file', bytes, { headers: { 'ponder-name': asciiJson(name) } }),
  fileText: (attachment) => invoke('file_text', { attachment }),
  contentTokens: (model, content) => invoke('content_tokens', { model, content }),
  clipboardPicture: () => invoke('clipboard_picture'),
  paste: () => invoke('paste'),
  clipboardFiles: () => invoke('clipboard_files'),
  clipboardFile: (place) => invoke('clipboard_file', { place }),
  pictureUrl: (attachment, size) => `${convertFileSrc(attachment, 'attachment')}?size=${size}`,
  pictureTokens: (model, detail, sizes) => invoke('picture_tokens', { model, detail, sizes }),
  dragPicture: (attachment, name) => invoke('drag_picture', { attachment, name }),
  pictureStorage: () => invoke('picture_storage'),

  models: () => invoke('models'),
  defaultModel: () => invoke('default_model'),
  setDefaultModel: (reference) => invoke('set_default_model', { reference }),
  openWindow: (name) => invoke('open_window', { name }),
  dataUse: () => invoke('data_use'),
  backUpNow: () => invoke('back_up_now'),
  revealDataFolder: () => invoke('reveal_data_folder'),
  deleteAllChats: (backups) => invoke('delete_all_chats', { backups }),
  ejectModel: (reference) => invoke('eject_model', { reference }),
  engineStatus: () => invoke('engine_status'),
  slowedBy: () => invoke('slowed_by'),
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
  putBackModel: (reference) => invoke('put_back_model', { reference }),
  freeModel: (reference) => invoke('free_model', { reference }),
  updateOf: (reference) => invoke('update_of', { reference }),
  revealModel: (reference) => invoke('reveal_model', { reference }),
  modelFolders: () => invoke('model_folders'),
  addModelFolder: (path) => invoke('add_model_folder', { path }),
  chooseModelFolder: () => invoke('choose_model_folder'),
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

  desktop: () => invoke('desktop'),
  openAtLogin: (on) => invoke('open_at_login', { on }),
  runCommand: (command) => invoke('run_command', { command }),
  setAvailableCommands: (available) => invoke('set_available_commands', { available }),
  takeArrivals: () => invoke('take_arrivals'),
  arrivedFile: (key) => invoke('arrived_file', { key }),
  importArrived: (key) => invoke('import_arrived', { key }),
  unfinished: () => invoke('unfinished'),
  quit: (choice) => invoke('quit', { choice }),
  hideQuickEntry: () => invoke('hide_quick_entry'),
  fitQuickEntry: (height) => invoke('fit_quick_entry', { height }),
  showChat: (id) => invoke('show_chat', { id }),
  appUpdate: () => invoke('app_update'),
  askForAppUpdate: () => invoke('ask_for_app_update'),
  installAppUpdate: () => invoke('install_app_update'),
  stopAppUpdate: () => invoke('stop_app_update'),
  restart: () => invoke('restart'),

  openLink: (url) => invoke('open_link', { url }),
  firstPaint: () => invoke('first_paint'),

  onChatsChanged: (listener) => listen('chats_changed', () => listener()),
  onSettingsChanged: (listener) => listen<Settings>('settings_changed', (event) => listener(event.payload)),
  onAppUpdateChanged: (listener) => listen<AppUpdate>('app_update_changed', (event) => listener(event.payload)),
  onMemoryReleased: (listener) => listen<MemoryRelease>('memory_released', (event) => listener(event.payload)),
  onEngineChanged: (listener) => listen('engine_changed', () => listener()),
  onNetworkChanged: (listener) => listen('network_changed', () => listener()),
  onModelsChanged: (listener) => listen('models_changed', () => listener()),
  onDropped: (listener) => listen<{ paths: string[] }>('tauri://drag-drop', (event) => listener(event.payload.paths)),
  onCommand: (listener) => listen<Command>('command', (event) => listener(event.payload)),
  onArrived: (listener) => listen('arrived', () => listener()),
  onQuitAsked: (listener) => listen('quit_asked', () => listener()),
  onQuickShown: (listener) => listen('quick_shown', () => listener()),
  onChatWith: (listener) => listen<string>('chat_with', (event) => listener(event.payload)),
};
