/** What the windows can ask of their host. Nothing in here knows Tauri; `tauri.ts` and `fake.ts` fulfil it. */

import type { AnswerEvent } from '../bindings/AnswerEvent';
import type { Capabilities } from '../bindings/Capabilities';
import type { ChatList } from '../bindings/ChatList';
import type { ChatSettings } from '../bindings/ChatSettings';
import type { ChatSummary } from '../bindings/ChatSummary';
import type { ChatView } from '../bindings/ChatView';
import type { Content } from '../bindings/Content';
import type { ContextUse } from '../bindings/ContextUse';
import type { DeleteScope } from '../bindings/DeleteScope';
import type { MemoryCut } from '../bindings/MemoryCut';
import type { ScrollPlace } from '../bindings/ScrollPlace';
import type { ClientSetup } from '../bindings/ClientSetup';
import type { ChatWindowState } from '../bindings/ChatWindowState';
import type { ErrorCode } from '../bindings/ErrorCode';
import type { EndpointAddress } from '../bindings/EndpointAddress';
import type { EndpointInfo } from '../bindings/EndpointInfo';
import type { EndpointModels } from '../bindings/EndpointModels';
import type { EngineStatus } from '../bindings/EngineStatus';
import type { Error as HostError } from '../bindings/Error';
import type { LocalModel } from '../bindings/LocalModel';
import type { Position } from '../bindings/Position';
import type { ServerStatus } from '../bindings/ServerStatus';
import type { Settings } from '../bindings/Settings';
import type { StoredMessage } from '../bindings/StoredMessage';
import type { Turn } from '../bindings/Turn';
import type { WindowName } from '../bindings/WindowName';
import type { AppUpdatePlatform } from './appUpdate';
import type { Appearance } from '../bindings/Appearance';
import type { TurnWithTwoAnswers } from '../bindings/TurnWithTwoAnswers';
import type { DataPlatform } from './data';
import type { DesktopPlatform } from './desktop';
import type { HubPlatform } from './hub';
import type { FilePlatform } from './files';
import type { KeepingPlatform } from './keeping';
import type { PicturePlatform } from './pictures';
import type { PowerPlatform } from './power';

export type { HostError };

/** What a chat is set to that nobody has changed. */
export const DEFAULT_CHAT_SETTINGS: ChatSettings = { model: null, thinking: null, thinking_budget: null, system_prompt: '', sampling: {}, max_tokens: null, context: null, kv_bits: null, stop: [], image_detail: 'normal', carried_summary: '' };

/** How the windows look if nobody has changed that. */
export const DEFAULT_APPEARANCE: Appearance = { theme: 'system', text_size: 100, density: 'comfortable', code_theme: 'soft', width: 'normal', thoughts: 'while_thinking', zoom: 100 };

/** Takes back a subscription. */
export type Unsubscribe = () => void;

/** The host. Every call may reject with a {@link HostError}. */
export interface Platform extends AppUpdatePlatform, HubPlatform, PicturePlatform, FilePlatform, KeepingPlatform, DataPlatform, PowerPlatform, DesktopPlatform {
  /** All chats that are not in the trash. */
  chats(): Promise<ChatSummary[]>;
  /** The same, or what of it has changed since an edition of the list. */
  chatsSince(edition: number | null): Promise<ChatList>;
  /** One chat with the branch that is looked at; as in every view of a chat, a long branch is given by its newest messages. */
  chat(id: string): Promise<ChatView>;
  /** Messages right before this one on its branch, oldest first; none before the first. */
  earlierMessages(message: string): Promise<StoredMessage[]>;
  /** A new, empty chat. */
  createChat(settings: ChatSettings): Promise<ChatView>;
  renameChat(id: string, title: string): Promise<void>;
  pinChat(id: string, pinned: boolean): Promise<void>;
  /** Moves a chat to the trash. */
  deleteChat(id: string): Promise<void>;
  /** Takes a chat out of the trash. */
  restoreChat(id: string): Promise<ChatSummary>;
  setChatSettings(id: string, settings: ChatSettings): Promise<void>;
  /** Rejects settings that no chat may have, by the argument `field`. */
  checkChatSettings(settings: ChatSettings): Promise<void>;
  setDraft(id: string, draft: Content[]): Promise<void>;

  /** Stores a question and begins its answer; `attach` shows it growing. An edited question goes where the earlier one stands. */
  send(chat: string, content: Content[], position: Position): Promise<Turn>;
  /** Stores a question and begins two answers to it, each with settings of its own; the chat looks at the first. */
  sendToTwo(chat: string, content: Content[], position: Position, settings: [ChatSettings, ChatSettings]): Promise<TurnWithTwoAnswers>;
  /** Begins another answer beside this one, asked with these settings or those of the chat; the view shows the new branch. */
  regenerate(message: string, settings: ChatSettings | null): Promise<ChatView>;
  /** Shows the branch that this message is on. */
  showBranch(message: string): Promise<ChatView>;
  /** Writes an answer over, beside what it was; the view shows the new branch. */
  editAnswer(message: string, text: string): Promise<ChatView>;
  /** Deletes a message out of its chat. What `restoreChat` brings it back by. */
  deleteMessage(message: string, scope: DeleteScope): Promise<string>;
  /** Copies the branch that ends with this message into a new chat. */
  forkChat(message: string, title: string): Promise<ChatSummary>;
  /** Notes that a window shows the chat with all that was answered. */
  markRead(id: string): Promise<void>;
  /** Remembers where a chat was scrolled to; `null`: its end. */
  setScrollPlace(id: string, place: ScrollPlace | null): Promise<void>;
  /** How much of its model's context a chat takes with this question at its end. */
  contextUse(id: string, question: Content[]): Promise<ContextUse>;
  /** Lets the model remember nothing up to and including this message, with a summary in its place; `null`: everything again. */
  setMemoryCut(message: string, cut: MemoryCut | null): Promise<ChatView>;
  /** Lets the model forget the oldest turns, so that this question has room. */
  forgetOldest(id: string, question: Content[]): Promise<ChatView>;
  /** The same with a summary in their place, which the model writes. */
  summariseOldest(id: string, question: Content[]): Promise<ChatView>;
  /** Ends the summary that is being made of a chat. */
  stopSummary(id: string): Promise<void>;
  /** A new chat that carries a summary of this one, which the model writes. */
  carryOver(id: string, title: string): Promise<ChatView>;
  stop(message: string): Promise<void>;
  /** Ends the thought of an answer that is being written, so that what it says follows. */
  answerNow(message: string): Promise<void>;
  /** Continues the last answer of the branch, which ended early; the view shows it streaming. */
  continueAnswer(message: string): Promise<ChatView>;
  /** Follows an answer, whichever process writes it, from the event after `from` (0: from its beginning) until `finished` or `detached`. */
  attach(message: string, from: number, onEvent: (event: AnswerEvent) => void): Promise<void>;

