//! Reasons of failures, as far as windows have words of their own for them.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::ErrorCode;

/// Declares the reasons with their codes, and lists them.
macro_rules! reasons {
    ($($(#[$about:meta])* $reason:ident => $code:ident,)*) => {
        /// A reason that narrows an [`ErrorCode`] down. A window has a title, a sentence and an action for each in every
        /// language, which name arguments of the error; the English message is for the command line, and for details.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
        #[serde(rename_all = "snake_case")]
        pub enum Reason {
            $($(#[$about])* $reason,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$reason,)*];

            /// The code of the failures with this reason.
            pub const fn code(self) -> ErrorCode {
                match self {
                    $(Self::$reason => ErrorCode::$code,)*
                }
            }
        }
    };
}

reasons! {
    /// A response that is to be continued fills the context: `written` of `context` tokens.
    ResponseFull => ContextFull,
    /// The endpoint `endpoint` says that the chat is too long.
    EndpointContextFull => ContextFull,

    /// The message has no text.
    EmptyMessage => BadRequest,
    /// An edited response has no text.
    EmptyResponse => BadRequest,
    /// A tool that was called has no result yet.
    ToolResultMissing => BadRequest,
    /// There is nothing before the message that could be dropped.
    NothingToDrop => BadRequest,
    /// This response cannot be continued: it is complete, not the last, or not a response.
    CannotContinue => BadRequest,
    /// The model `model` cannot continue a response.
    ModelCannotContinue => BadRequest,
    /// The response began with thinking, which the model does not have.
    ContinueThinking => BadRequest,
    /// This response cannot be edited.
    CannotEdit => BadRequest,
    /// More than `most` images.
    TooManyImages => BadRequest,
    /// An image of `width` × `height` pixels is too narrow for the model.
    ImageTooNarrow => BadRequest,
    /// A file that a project does not take.
    ProjectFile => BadRequest,
    /// A note without words, with too many, or one too many.
    NoteRefused => BadRequest,
    /// A file holds no chats that can be read.
    ImportFailed => BadRequest,
    /// A model that does not chat.
    NotAChatModel => BadRequest,
    /// The text is not the name or the address of a model.
    NotAModelAddress => BadRequest,
    /// A repository or file that no model needs.
    RepositoryRefused => BadRequest,
    /// The folder `path` holds no model.
    NoModelFolder => BadRequest,
    /// The folder `path` cannot be listed.
    FolderUnreadable => BadRequest,
    /// The folder `path` cannot be imported.
    NotImportable => BadRequest,
    /// The model `reference` cannot be removed.
    NotRemovable => BadRequest,
    /// The model comes with Ponder and cannot be removed.
    ModelBuiltIn => BadRequest,
    /// The model is in a folder of the user's, where nothing is deleted.
    ModelInOwnFolder => BadRequest,
    /// The model `reference` cannot be repaired.
    NotRepairable => BadRequest,
    /// `name` cannot name an endpoint.
    EndpointName => BadRequest,
    /// A preset is called `name` already.
    PresetNameTaken => BadRequest,
    /// An endpoint is called `name` already.
    EndpointNameTaken => BadRequest,
    /// `url` is not the address of an endpoint.
    EndpointAddress => BadRequest,
    /// Endpoints do not support this.
    EndpointUnsupported => BadRequest,
    /// The endpoint `endpoint` refused the request with `status`.
    EndpointRefused => BadRequest,
    /// The API key of the endpoint `endpoint` would be sent unencrypted, which was not allowed.
    KeyUnencrypted => BadRequest,
    /// The call does not wait any more, or is not the one that was shown.
    CallChanged => BadRequest,
    /// A server of tools is refused or does not run: `why`.
    ToolsRefused => BadRequest,
    /// A server of tools lets no program register itself, and wants a client id: `why`.
    ToolsNotRegistered => BadRequest,
    /// None of the tools that a chat names now can be used.
    NoToolRuns => BadRequest,
    /// The text is no access token.
    BadToken => BadRequest,
    /// The text is no API key.
    BadKey => BadRequest,
    /// The address cannot be requested.
    BadAddress => BadRequest,
    /// The address of the Hugging Face mirror, `address`, is not one.
    BadMirror => BadRequest,
    /// A link that Ponder does not open.
    LinkRefused => BadRequest,
    /// The file `name` is a folder or another thing, or too large.
    FileNotOpened => BadRequest,
    /// Ponder runs from a place that will not last, such as a disk image.
    MoveToApplications => BadRequest,
    /// The server can be reached from other computers, and has no key.
    ServerNeedsKey => BadRequest,
    /// Port `port` is used by the program `name`.
    PortTaken => BadRequest,
    /// Port `port` is used by an unknown program.
    PortTakenUnknown => BadRequest,
    /// The server cannot listen at `address`.
    ServerAddress => BadRequest,
    /// The keys of a global shortcut cannot be had, for example because another program has them.
    ShortcutRefused => BadRequest,

    /// No program opens links.
    NoBrowser => NotFound,
    /// No program shows files or folders.
    NoFileBrowser => NotFound,
    /// Hugging Face has no model called `id`.
    NotOnHuggingFace => NotFound,
    /// `host` has no such page.
    PageNotFound => NotFound,
    /// There is no newer version.
    NoUpdate => NotFound,
    /// The file `name` is gone.
    FileGone => NotFound,
    /// The folder `path` is gone, perhaps together with its disk.
    FolderGone => NotFound,
    /// This copy of Ponder has no command-line tool.
    CommandMissing => NotFound,

    /// The adapter `adapter` belongs to the model `base`, which is not on this computer.
    AdapterWithoutModel => ModelNotFound,
    /// No model called `reference` is on this computer.
    ModelMissing => ModelNotFound,
    /// No endpoint is called `name`.
    EndpointMissing => ModelNotFound,
    /// The endpoint `endpoint` has no model `model`.
    EndpointModelMissing => ModelNotFound,

    /// A field of config.json is invalid.
    ModelConfig => ModelBroken,

    /// Models of the type `family` cannot be run.
    ModelFamily => ModelUnsupported,
    /// The model needs code that comes with it.
    ModelCode => ModelUnsupported,
    /// The model is made for another task than chat.
    ModelTask => ModelUnsupported,
    /// The files are in a format that cannot be read.
    ModelFormat => ModelUnsupported,
    /// A base model without a chat template.
    NoChatTemplate => ModelUnsupported,
    /// This device computes this quantization wrongly.
    DeviceQuantization => ModelUnsupported,

    /// The model needs `needed` bytes and `free` can be used.
    ModelMemory => MemoryShort,
    /// The model needs `needed` bytes, and next to loaded models `free` are available.
    MemoryBesideLoaded => MemoryShort,
    /// The graphics card has `free` bytes for a model that needs `needed`; the processor can compute it.
    CardMemory => MemoryShort,
    /// The graphics card has `free` bytes for a model that needs `needed`, and this computer has no room for it either.
    CardAndMemory => MemoryShort,
    /// The rest of the prompt needs `needed` bytes, and `free` are available.
    PromptMemory => MemoryShort,

    /// The file is of a kind that is not an image a model takes.
    ImageKind => ImageBroken,
    /// The image is too large.
    ImageTooLarge => ImageBroken,
    /// The file is of a kind that cannot be read.
    FileKind => FileBroken,
    /// The file is protected.
    FileProtected => FileBroken,
    /// The file holds no text.
    FileWithoutText => FileBroken,
    /// The file is too large.
    FileTooLarge => FileBroken,
    /// Files before it were given up and are still being read.
    FilesUnfinished => FileBroken,

    /// The model has a vision encoder, and the files that describe it cannot be used.
    ModelVision => ImageNotSeen,

    /// The chat template and the images do not go together.
    ImagesRefused => TemplateRefused,

    /// A response is being written in this chat.
    ChatBusy => Busy,
    /// The model writes a response.
    ModelAnswering => Busy,
    /// Too many requests wait; `retry_after` seconds.
    QueueFull => Busy,
    /// Another version of this model is being downloaded.
    DownloadRunning => Busy,
    /// Another program uses the model `reference`.
    ModelInUse => Busy,

    /// A newer version of Ponder has written the history.
    HistoryNewer => Storage,
    /// The history may not be written.
    HistoryReadOnly => Storage,
    /// The disk of the history is full.
    HistoryDiskFull => Storage,
    /// Another program uses the history.
    HistoryLocked => Storage,
    /// The history could not be opened.
    HistoryUnopened => Storage,
    /// Images, files or backups cannot be read or written.
    HistoryFiles => Storage,
    /// A response could not be saved.
    ResponseNotSaved => Storage,
    /// A setting could not be saved.
    SettingNotSaved => Storage,
    /// The folder or file `path` cannot be read.
    PathUnreadable => Storage,
    /// The folder or file `path` cannot be written.
    PathUnwritable => Storage,
    /// `path` is a link or something else that does not belong there.
    PathOccupied => Storage,
    /// A file could not be saved.
    FileNotSaved => Storage,
    /// The file `name` could not be read.
    FileUnreadable => Storage,
    /// The command-line tool was not installed.
    CommandNotInstalled => Storage,
    /// Opening at login could not be read or set.
    LoginItem => Storage,
    /// The computer does not say where the user's files are.
    NoHome => Storage,
    /// The download stopped at a fault of Ponder.
    DownloadFault => Storage,
    /// The new version was not installed.
    UpdateNotInstalled => Storage,

    /// The environment forces Ponder to be offline.
    OfflineForced => Offline,

    /// `host` has no address.
    HostNotFound => Network,
    /// `host` cannot be reached.
    HostUnreachable => Network,
    /// `host` cannot be trusted.
    HostUntrusted => Network,
    /// The proxy refused.
    ProxyRefused => Network,
    /// `host` did not respond within `seconds` seconds.
    TimedOut => Network,
    /// The connection to `host` was lost.
    ConnectionLost => Network,
    /// `host` sent something else than was requested.
    UnexpectedResponse => Network,
    /// `host` received too many requests.
    RateLimited => Network,
    /// `host` received too many requests and names `seconds` seconds.
    RateLimitedFor => Network,
    /// `host` failed with `status`.
    ServerTrouble => Network,
    /// The file `path` could not be downloaded.
    DownloadFailed => Network,
    /// The endpoint `endpoint` receives too many requests.
    EndpointBusy => Network,
    /// The endpoint `endpoint` failed.
    EndpointFailed => Network,
    /// The endpoint `endpoint` does not respond as an OpenAI-compatible server does.
    EndpointUnreadable => Network,

    /// Hugging Face does not accept the access token, or hides the model.
    AccessDeclined => Gated,

    /// `needed` bytes are still needed and `free` are free.
    DiskSpace => DiskFull,

    /// A new version is not signed correctly.
    UpdateUnsigned => Corrupt,
    /// The list of releases, or a release, is not one.
    UpdateList => Corrupt,

    /// MLX failed.
    ModelFailed => Engine,
    /// A defect of Ponder.
    PonderFault => Engine,
    /// The model wrote no summary.
    NoSummary => Engine,
    /// The system does not report its memory.
    MemoryUnknown => Engine,
    /// The window system did not do it.
    WindowSystem => Engine,
}
