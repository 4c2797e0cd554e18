// Generated from `src-tauri/src/commands` by `cargo test -p ponder-app --lib interface`; never edited.

import type { AddedImage } from '../bindings/AddedImage';
import type { AnswerEvent } from '../bindings/AnswerEvent';
import type { AppUpdate } from '../bindings/AppUpdate';
import type { BundleValue } from '../bindings/BundleValue';
import type { CallApproval } from '../bindings/CallApproval';
import type { CallProgress } from '../bindings/CallProgress';
import type { Capabilities } from '../bindings/Capabilities';
import type { ChatList } from '../bindings/ChatList';
import type { ChatSettings } from '../bindings/ChatSettings';
import type { ChatSummary } from '../bindings/ChatSummary';
import type { ChatView } from '../bindings/ChatView';
import type { ChatWindowState } from '../bindings/ChatWindowState';
import type { CheckedCitations } from '../bindings/CheckedCitations';
import type { ClientSetup } from '../bindings/ClientSetup';
import type { CollectionFile } from '../bindings/CollectionFile';
import type { CollectionsView } from '../bindings/CollectionsView';
import type { Command } from '../bindings/Command';
import type { CompactionMark } from '../bindings/CompactionMark';
import type { Content } from '../bindings/Content';
import type { ContextUse } from '../bindings/ContextUse';
import type { DataKind } from '../bindings/DataKind';
import type { DataUse } from '../bindings/DataUse';
import type { DeleteScope } from '../bindings/DeleteScope';
import type { Desktop } from '../bindings/Desktop';
import type { Download } from '../bindings/Download';
import type { EndpointAddress } from '../bindings/EndpointAddress';
import type { EndpointInfo } from '../bindings/EndpointInfo';
import type { EndpointModels } from '../bindings/EndpointModels';
import type { EngineStatus } from '../bindings/EngineStatus';
import type { ExportFormat } from '../bindings/ExportFormat';
import type { FieldProblem } from '../bindings/FieldProblem';
import type { FileText } from '../bindings/FileText';
import type { FoundServer } from '../bindings/FoundServer';
import type { GgufImport } from '../bindings/GgufImport';
import type { GgufModel } from '../bindings/GgufModel';
import type { HistoryContents } from '../bindings/HistoryContents';
import type { HistoryDamage } from '../bindings/HistoryDamage';
import type { HistoryHits } from '../bindings/HistoryHits';
import type { HistoryQuery } from '../bindings/HistoryQuery';
import type { HistoryRemedy } from '../bindings/HistoryRemedy';
import type { HistoryState } from '../bindings/HistoryState';
import type { HubModel } from '../bindings/HubModel';
import type { ImageDetail } from '../bindings/ImageDetail';
import type { ImportReport } from '../bindings/ImportReport';
import type { LocalModel } from '../bindings/LocalModel';
import type { MachineMemory } from '../bindings/MachineMemory';
import type { MemoryFit } from '../bindings/MemoryFit';
import type { ModelFolderEntry } from '../bindings/ModelFolderEntry';
import type { NetSettings } from '../bindings/NetSettings';
import type { Note } from '../bindings/Note';
import type { OpenRequest } from '../bindings/OpenRequest';
import type { OutboundRequest } from '../bindings/OutboundRequest';
import type { PassagePage } from '../bindings/PassagePage';
import type { PassageText } from '../bindings/PassageText';
import type { Position } from '../bindings/Position';
import type { Project } from '../bindings/Project';
import type { QuantizeChoice } from '../bindings/QuantizeChoice';
import type { QuantizeFormat } from '../bindings/QuantizeFormat';
import type { QuantizedModel } from '../bindings/QuantizedModel';
import type { QuitChoice } from '../bindings/QuitChoice';
import type { QuotedPassage } from '../bindings/QuotedPassage';
import type { ReadingCost } from '../bindings/ReadingCost';
import type { Removal } from '../bindings/Removal';
import type { RepairedHistory } from '../bindings/RepairedHistory';
import type { RunningCall } from '../bindings/RunningCall';
import type { RunningWork } from '../bindings/RunningWork';
import type { ScrollPlace } from '../bindings/ScrollPlace';
import type { SearchPage } from '../bindings/SearchPage';
import type { SearchQuery } from '../bindings/SearchQuery';
import type { ServerPrompts } from '../bindings/ServerPrompts';
import type { ServerResources } from '../bindings/ServerResources';
import type { ServerStatus } from '../bindings/ServerStatus';
import type { Settings } from '../bindings/Settings';
import type { Slowdown } from '../bindings/Slowdown';
import type { StoredMessage } from '../bindings/StoredMessage';
import type { SummaryProgress } from '../bindings/SummaryProgress';
import type { TokenCount } from '../bindings/TokenCount';
import type { ToolBundle } from '../bindings/ToolBundle';
import type { ToolClient } from '../bindings/ToolClient';
import type { ToolRef } from '../bindings/ToolRef';
import type { ToolRule } from '../bindings/ToolRule';
import type { ToolSetup } from '../bindings/ToolSetup';
import type { ToolsChange } from '../bindings/ToolsChange';
import type { ToolsView } from '../bindings/ToolsView';
import type { TrashedChat } from '../bindings/TrashedChat';
import type { Turn } from '../bindings/Turn';
import type { TurnWithTwoAnswers } from '../bindings/TurnWithTwoAnswers';
import type { Update } from '../bindings/Update';
import type { Verification } from '../bindings/Verification';
import type { VerifyProgress } from '../bindings/VerifyProgress';
import type { WaitingCall } from '../bindings/WaitingCall';
import type { WaitingElicitation } from '../bindings/WaitingElicitation';
import type { WebSearchSetup } from '../bindings/WebSearchSetup';
import type { WindowName } from '../bindings/WindowName';
import type { WindowPage } from '../bindings/WindowPage';