  models(): Promise<LocalModel[]>;
  /** The reference of the model that new chats use. */
  defaultModel(): Promise<string>;
  setDefaultModel(reference: string): Promise<void>;
  /** Opens a window of the app or brings it to the front. */
  openWindow(name: WindowName): Promise<void>;
  engineStatus(): Promise<EngineStatus>;
  /** What can be done with the model of this reference, or with the default model. Opens no connection. */
  capabilities(reference: string | null): Promise<Capabilities>;

  /** The servers whose models may be asked. */
  endpoints(): Promise<EndpointInfo[]>;
  /** What an address means that is not yet one of a server's. Opens no connection; rejects what is no address. */
  endpointAddress(url: string): Promise<EndpointAddress>;
  /** Asks every server for the list of its models. */
  endpointModels(): Promise<EndpointModels[]>;
  /** Asks one server for the list of its models. */
  testEndpoint(name: string): Promise<EndpointModels>;
  /** The key goes to the keychain. */
  addEndpoint(name: string, url: string, key: string | null): Promise<void>;
  /** Replaces the key, or removes it. */
  setEndpointKey(name: string, key: string | null): Promise<void>;
  removeEndpoint(name: string): Promise<void>;

  /** The server that answers other programs, as it is now. */
  serverStatus(): Promise<ServerStatus>;
  /** Switches the server on or off, or sets it up otherwise. That it could not be started is told by its state. */
  setServer(on: boolean, port: number, network: boolean): Promise<ServerStatus>;
  /** Makes another key, which clients must send from now on. */
  newServerKey(): Promise<ServerStatus>;
  /** Removes the key. */
  forgetServerKey(): Promise<ServerStatus>;
  /** The key; `null` if there is none. */
  serverKey(): Promise<string | null>;
  /** The models that the server lists, by the names that clients use. */
  servedModels(): Promise<string[]>;
  /** How other programs are told to ask for a model, with the server's key or with dots in its place. */
  clientSetups(model: string, withKey: boolean): Promise<ClientSetup[]>;

  /** What is set for the whole app. */
  settings(): Promise<Settings>;
  /** Sets some of it; the rest stays as it is. What is set then. */
  changeSettings(change: Partial<Settings>): Promise<Settings>;
  /** What the chat window remembers from one start to the next. */
  chatWindowState(): Promise<ChatWindowState>;
  setChatWindowState(state: ChatWindowState): Promise<void>;

  /** Opens an address outside Ponder. */
  openLink(url: string): Promise<void>;
  /** Tells the host that the window has something to show. */
  firstPaint(): Promise<void>;

  /** Called when the list of chats is no longer what `chats` gave. */
  onChatsChanged(listener: () => void): Promise<Unsubscribe>;
  /** Called with what is set when that has changed, in whichever window or process. */
  onSettingsChanged(listener: (settings: Settings) => void): Promise<Unsubscribe>;
  /** Called when the models or the default model are no longer what was given. */
  onModelsChanged(listener: () => void): Promise<Unsubscribe>;
}

// A record rather than a list, so that the compiler notices a code that is missing here.
const CODES: Record<ErrorCode, true> = {
  context_full: true,
  bad_request: true,
  not_found: true,
  model_not_found: true,
  model_broken: true,
  model_unsupported: true,
  memory_short: true,
  picture_broken: true,
  file_broken: true,
  picture_not_seen: true,
  template_refused: true,
  busy: true,
  storage: true,
  keychain: true,
  engine: true,
  offline: true,
  network: true,
  key_refused: true,
  gated: true,
  disk_full: true,
  corrupt: true,
  stopped: true,
  engine_gone: true,
};

function isCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && value in CODES;
}

function isArguments(value: unknown): value is NonNullable<HostError['arguments']> {
  return typeof value === 'object' && value !== null && Object.values(value).every((one) => typeof one === 'string' || typeof one === 'number');
}

/** What a rejected call means. A failure without a code is the bridge itself, such as an unknown command. */
export function asHostError(reason: unknown): HostError {
  if (typeof reason === 'object' && reason !== null && 'message' in reason) {
    const code = 'code' in reason && isCode(reason.code) ? reason.code : 'bad_request';
    const args = 'arguments' in reason && isArguments(reason.arguments) ? { arguments: reason.arguments } : {};
    return { code, ...args, message: String(reason.message) };
  }
  return { code: 'bad_request', message: String(reason) };
}
