//! Chats as the history stores them and the windows show them.

mod attachment;
mod conversation;
mod damage;
mod data_use;
mod project;
mod search;

pub use attachment::{AddedImage, FileText};
pub use conversation::{
    AnswerBody, AnswerEvent, AnswerState, ChatList, ChatSummary, ChatView, CompactionMark, ContextUse, DeleteScope,
    DeletedMessages, HistoryState, Part, Position, RunningAnswer, ScrollPlace, StoredMessage, SummaryProgress,
    TrashedChat, Turn, TurnWithTwoAnswers,
};
pub use damage::{HistoryContents, HistoryDamage, HistoryRemedy, RepairedHistory, UsableBackup};
pub use data_use::{DataKind, DataUse, HistoryBackup};
pub use project::{Note, Project};
pub use search::{ExportFormat, HistoryHit, HistoryHits, HistoryQuery, ImportReport};