/** The commands of the host. Every call may reject with its error. */
export interface Commands {
  /** All chats that are not in the trash. */
  chats(): Promise<Array<ChatSummary>>;
  /** The list of chats, or the changes since the snapshot of it that a window has. */
  chatsSince(snapshot: number | null): Promise<ChatList>;
  /** One chat with the branch that is shown. As in every view of a chat, a long branch begins with its newest messages. */
  chat(id: string): Promise<ChatView>;
  /** The messages right before this one on its branch, oldest first; none before the first. */
  earlierMessages(message: string): Promise<Array<StoredMessage>>;
  /** Creates an empty chat; without settings it starts as the user has set new chats. */
  createChat(settings: ChatSettings | null): Promise<ChatView>;
  /** The settings that a new chat starts with. */
  newChatSettings(): Promise<ChatSettings>;
  /** Gives a chat another title. */
  renameChat(id: string, title: string): Promise<void>;
  /** Pins a chat to the top of the list, or unpins it. */
  pinChat(id: string, pinned: boolean): Promise<void>;
  /** Moves a chat to the trash. */
  deleteChat(id: string): Promise<void>;
  /** Takes a chat, or messages that were deleted, out of the trash. */
  restoreChat(id: string): Promise<ChatSummary>;
  /** Stores the settings of a chat, which apply from its next answer on. */
  setChatSettings(id: string, settings: ChatSettings): Promise<void>;
  /** Rejects settings that no chat may have, by the argument `field`; for a chat that does not exist yet. */
  checkChatSettings(settings: ChatSettings): Promise<void>;
  /** Stores the unsent question of a chat. */
  setDraft(id: string, draft: Array<Content>): Promise<void>;
  /** Begins a temporary chat, of which nothing is written; the one before it is gone. */
  beginTemporaryChat(settings: ChatSettings): Promise<ChatView>;
  /** The temporary chat, if there is one. */
  temporaryChat(): Promise<ChatView | null>;
  /** Makes the temporary chat a normal one, with the same ids. */
  keepTemporaryChat(): Promise<void>;
  /** Ends the temporary chat, of which nothing is left. */
  closeTemporaryChat(): Promise<void>;
  /** Shows the branch that this message is on. */
  showBranch(message: string): Promise<ChatView>;
  /** Stores another wording of an answer next to the original. The view shows the new branch. */
  editAnswer(message: string, text: string): Promise<ChatView>;
  /** Deletes a message from its chat. Returns the id by which `restoreChat` restores it. */
  deleteMessage(message: string, scope: DeleteScope): Promise<string>;
  /** Copies the branch that ends with this message into a new chat. */
  forkChat(message: string, title: string): Promise<ChatSummary>;
  /** Marks a chat as read, because a window shows it with all its answers. */
  markRead(id: string): Promise<void>;
  /** Remembers the scroll position of a chat; `null` is its end. */
  setScrollPlace(id: string, place: ScrollPlace | null): Promise<void>;
  /** The part of its model's context that a chat takes with this question at its end. */
  contextUse(id: string, question: Array<Content>): Promise<ContextUse>;
  /** Compacts the chat up to and including this message, with a summary in its place; `null` restores the whole conversation. */
  setCompactionMark(message: string, mark: CompactionMark | null): Promise<ChatView>;
  /** Drops the oldest turns from the model's context, so that this question fits. */
  dropOldestTurns(id: string, question: Array<Content>): Promise<ChatView>;
  /** Replaces the oldest turns in the model's context by a summary that the model writes. */
  summarizeOldestTurns(id: string, question: Array<Content>, onProgress: (message: SummaryProgress) => void): Promise<ChatView>;
  /** Stops the summary of a chat that is being written. */
  stopSummary(id: string): Promise<void>;
  /** Creates a chat that starts with a summary of this one, which the model writes. */
  forkWithSummary(id: string, title: string, onProgress: (message: SummaryProgress) => void): Promise<ChatView>;
  /** The matches of a search in titles, questions, answers and names of attachments, in all chats outside the trash. */
  searchHistory(query: HistoryQuery): Promise<HistoryHits>;
  /** Archives a chat, or takes it out of the archive. */
  archiveChat(id: string, archived: boolean): Promise<void>;
  /** The chats in the trash, latest first. */
  trash(): Promise<Array<TrashedChat>>;
  /** Deletes a chat of the trash for good. */
  purgeChat(id: string): Promise<void>;
  /** All projects, by name. */
  projects(): Promise<Array<Project>>;
  /** Creates a project. */
  createProject(name: string): Promise<Project>;
  /** Changes the name and the instructions of a project. */
  changeProject(id: string, name: string, systemPrompt: string): Promise<void>;
  /** Has the model read a project's files, if it is loaded and idle, because a chat with these settings is about to start there. */
  prefetchProject(id: string, settings: ChatSettings): Promise<void>;
  /** Adds a stored file to the end of a project. An identical one that is there, or was removed, gets this name and excerpt instead. */
  putProjectFile(id: string, file: Content): Promise<void>;
  /** Removes a file from a project; `putProjectFile` restores it. */
  removeProjectFile(id: string, attachment: string): Promise<void>;
  /** Deletes a project; its chats remain, outside of it. */
  deleteProject(id: string): Promise<void>;
  /** Restores a deleted project. */
  restoreProject(id: string): Promise<void>;
  /** Moves a chat into a project, or out of all of them. */
  moveChat(id: string, project: string | null): Promise<void>;
  /** The way the history was opened: repaired, read-only or as it is. */
  historyState(): Promise<HistoryState>;
  /** All collections with the states of their files, and how far passages are embedded. */
  collections(): Promise<CollectionsView>;
  /** Asks for a folder in the system's dialog and begins to read it; its id, or null if the user chose none. */
  chooseCollectionFolder(): Promise<string | null>;
  /** Asks for files in the system's dialog and begins to read them; the id of their collection, or null if the user chose none. */
  chooseCollectionFiles(): Promise<string | null>;
  /** Begins to read the user's own chats as a collection, which projects and chats may ask like others. */
  addOwnChats(): Promise<void>;
  /** The files of a collection in the order of their paths. */
  collectionFiles(id: string): Promise<Array<CollectionFile>>;
  /** Gives a collection another name. */
  renameCollection(id: string, name: string): Promise<void>;
  /** Stops reading the files of a collection, or goes on; what was read is found in both cases. */
  pauseCollection(id: string, paused: boolean): Promise<void>;
  /** Looks through the folder of a collection once more. */
  updateCollection(id: string): Promise<void>;
  /** Begins to read the images of a collection with a vision model of this computer. */
  readCollectionImages(id: string, model: string): Promise<void>;
  /** Stops reading the images of a collection; those that were read stay. */
  stopCollectionImages(id: string): Promise<void>;
  /** Forgets a collection with all that was read of it. Its files stay. */
  removeCollection(id: string): Promise<void>;
  /** Has the chats of a project ask these collections. */
  setProjectCollections(id: string, collections: Array<string>): Promise<void>;
  /** Holds the marks of a response against the passages that its chat was given. */
  citations(message: string): Promise<CheckedCitations>;
  /** The file of a passage with the passage in it. */
  openPassage(passage: QuotedPassage): Promise<PassageText>;
  /** A page of the file of a passage as an image of this width in pixels, with the lines of the passage that are on it. An image is its own first page. */
  passagePage(passage: QuotedPassage, page: number, width: number): Promise<PassagePage>;
  /** The cost of reading all documents of a chat for its next message; without a chat, of a new one with these settings in this project. */
  readingCost(chat: string | null, project: string | null, settings: ChatSettings): Promise<ReadingCost>;
  /** Reads all documents of a chat for a question, telling of each part, then asks it with the notes, as `send` does. Rejects with `stopped` if `stop_reading` ended it. */
  sendAfterReading(chat: string, content: Array<Content>, position: Position, onProgress: (message: CallProgress) => void): Promise<Turn>;
  /** Stops reading the documents of a chat; its question is not asked. */
  stopReading(chat: string): Promise<void>;
  /** The notes of a project or, without one, those for chats outside of projects; the oldest first. */
  notes(project: string | null): Promise<Array<Note>>;
  /** Adds a note that the user wrote. */
  addNote(project: string | null, text: string): Promise<Note>;
  /** Gives a note another text. */
  changeNote(note: string, text: string): Promise<void>;
  /** Deletes a note. */
  deleteNote(note: string): Promise<void>;
  /** Has the chats of a project told its notes, or not. */
  useProjectNotes(id: string, usesNotes: boolean): Promise<void>;
  /** Stores a question and begins its answer, which `attach` shows as it grows. An edited question goes where the earlier one stands. */
  send(chat: string, content: Array<Content>, position: Position): Promise<Turn>;
  /** Stores a question and begins two answers to it, each with its own settings. The chat shows the first. */
  sendToTwo(chat: string, content: Array<Content>, position: Position, settings: [ChatSettings, ChatSettings]): Promise<TurnWithTwoAnswers>;
  /** Begins another answer next to this one, with these settings or those of the chat. The view shows the new branch. */
  regenerate(message: string, settings: ChatSettings | null): Promise<ChatView>;
  /** Stops an answer and keeps what it has said. */
  stop(message: string): Promise<void>;
  /** Ends the thinking of an answer, so that its text follows. */
  answerNow(message: string): Promise<void>;
  /** Continues the last answer of the branch, which ended early. The view shows it streaming. */
  continueAnswer(message: string): Promise<ChatView>;
  /** Follows an answer, whichever process writes it, after event number `from` (0: from its beginning) until `finished` or `detached`. */
  attach(message: string, from: number, onEvent: (message: AnswerEvent) => void): Promise<void>;
  /** Extracts the text of a file for this chat (empty for a new one) and stores it, an identical one once. It belongs to no message yet. Rejects a file without text, with the reason. */
  addFile(bytes: Uint8Array, name: string, chat: string): Promise<Extract<Content, { kind: 'file' }>>;
  /** Pastes the system's clipboard where the focus is, for web views in which no page can. */
  paste(): Promise<void>;
  /** The names of the files in the system's clipboard, for web views that keep them from pages. */
  clipboardFiles(): Promise<Array<string>>;
  /** The bytes of one of the clipboard's files, by its place in their list. Rejects a folder. The page never learns the path. */
  clipboardFile(place: number): Promise<ArrayBuffer>;
  /** The stored text of a file, in its pages or lines. */
  fileText(attachment: string): Promise<FileText>;
  /** The tokens of this content in a question to a model, or to the default model; images are left out. */
  contentTokens(model: string | null, content: Array<Content>): Promise<TokenCount>;
  /** Stores an image for this chat (empty for a new one), an identical one once. It belongs to no message yet. Rejects a file that is no image, with the reason. */
  addImage(bytes: Uint8Array, chat: string): Promise<AddedImage>;
  /** The image in the system's clipboard, for web views that show pages its texts alone; empty if there is none. */
  clipboardImage(): Promise<ArrayBuffer>;
  /** The tokens of an image of each of these sizes (width, height); `null` if the model has no vision or the number is not known. */
  imageTokens(model: string | null, detail: ImageDetail, sizes: Array<[number, number]>): Promise<Array<number> | null>;
  /** The bytes that the images of all chats take on disk. */
  imageStorage(): Promise<number>;
  /** Starts dragging an image out of the window, as a file of this name without its place and camera. */
  dragImage(attachment: string, name: string): Promise<void>;
  /** Holds a page that a response wrote, or with `drawing` an SVG, in place of the one before. Returns the address that a frame in a sandbox shows it under. */
  showPreview(code: string, drawing: boolean): Promise<string>;
  /** Forgets what the preview shows. Returns true if it showed something: a page that is new may have been ended by it. */
  closePreview(): Promise<boolean>;
  /** The models on this computer. */
  models(): Promise<Array<LocalModel>>;
  /** The reference of the model that new chats use. */
  defaultModel(): Promise<string>;
  /** Sets the model that new chats use. */
  setDefaultModel(reference: string): Promise<void>;
  /** The loaded models and the memory they take. */
  engineStatus(): Promise<EngineStatus>;
  /** The reason why the computer runs slower now; `null` if the system reports none. */
  slowedBy(): Promise<Slowdown | null>;
  /** Unloads a model from memory; its next answer loads it again. Rejects with `busy` while it answers. */
  unloadModel(reference: string): Promise<void>;
  /** The capabilities of the model of this reference, or of the default model. Opens no connection. */
  capabilities(reference: string | null): Promise<Capabilities>;
  /** The configured endpoints. */
  endpoints(): Promise<Array<EndpointInfo>>;
  /** The meaning of an address that is not yet an endpoint. Opens no connection and rejects an invalid one. */
  endpointAddress(url: string): Promise<EndpointAddress>;
  /** Asks every endpoint for its list of models. */
  endpointModels(): Promise<Array<EndpointModels>>;
  /** Asks one endpoint for its list of models. */
  testEndpoint(name: string): Promise<EndpointModels>;
  /** Adds an endpoint. Its key goes to the keychain; `unencrypted_key` allows that it is sent unencrypted to another computer. Asks in a dialog of the system before the first one on another computer; false if the user declines. */
  addEndpoint(name: string, url: string, key: string | null, unencryptedKey: boolean): Promise<boolean>;
  /** Replaces the key of an endpoint, or removes it. `unencrypted_key` allows that it is sent unencrypted to another computer. */
  setEndpointKey(name: string, key: string | null, unencryptedKey: boolean): Promise<void>;
  /** Allows that an endpoint is sent passages of the user's own chats and notes about them, or forbids it. */
  setEndpointPersonal(name: string, personal: boolean): Promise<void>;
  /** Removes an endpoint and its key. */
  removeEndpoint(name: string): Promise<void>;
  /** One page of the hub's search results. */
  searchModels(query: SearchQuery): Promise<SearchPage>;
  /** Everything that is known about a model without downloading it. */
  describeModel(id: string): Promise<HubModel>;
  /** The model's card, in Markdown. */
  modelCard(id: string): Promise<string>;
  /** Recommended first models for this computer. Opens no connection. */
  firstModels(): Promise<Array<HubModel>>;
  /** The memory that a model needs at this context; `null` is the context it is offered with. */
  fitOf(reference: string, context: number | null): Promise<MemoryFit>;
  /** The memory that models may use on this computer, in bytes, and how much of it is free now. */
  memory(): Promise<MachineMemory>;
  /** Queues the download of a model, or resumes it. Without a revision it is the main branch. */
  download(id: string, revision: string | null): Promise<void>;
  /** Pauses a download. */
  pauseDownload(id: string): Promise<void>;
  /** Resumes a download. */
  resumeDownload(id: string): Promise<void>;
  /** Cancels a download and deletes its files, or takes a finished one off the list. */
  cancelDownload(id: string): Promise<void>;
  /** Moves a download to this place in the queue, counted from 0. */
  moveDownload(id: string, place: number): Promise<void>;
  /** Sends all downloads at once, and all of them again after every change, a few times a second at most. */
  watchDownloads(onChange: (message: Array<Download>) => void): Promise<void>;
  /** The models that Ollama and LM Studio have on this computer. */
  ggufModels(): Promise<Array<GgufModel>>;
  /** Asks for GGUF files in the system's dialog, and returns their paths, which can be imported. */
  chooseGgufFiles(): Promise<Array<string>>;
  /** Makes a model of a listed one or of a file. Rejects with `stopped` if it was stopped; nothing is left of it then. */
  importGguf(reference: string, onProgress: (message: VerifyProgress) => void): Promise<GgufImport>;
  /** Stops an import. */
  stopGgufImport(reference: string): Promise<void>;
  /** The formats that a copy may have, and its size in each. Reads nothing but headers. */
  quantizeChoices(reference: string): Promise<Array<QuantizeChoice>>;
  /** Writes a quantized copy of a model beside imported ones, and compares how both predict a text if `compare` is set. Rejects with `stopped` if it was stopped; nothing is left of it then. */
  quantizeModel(reference: string, format: QuantizeFormat, compare: boolean, onProgress: (message: VerifyProgress) => void): Promise<QuantizedModel>;
  /** Stops the writing of a copy. */
  stopQuantizing(reference: string): Promise<void>;
  /** Reads every file of a model again and compares it with the hub's checksums. */
  verifyModel(reference: string, onProgress: (message: VerifyProgress) => void): Promise<Verification>;
  /** Reads every file of a model again, downloads the wrong and missing ones, and returns what is still wrong. */
  repairModel(reference: string, onProgress: (message: VerifyProgress) => void): Promise<Verification>;
  /** The consequences of removing a model; nothing is removed yet. */
  removalOf(reference: string): Promise<Removal>;
  /** Removes a model; true if it can be put back until it is freed. */
  removeModel(reference: string): Promise<boolean>;
  /** Puts a removed model back. */
  putBackModel(reference: string): Promise<void>;
  /** Deletes the files of a removed model. */
  freeModel(reference: string): Promise<void>;
  /** The newer version of a model on the hub; `null` if there is none. */
  updateOf(reference: string): Promise<Update | null>;
  /** The references of the models on this computer that can draft the answers of this one, the smallest first. */
  draftModels(reference: string): Promise<Array<string>>;
  /** Shows the model's folder in the system's file browser. */
  revealModel(reference: string): Promise<void>;
  /** The folders in which models are looked for. */
  modelFolders(): Promise<Array<ModelFolderEntry>>;
  /** Adds a folder in which models are looked for. */
  addModelFolder(path: string): Promise<void>;
  /** Asks for a folder in the system's dialog and adds it; false if the user chose none. */
  chooseModelFolder(): Promise<boolean>;
  /** Stops looking for models in a folder; its files stay. */
  forgetModelFolder(path: string): Promise<void>;
  /** Lets a model be loaded whatever memory it needs, until the app ends. */
  loadAnyway(reference: string): Promise<void>;
  /** Starts a new chat with this model in the chat window. */
  chatWith(reference: string): Promise<void>;
  /** The place of all data and the space that each kind takes. */
  dataUse(): Promise<DataUse>;
  /** Makes a backup of the chats and verifies it. */
  backUpNow(): Promise<void>;
  /** Adds what can be read of a damaged file that a repair set aside at this time, in milliseconds since 1970, and is not here. */
  addFromSetAside(setAsideAt: number): Promise<HistoryContents>;
  /** Shows the folder with a kind of the data in the system's file browser. */
  revealData(kind: DataKind): Promise<void>;
  /** Deletes all chats for good, if the user agrees in a dialog of the system, which also offers to delete the backups. False if they decline. */
  deleteAllChats(): Promise<boolean>;
  /** The settings of the network: the offline switch, the hub and its token. */
  netSettings(): Promise<NetSettings>;
  /** Switches the network off or on. */
  setOffline(offline: boolean): Promise<NetSettings>;
  /** Stores the hub's token in the keychain; an empty one is removed from it. */
  setToken(token: string): Promise<NetSettings>;
  /** The requests that left this computer, newest first. */
  outboundRequests(): Promise<Array<OutboundRequest>>;
  /** The server for other programs as it is now. */
  serverStatus(): Promise<ServerStatus>;
  /** Switches the server on or off, or changes its address. Asks in a dialog of the system before it answers other computers; if the user declines, it answers this one alone. Switched on without a key, it gets one, if there is a keychain to keep it. Its state says if it could not be started. */
  setServer(on: boolean, port: number, network: boolean): Promise<ServerStatus>;
  /** Creates another key, which clients must send from now on. */
  newServerKey(): Promise<ServerStatus>;
  /** Removes the key: clients need none until the server is switched on again, and other computers may not ask. */
  forgetServerKey(): Promise<ServerStatus>;
  /** The key, to be shown or copied; `null` if there is none. */
  serverKey(): Promise<string | null>;
  /** Lets programs search these collections of documents and no others, by their ids. A running server goes on. */
  allowServerCollections(collections: Array<string>): Promise<ServerStatus>;
  /** The models that the server lists, by the names that clients use. */
  servedModels(): Promise<Array<string>>;
  /** The configuration of other programs for a model of the server, with its key or with dots in its place. */
  clientSetups(model: string, withKey: boolean): Promise<Array<ClientSetup>>;
  /** Servers and tools, for the choice of a chat. Nothing is started. */
  chatTools(): Promise<ToolsView>;
  /** How the tools that a chat names now differ from those that its model is told of; null if they do not. Nothing is started. */
  toolsChange(chat: string): Promise<ToolsChange | null>;
  /** Has the model of a chat told of the tools that the chat names now; its next prompt is read anew. */
  useNewTools(chat: string): Promise<void>;
  /** The resources of the servers that are switched on, which are started for it: the person asked. */
  serverResources(): Promise<Array<ServerResources>>;
  /** Reads a resource of a server as a file of the person is read, and stores it for this chat (empty for a new one). It belongs to no message yet. */
  attachResource(server: string, uri: string, name: string, chat: string): Promise<Extract<Content, { kind: 'image' | 'file' }>>;
  /** The prompts of the servers that run; with `start`, also of those that are switched on, which are started for it. */
  serverPrompts(start: boolean): Promise<ServerPrompts>;
  /** The text of a prompt of a server, filled in with these values by the names of its arguments. */
  serverPrompt(server: string, name: string, values: Array<[string, string]>): Promise<string>;
  /** Starts a server that is switched on, so that its tools are known. */
  startToolServer(id: string): Promise<void>;
  /** Asks about the calls of an answer again, whose process is gone; each is shown whole. */
  runCallsAgain(answer: string): Promise<ChatView>;
  /** Begins the next answer without the results of calls that have none. */
  goOnWithoutCalls(answer: string): Promise<ChatView>;
  /** The calls that run, as far as their progress is known. Nothing of it is stored. */
  runningCalls(): Promise<Array<RunningCall>>;
  /** Brings the window in which calls wait to the front. */
  showConsent(): Promise<void>;
  /** The calls that wait for the person. */
  waitingCalls(): Promise<Array<WaitingCall>>;
  /** The person's consent to a call that was shown. */
  approveCall(approval: CallApproval): Promise<void>;
  /** The person's refusal of a call that was shown, with a word for the model. */
  refuseCall(answer: string, call: string, hash: string, word: string): Promise<void>;
  /** The requests of servers that wait for the person. */
  waitingElicitations(): Promise<Array<WaitingElicitation>>;
  /** Sends the values of a form, a JSON object as text, to the server that asked for them. What is wrong with them is returned, and nothing was sent then. */
  sendForm(id: string, values: string): Promise<Array<FieldProblem>>;
  /** Opens the address that a server asks for in the browser, and tells the server. */
  openElicitedAddress(id: string): Promise<void>;
  /** Tells the server that asks for something that the person declines. */
  declineElicitation(id: string): Promise<void>;
  /** Servers, tools and consents. Nothing is started. */
  tools(): Promise<ToolsView>;
  /** Adds a server, which is off, and returns its id. Secrets go to the keychain. */
  addToolServer(setup: ToolSetup): Promise<string>;
  /** Lets the user choose a bundle in a dialog of the system and looks into it; null if they choose none. Nothing of it is written, and nothing runs. */
  chooseToolBundle(): Promise<ToolBundle | null>;
  /** Adds the server of the bundle that was looked into, which is off, and returns its id. Sensitive values go to the keychain. */
  addToolBundle(hash: string, name: string, values: Array<BundleValue>): Promise<string>;
  /** Changes a server. A part without a value keeps its secret. With another command or other variables it is off. */
  changeToolServer(id: string, setup: ToolSetup): Promise<void>;
  /** Asks for a folder in the system's dialog, which the server is told of; false if the user chose none. */
  addToolRoot(id: string): Promise<boolean>;
  /** Takes a folder from a server. */
  removeToolRoot(id: string, root: string): Promise<void>;
  /** Servers in the configurations of other programs on this computer. Nothing is added. */
  foundToolServers(): Promise<Array<FoundServer>>;
  /** Servers in a pasted configuration. Nothing is added. */
  readToolConfiguration(text: string): Promise<Array<FoundServer>>;
  /** Switches a server on or off. Asks in a dialog of the system, which shows the command, before it is on; false if the user declines. */
  switchToolServer(id: string, on: boolean): Promise<boolean>;
  /** Removes a server with its rules and secrets. */
  removeToolServer(id: string): Promise<void>;
  /** Ends a server and starts it anew. */
  restartToolServer(id: string): Promise<void>;
  /** Signs in to a server at an address in the browser, and connects once it came back. Asks in a dialog of the system, which shows the page, before it opens; false if the user declines, or began anew. */
  signInToolServer(id: string, client: ToolClient | null): Promise<boolean>;
  /** Forgets the tokens of a server and who Ponder is to it. */
  signOutToolServer(id: string): Promise<void>;
  /** The last lines of a server's standard error. */
  toolServerLog(id: string): Promise<Array<string>>;
  /** Stores the person's word about a tool; null takes it back. */
  setToolRule(tool: ToolRef, rule: ToolRule | null): Promise<void>;
  /** Takes back every consent for a tool, or those for this host. */
  revokeToolGrant(tool: ToolRef, host: string | null): Promise<void>;
  /** Switches one of Ponder's own tools that reach the internet on or off. */
  switchOwnTool(tool: string, on: boolean): Promise<void>;
  /** Chooses the search engine; its key goes to the keychain. Null chooses none. */
  setWebSearch(setup: WebSearchSetup | null): Promise<void>;
  /** The settings of the whole app. */
  settings(): Promise<Settings>;
  /** Changes some settings by their keys and tells every window. Returns all of them. */
  changeSettings(change: Partial<Settings>): Promise<Settings>;
  /** The state that the chat window keeps from one start to the next. */
  chatWindowState(): Promise<ChatWindowState>;
  /** Stores the state that the chat window keeps. */
  setChatWindowState(state: ChatWindowState): Promise<void>;
  /** Writes these chats, or all of them, to a new file in the user's download folder. Returns its path. */
  exportChats(ids: Array<string> | null, format: ExportFormat, name: string): Promise<string>;
  /** Shows an exported file in the system's file browser. */
  showExport(path: string): Promise<void>;
  /** Imports chats from a file of Ponder, ChatGPT, Claude or LM Studio. */
  importChats(bytes: Uint8Array): Promise<ImportReport>;
  /** Saves code of an answer to a file that the user chooses. Returns the file's name, or `null` if they chose none. The page gives words alone and never learns the path. */
  saveCode(code: string, language: string): Promise<string | null>;
  /** The newest version of the app that is known. Opens no connection. */
  appUpdate(): Promise<AppUpdate>;
  /** Checks for a newer version of the app. */
  askForAppUpdate(): Promise<AppUpdate>;
  /** Downloads the version that was found, verifies it and replaces this one. Nothing changes before that. */
  installAppUpdate(): Promise<AppUpdate>;
  /** Stops the download of a new version. */
  stopAppUpdate(): Promise<void>;
  /** Quits the app in the usual way and starts the installed version. */
  restart(): Promise<void>;
  /** Notes that a call failed because the history is damaged, upon which the failure window opens. */
  noteHistoryDamage(): Promise<void>;
  /** Counts what can be read of a damaged history. Nothing is changed. */
  examineHistory(): Promise<HistoryDamage>;
  /** Puts what can be read in the place of a damaged history, which is kept. An app that runs ends its work before, and has to be opened again. */
  repairHistory(remedy: HistoryRemedy): Promise<RepairedHistory>;
  /** Opens the app again. */
  openAgain(): Promise<void>;
  /** Shows the folder of all data in the system's file browser. */
  showDataFolder(): Promise<void>;
  /** Moves the history aside, where it is kept, and restarts the app with an empty one. */
  beginAnew(): Promise<void>;
  /** Restarts the app with a copy of everything that can be read. */
  openReadOnly(): Promise<void>;
  /** The abilities of the desktop that settings depend on. */
  desktop(): Promise<Desktop>;
  /** Runs a menu command that is not the page's own. */
  runCommand(command: Command): Promise<void>;
  /** Tells the menus which commands the chat window can run now, and which switches among them are on. */
  setAvailableCommands(available: Array<Command>, checked: Array<Command>): Promise<void>;
  /** The links and files that were brought to the app since the last call. */
  takeOpenRequests(): Promise<Array<OpenRequest>>;
  /** The bytes of a file that was brought, once. */
  openedFile(key: string): Promise<ArrayBuffer>;
  /** Imports the chats of a file that was brought. */
  importOpened(key: string): Promise<ImportReport>;
  /** The answers and downloads that run while the app is asked to quit. */
  runningWork(): Promise<RunningWork>;
  /** Answers the question of quitting while something runs. */
  quit(choice: QuitChoice): Promise<void>;
  /** Switches opening the app at login on or off. */
  openAtLogin(on: boolean): Promise<void>;
  /** Hides quick entry. */
  hideQuickEntry(): Promise<void>;
  /** Makes quick entry as high as its content, in pixels. */
  fitQuickEntry(height: number): Promise<void>;
  /** Shows a chat in the chat window. */
  showChat(id: string): Promise<void>;
  /** Opens a window of the app or brings it to the front. */
  openWindow(name: WindowName): Promise<void>;
  /** Opens a window of the app at one of its pages, perhaps at a row of it, or brings it to the front and shows that. */
  showPage(page: WindowPage, row: string | null): Promise<void>;
  /** Opens a web or mail address in the user's program for it. Rejects any other address, because models write these links; `NotFound` if no program opened it. */
  openLink(url: string): Promise<void>;
  /** Reports that the web view has painted its first frame. */
  firstPaint(): Promise<void>;
}

