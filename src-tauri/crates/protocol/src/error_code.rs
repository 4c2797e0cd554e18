//! The codes of errors, for programs.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The kind of failure, as far as a caller acts on it. A code exists if the window, the command line or a script
/// behaves differently because of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The prompt and the requested answer do not fit the model's context. Nothing was dropped; shorten or branch.
    ContextFull,
    /// The caller passed an invalid value; a retry does not help.
    BadRequest,
    /// No such chat, message or file. A retry does not help.
    NotFound,
    /// No model with that name is on this computer.
    ModelNotFound,
    /// The model's files are broken or incomplete; a repair or a new download helps.
    ModelBroken,
    /// The model's family, quantization or tokenizer is not supported by this version.
    ModelUnsupported,
    /// A model or its prompt takes more memory than there is. Nothing was loaded; close other programs, shorten the
    /// prompt, or use a smaller model.
    MemoryShort,
    /// An image cannot be read: it is broken, too large, or of an unknown kind. Another file helps.
    ImageBroken,
    /// A document cannot be read: it is broken, protected, too large, or of an unknown kind. Another file helps.
    FileBroken,
    /// The request has an image and the model does not support vision. Nothing was sent; `models` names the local
    /// models that do, if there are any.
    ImageNotSeen,
    /// The model's own chat template refused these messages.
    TemplateRefused,
    /// An answer is already running in this chat, or the engine's queue is full; then `retry_after` is the number of
    /// seconds after which a retry may help.
    Busy,
    /// The history file could not be read or written.
    Storage,
    /// The history file is damaged; the user chooses what takes its place.
    HistoryDamaged,
    /// This computer's keychain cannot be used; `reason` says why, and the environment variable in `variable` can take
    /// its place.
    Keychain,
    /// The app is offline by its settings; switching that off helps.
    Offline,
    /// The other computer could not be reached, or failed; a later retry helps.
    Network,
    /// An endpoint requires a key, or refused the one that was sent; storing the right one helps.
    KeyRefused,
    /// The hub requires a token, or acceptance of its terms, for this model.
    Gated,
    /// The disk is full; freeing space helps, and downloaded data is kept.
    DiskFull,
    /// The hub repeatedly sent wrong data, or a new version of Ponder is not signed correctly; nothing wrong was kept.
    Corrupt,
    /// The user or another program stopped it; nothing is wrong.
    Stopped,
    /// The engine failed in one job; the next one works.
    Engine,
    /// The engine's thread is gone.
    EngineGone,
}