/** The windows whose pages may call each command; the host refuses all others. */
export const COMMAND_WINDOWS: Readonly<Record<keyof Commands, readonly WindowName[]>> = {
  chats: ['chat'],
  chatsSince: ['chat', 'settings', 'quick'],
  chat: ['chat', 'quick'],
  earlierMessages: ['chat', 'quick'],
  createChat: ['chat', 'quick'],
  newChatSettings: ['chat', 'quick'],
  renameChat: ['chat'],
  pinChat: ['chat'],
  deleteChat: ['chat'],
  restoreChat: ['chat'],
  setChatSettings: ['chat', 'quick'],
  checkChatSettings: ['chat', 'quick'],
  setDraft: ['chat', 'quick'],
  beginTemporaryChat: ['chat'],
  temporaryChat: ['chat'],
  keepTemporaryChat: ['chat'],
  closeTemporaryChat: ['chat'],
  showBranch: ['chat'],
  editAnswer: ['chat'],
  deleteMessage: ['chat'],
  forkChat: ['chat'],
  markRead: ['chat', 'quick'],
  setScrollPlace: ['chat', 'quick'],
  contextUse: ['chat'],
  setCompactionMark: ['chat'],
  dropOldestTurns: ['chat'],
  summarizeOldestTurns: ['chat'],
  stopSummary: ['chat'],
  forkWithSummary: ['chat'],
  searchHistory: ['chat'],
  archiveChat: ['chat'],
  trash: ['chat'],
  purgeChat: ['chat'],
  projects: ['chat'],
  createProject: ['chat'],
  changeProject: ['chat'],
  prefetchProject: ['chat'],
  putProjectFile: ['chat'],
  removeProjectFile: ['chat'],
  deleteProject: ['chat'],
  restoreProject: ['chat'],
  moveChat: ['chat', 'quick'],
  historyState: ['chat'],
  collections: ['chat', 'settings'],
  chooseCollectionFolder: ['chat'],
  chooseCollectionFiles: ['chat'],
  addOwnChats: ['chat'],
  collectionFiles: ['chat'],
  renameCollection: ['chat'],
  pauseCollection: ['chat'],
  updateCollection: ['chat'],
  readCollectionImages: ['chat'],
  stopCollectionImages: ['chat'],
  removeCollection: ['chat'],
  setProjectCollections: ['chat'],
  citations: ['chat'],
  openPassage: ['chat'],
  passagePage: ['chat'],
  readingCost: ['chat'],
  sendAfterReading: ['chat'],
  stopReading: ['chat'],
  notes: ['chat', 'settings'],
  addNote: ['chat', 'settings'],
  changeNote: ['chat', 'settings'],
  deleteNote: ['chat', 'settings'],
  useProjectNotes: ['chat'],
  send: ['chat', 'quick'],
  sendToTwo: ['chat'],
  regenerate: ['chat'],
  stop: ['chat', 'quick'],
  answerNow: ['chat', 'quick'],
  continueAnswer: ['chat'],
  attach: ['chat', 'quick'],
  addFile: ['chat', 'quick'],
  paste: ['chat', 'models', 'settings', 'quick', 'consent', 'failure'],
  clipboardFiles: ['chat', 'quick'],
  clipboardFile: ['chat', 'quick'],
  fileText: ['chat'],
  contentTokens: ['chat'],
  addImage: ['chat', 'quick'],
  clipboardImage: ['chat', 'quick'],
  imageTokens: ['chat'],
  imageStorage: ['chat', 'settings'],
  dragImage: ['chat'],
  showPreview: ['chat'],
  closePreview: ['chat'],
  models: ['chat', 'models', 'settings', 'quick'],
  defaultModel: ['chat', 'models', 'settings', 'quick'],
  setDefaultModel: ['models'],
  engineStatus: ['chat', 'models', 'settings'],
  slowedBy: ['chat'],
  unloadModel: ['settings'],
  capabilities: ['chat'],
  endpoints: ['settings'],
  endpointAddress: ['settings'],
  endpointModels: ['chat'],
  testEndpoint: ['settings'],
  addEndpoint: ['settings'],
  setEndpointKey: ['settings'],
  setEndpointPersonal: ['settings'],
  removeEndpoint: ['settings'],
  searchModels: ['models'],
  describeModel: ['models'],
  modelCard: ['models'],
  firstModels: ['chat', 'models'],
  fitOf: ['chat', 'models'],
  memory: ['chat', 'models', 'settings'],
  download: ['chat', 'models'],
  pauseDownload: ['models'],
  resumeDownload: ['models'],
  cancelDownload: ['models'],
  moveDownload: ['models'],
  watchDownloads: ['chat', 'models'],
  ggufModels: ['models'],
  chooseGgufFiles: ['models'],
  importGguf: ['models'],
  stopGgufImport: ['models'],
  quantizeChoices: ['models'],
  quantizeModel: ['models'],
  stopQuantizing: ['models'],
  verifyModel: ['models'],
  repairModel: ['models'],
  removalOf: ['models'],
  removeModel: ['models'],
  putBackModel: ['models'],
  freeModel: ['models'],
  updateOf: ['models'],
  draftModels: ['models'],
  revealModel: ['models'],
  modelFolders: ['models', 'settings'],
  addModelFolder: ['models', 'settings'],
  chooseModelFolder: ['models', 'settings'],
  forgetModelFolder: ['models', 'settings'],
  loadAnyway: ['chat'],
  chatWith: ['models'],
  dataUse: ['settings'],
  backUpNow: ['settings'],
  addFromSetAside: ['settings'],
  revealData: ['settings'],
  deleteAllChats: ['settings'],
  netSettings: ['models', 'settings'],
  setOffline: ['models', 'settings'],
  setToken: ['models', 'settings'],
  outboundRequests: ['settings'],
  serverStatus: ['settings'],
  setServer: ['settings'],
  newServerKey: ['settings'],
  forgetServerKey: ['settings'],
  serverKey: ['settings'],
  allowServerCollections: ['settings'],
  servedModels: ['settings'],
  clientSetups: ['settings'],
  chatTools: ['chat'],
  toolsChange: ['chat'],
  useNewTools: ['chat'],
  serverResources: ['chat'],
  attachResource: ['chat'],
  serverPrompts: ['chat'],
  serverPrompt: ['chat'],
  startToolServer: ['chat'],
  runCallsAgain: ['chat'],
  goOnWithoutCalls: ['chat'],
  runningCalls: ['chat'],
  showConsent: ['chat'],
  waitingCalls: ['consent'],
  approveCall: ['consent'],
  refuseCall: ['consent'],
  waitingElicitations: ['consent'],
  sendForm: ['consent'],
  openElicitedAddress: ['consent'],
  declineElicitation: ['consent'],
  tools: ['settings'],
  addToolServer: ['settings'],
  chooseToolBundle: ['settings'],
  addToolBundle: ['settings'],
  changeToolServer: ['settings'],
  addToolRoot: ['settings'],
  removeToolRoot: ['settings'],
  foundToolServers: ['settings'],
  readToolConfiguration: ['settings'],
  switchToolServer: ['settings'],
  removeToolServer: ['settings'],
  restartToolServer: ['settings'],
  signInToolServer: ['settings'],
  signOutToolServer: ['settings'],
  toolServerLog: ['settings'],
  setToolRule: ['settings'],
  revokeToolGrant: ['settings'],
  switchOwnTool: ['settings'],
  setWebSearch: ['settings'],
  settings: ['chat', 'models', 'settings', 'quick', 'consent'],
  changeSettings: ['chat', 'models', 'settings', 'quick', 'consent'],
  chatWindowState: ['chat'],
  setChatWindowState: ['chat'],
  exportChats: ['chat', 'settings'],
  showExport: ['chat', 'settings'],
  importChats: ['chat', 'settings'],
  saveCode: ['chat', 'models', 'settings', 'quick'],
  appUpdate: ['settings'],
  askForAppUpdate: ['settings'],
  installAppUpdate: ['settings'],
  stopAppUpdate: ['settings'],
  restart: ['settings'],
  noteHistoryDamage: ['chat', 'models', 'settings', 'quick', 'consent', 'failure'],
  examineHistory: ['failure'],
  repairHistory: ['failure'],
  openAgain: ['failure'],
  showDataFolder: ['failure'],
  beginAnew: ['failure'],
  openReadOnly: ['failure'],
  desktop: ['settings'],
  runCommand: ['chat', 'models', 'settings', 'quick', 'consent', 'failure'],
  setAvailableCommands: ['chat'],
  takeOpenRequests: ['chat'],
  openedFile: ['chat'],
  importOpened: ['chat'],
  runningWork: ['chat'],
  quit: ['chat'],
  openAtLogin: ['settings'],
  hideQuickEntry: ['quick'],
  fitQuickEntry: ['quick'],
  showChat: ['quick'],
  openWindow: ['chat', 'models', 'settings'],
  showPage: ['chat', 'models', 'settings'],
  openLink: ['chat', 'models', 'settings', 'quick', 'consent', 'failure'],
  firstPaint: ['chat', 'models', 'settings', 'quick', 'consent', 'failure'],
};

/** The bridge to the host. `channel` makes a callback an argument, `header` writes a text in letters that headers hold. */
export interface Bridge {
  invoke<T>(
    command: string,
    args?: Record<string, unknown> | Uint8Array,
    options?: { headers: Record<string, string> },
  ): Promise<T>;
  channel<T>(callback: (message: T) => void): unknown;
  header(text: string): string;
}

/** The calls of all commands through a bridge. */
export const commandsThrough = ({ invoke, channel, header }: Bridge): Commands => ({
  chats: () => invoke('chats'),
  chatsSince: (snapshot) => invoke('chats_since', { snapshot }),
  chat: (id) => invoke('chat', { id }),
  earlierMessages: (message) => invoke('earlier_messages', { message }),
  createChat: (settings) => invoke('create_chat', { settings }),
  newChatSettings: () => invoke('new_chat_settings'),
  renameChat: (id, title) => invoke('rename_chat', { id, title }),
  pinChat: (id, pinned) => invoke('pin_chat', { id, pinned }),
  deleteChat: (id) => invoke('delete_chat', { id }),
  restoreChat: (id) => invoke('restore_chat', { id }),
  setChatSettings: (id, settings) => invoke('set_chat_settings', { id, settings }),
  checkChatSettings: (settings) => invoke('check_chat_settings', { settings }),
  setDraft: (id, draft) => invoke('set_draft', { id, draft }),
  beginTemporaryChat: (settings) => invoke('begin_temporary_chat', { settings }),
  temporaryChat: () => invoke('temporary_chat'),
  keepTemporaryChat: () => invoke('keep_temporary_chat'),
  closeTemporaryChat: () => invoke('close_temporary_chat'),
  showBranch: (message) => invoke('show_branch', { message }),
  editAnswer: (message, text) => invoke('edit_answer', { message, text }),
  deleteMessage: (message, scope) => invoke('delete_message', { message, scope }),
  forkChat: (message, title) => invoke('fork_chat', { message, title }),
  markRead: (id) => invoke('mark_read', { id }),
  setScrollPlace: (id, place) => invoke('set_scroll_place', { id, place }),
  contextUse: (id, question) => invoke('context_use', { id, question }),
  setCompactionMark: (message, mark) => invoke('set_compaction_mark', { message, mark }),
  dropOldestTurns: (id, question) => invoke('drop_oldest_turns', { id, question }),
  summarizeOldestTurns: (id, question, onProgress) => invoke('summarize_oldest_turns', { id, question, onProgress: channel(onProgress) }),
  stopSummary: (id) => invoke('stop_summary', { id }),
  forkWithSummary: (id, title, onProgress) => invoke('fork_with_summary', { id, title, onProgress: channel(onProgress) }),
  searchHistory: (query) => invoke('search_history', { query }),
  archiveChat: (id, archived) => invoke('archive_chat', { id, archived }),
  trash: () => invoke('trash'),
  purgeChat: (id) => invoke('purge_chat', { id }),
  projects: () => invoke('projects'),
  createProject: (name) => invoke('create_project', { name }),
  changeProject: (id, name, systemPrompt) => invoke('change_project', { id, name, systemPrompt }),
  prefetchProject: (id, settings) => invoke('prefetch_project', { id, settings }),
  putProjectFile: (id, file) => invoke('put_project_file', { id, file }),
  removeProjectFile: (id, attachment) => invoke('remove_project_file', { id, attachment }),
  deleteProject: (id) => invoke('delete_project', { id }),
  restoreProject: (id) => invoke('restore_project', { id }),
  moveChat: (id, project) => invoke('move_chat', { id, project }),
  historyState: () => invoke('history_state'),
  collections: () => invoke('collections'),
  chooseCollectionFolder: () => invoke('choose_collection_folder'),
  chooseCollectionFiles: () => invoke('choose_collection_files'),
  addOwnChats: () => invoke('add_own_chats'),
  collectionFiles: (id) => invoke('collection_files', { id }),
  renameCollection: (id, name) => invoke('rename_collection', { id, name }),
  pauseCollection: (id, paused) => invoke('pause_collection', { id, paused }),
  updateCollection: (id) => invoke('update_collection', { id }),
  readCollectionImages: (id, model) => invoke('read_collection_images', { id, model }),
  stopCollectionImages: (id) => invoke('stop_collection_images', { id }),
  removeCollection: (id) => invoke('remove_collection', { id }),
  setProjectCollections: (id, collections) => invoke('set_project_collections', { id, collections }),
  citations: (message) => invoke('citations', { message }),
  openPassage: (passage) => invoke('open_passage', { passage }),
  passagePage: (passage, page, width) => invoke('passage_page', { passage, page, width }),
  readingCost: (chat, project, settings) => invoke('reading_cost', { chat, project, settings }),
  sendAfterReading: (chat, content, position, onProgress) => invoke('send_after_reading', { chat, content, position, onProgress: channel(onProgress) }),
  stopReading: (chat) => invoke('stop_reading', { chat }),
  notes: (project) => invoke('notes', { project }),
  addNote: (project, text) => invoke('add_note', { project, text }),
  changeNote: (note, text) => invoke('change_note', { note, text }),
  deleteNote: (note) => invoke('delete_note', { note }),
  useProjectNotes: (id, usesNotes) => invoke('use_project_notes', { id, usesNotes }),
  send: (chat, content, position) => invoke('send', { chat, content, position }),
  sendToTwo: (chat, content, position, settings) => invoke('send_to_two', { chat, content, position, settings }),
  regenerate: (message, settings) => invoke('regenerate', { message, settings }),
  stop: (message) => invoke('stop', { message }),
  answerNow: (message) => invoke('answer_now', { message }),
  continueAnswer: (message) => invoke('continue_answer', { message }),
  attach: (message, from, onEvent) => invoke('attach', { message, from, onEvent: channel(onEvent) }),
  addFile: (bytes, name, chat) => invoke('add_file', bytes, { headers: { 'ponder-name': header(name), 'ponder-chat': header(chat) } }),
  paste: () => invoke('paste'),
  clipboardFiles: () => invoke('clipboard_files'),
  clipboardFile: (place) => invoke('clipboard_file', { place }),
  fileText: (attachment) => invoke('file_text', { attachment }),
  contentTokens: (model, content) => invoke('content_tokens', { model, content }),
  addImage: (bytes, chat) => invoke('add_image', bytes, { headers: { 'ponder-chat': header(chat) } }),
  clipboardImage: () => invoke('clipboard_image'),
  imageTokens: (model, detail, sizes) => invoke('image_tokens', { model, detail, sizes }),
  imageStorage: () => invoke('image_storage'),
  dragImage: (attachment, name) => invoke('drag_image', { attachment, name }),
  showPreview: (code, drawing) => invoke('show_preview', { code, drawing }),
  closePreview: () => invoke('close_preview'),
  models: () => invoke('models'),
  defaultModel: () => invoke('default_model'),
  setDefaultModel: (reference) => invoke('set_default_model', { reference }),
  engineStatus: () => invoke('engine_status'),
  slowedBy: () => invoke('slowed_by'),
  unloadModel: (reference) => invoke('unload_model', { reference }),
  capabilities: (reference) => invoke('capabilities', { reference }),
  endpoints: () => invoke('endpoints'),
  endpointAddress: (url) => invoke('endpoint_address', { url }),
  endpointModels: () => invoke('endpoint_models'),
  testEndpoint: (name) => invoke('test_endpoint', { name }),
  addEndpoint: (name, url, key, unencryptedKey) => invoke('add_endpoint', { name, url, key, unencryptedKey }),
  setEndpointKey: (name, key, unencryptedKey) => invoke('set_endpoint_key', { name, key, unencryptedKey }),
  setEndpointPersonal: (name, personal) => invoke('set_endpoint_personal', { name, personal }),
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
  watchDownloads: (onChange) => invoke('watch_downloads', { onChange: channel(onChange) }),
  ggufModels: () => invoke('gguf_models'),
  chooseGgufFiles: () => invoke('choose_gguf_files'),
  importGguf: (reference, onProgress) => invoke('import_gguf', { reference, onProgress: channel(onProgress) }),
  stopGgufImport: (reference) => invoke('stop_gguf_import', { reference }),
  quantizeChoices: (reference) => invoke('quantize_choices', { reference }),
  quantizeModel: (reference, format, compare, onProgress) => invoke('quantize_model', { reference, format, compare, onProgress: channel(onProgress) }),
  stopQuantizing: (reference) => invoke('stop_quantizing', { reference }),
  verifyModel: (reference, onProgress) => invoke('verify_model', { reference, onProgress: channel(onProgress) }),
  repairModel: (reference, onProgress) => invoke('repair_model', { reference, onProgress: channel(onProgress) }),
  removalOf: (reference) => invoke('removal_of', { reference }),
  removeModel: (reference) => invoke('remove_model', { reference }),
  putBackModel: (reference) => invoke('put_back_model', { reference }),
  freeModel: (reference) => invoke('free_model', { reference }),
  updateOf: (reference) => invoke('update_of', { reference }),
  draftModels: (reference) => invoke('draft_models', { reference }),
  revealModel: (reference) => invoke('reveal_model', { reference }),
  modelFolders: () => invoke('model_folders'),
  addModelFolder: (path) => invoke('add_model_folder', { path }),
  chooseModelFolder: () => invoke('choose_model_folder'),
  forgetModelFolder: (path) => invoke('forget_model_folder', { path }),
  loadAnyway: (reference) => invoke('load_anyway', { reference }),
  chatWith: (reference) => invoke('chat_with', { reference }),
  dataUse: () => invoke('data_use'),
  backUpNow: () => invoke('back_up_now'),
  addFromSetAside: (setAsideAt) => invoke('add_from_set_aside', { setAsideAt }),
  revealData: (kind) => invoke('reveal_data', { kind }),
  deleteAllChats: () => invoke('delete_all_chats'),
  netSettings: () => invoke('net_settings'),
  setOffline: (offline) => invoke('set_offline', { offline }),
  setToken: (token) => invoke('set_token', { token }),
  outboundRequests: () => invoke('outbound_requests'),
  serverStatus: () => invoke('server_status'),
  setServer: (on, port, network) => invoke('set_server', { on, port, network }),
  newServerKey: () => invoke('new_server_key'),
  forgetServerKey: () => invoke('forget_server_key'),
  serverKey: () => invoke('server_key'),
  allowServerCollections: (collections) => invoke('allow_server_collections', { collections }),
  servedModels: () => invoke('served_models'),
  clientSetups: (model, withKey) => invoke('client_setups', { model, withKey }),
  chatTools: () => invoke('chat_tools'),
  toolsChange: (chat) => invoke('tools_change', { chat }),
  useNewTools: (chat) => invoke('use_new_tools', { chat }),
  serverResources: () => invoke('server_resources'),
  attachResource: (server, uri, name, chat) => invoke('attach_resource', { server, uri, name, chat }),
  serverPrompts: (start) => invoke('server_prompts', { start }),
  serverPrompt: (server, name, values) => invoke('server_prompt', { server, name, values }),
  startToolServer: (id) => invoke('start_tool_server', { id }),
  runCallsAgain: (answer) => invoke('run_calls_again', { answer }),
  goOnWithoutCalls: (answer) => invoke('go_on_without_calls', { answer }),
  runningCalls: () => invoke('running_calls'),
  showConsent: () => invoke('show_consent'),
  waitingCalls: () => invoke('waiting_calls'),
  approveCall: (approval) => invoke('approve_call', { approval }),
  refuseCall: (answer, call, hash, word) => invoke('refuse_call', { answer, call, hash, word }),
  waitingElicitations: () => invoke('waiting_elicitations'),
  sendForm: (id, values) => invoke('send_form', { id, values }),
  openElicitedAddress: (id) => invoke('open_elicited_address', { id }),
  declineElicitation: (id) => invoke('decline_elicitation', { id }),
  tools: () => invoke('tools'),
  addToolServer: (setup) => invoke('add_tool_server', { setup }),
  chooseToolBundle: () => invoke('choose_tool_bundle'),
  addToolBundle: (hash, name, values) => invoke('add_tool_bundle', { hash, name, values }),
  changeToolServer: (id, setup) => invoke('change_tool_server', { id, setup }),
  addToolRoot: (id) => invoke('add_tool_root', { id }),
  removeToolRoot: (id, root) => invoke('remove_tool_root', { id, root }),
  foundToolServers: () => invoke('found_tool_servers'),
  readToolConfiguration: (text) => invoke('read_tool_configuration', { text }),
  switchToolServer: (id, on) => invoke('switch_tool_server', { id, on }),
  removeToolServer: (id) => invoke('remove_tool_server', { id }),
  restartToolServer: (id) => invoke('restart_tool_server', { id }),
  signInToolServer: (id, client) => invoke('sign_in_tool_server', { id, client }),
  signOutToolServer: (id) => invoke('sign_out_tool_server', { id }),
  toolServerLog: (id) => invoke('tool_server_log', { id }),
  setToolRule: (tool, rule) => invoke('set_tool_rule', { tool, rule }),
  revokeToolGrant: (tool, host) => invoke('revoke_tool_grant', { tool, host }),
  switchOwnTool: (tool, on) => invoke('switch_own_tool', { tool, on }),
  setWebSearch: (setup) => invoke('set_web_search', { setup }),
  settings: () => invoke('settings'),
  changeSettings: (change) => invoke('change_settings', { change }),
  chatWindowState: () => invoke('chat_window_state'),
  setChatWindowState: (state) => invoke('set_chat_window_state', { state }),
  exportChats: (ids, format, name) => invoke('export_chats', { ids, format, name }),
  showExport: (path) => invoke('show_export', { path }),
  importChats: (bytes) => invoke('import_chats', bytes),
  saveCode: (code, language) => invoke('save_code', { code, language }),
  appUpdate: () => invoke('app_update'),
  askForAppUpdate: () => invoke('ask_for_app_update'),
  installAppUpdate: () => invoke('install_app_update'),
  stopAppUpdate: () => invoke('stop_app_update'),
  restart: () => invoke('restart'),
  noteHistoryDamage: () => invoke('note_history_damage'),
  examineHistory: () => invoke('examine_history'),
  repairHistory: (remedy) => invoke('repair_history', { remedy }),
  openAgain: () => invoke('open_again'),
  showDataFolder: () => invoke('show_data_folder'),
  beginAnew: () => invoke('begin_anew'),
  openReadOnly: () => invoke('open_read_only'),
  desktop: () => invoke('desktop'),
  runCommand: (command) => invoke('run_command', { command }),
  setAvailableCommands: (available, checked) => invoke('set_available_commands', { available, checked }),
  takeOpenRequests: () => invoke('take_open_requests'),
  openedFile: (key) => invoke('opened_file', { key }),
  importOpened: (key) => invoke('import_opened', { key }),
  runningWork: () => invoke('running_work'),
  quit: (choice) => invoke('quit', { choice }),
  openAtLogin: (on) => invoke('open_at_login', { on }),
  hideQuickEntry: () => invoke('hide_quick_entry'),
  fitQuickEntry: (height) => invoke('fit_quick_entry', { height }),
  showChat: (id) => invoke('show_chat', { id }),
  openWindow: (name) => invoke('open_window', { name }),
  showPage: (page, row) => invoke('show_page', { page, row }),
  openLink: (url) => invoke('open_link', { url }),
  firstPaint: () => invoke('first_paint'),
});
