//! Chats as the history stores them and the windows show them.

mod attachment;
mod conversation;
mod data_use;
mod finding;

pub use attachment::{AddedImage, FileText};
pub use conversation::{
    AnswerBody, AnswerEvent, AnswerState, ChatList, ChatSummary, ChatView, ContextUse, DeleteScope, Folder,
    HistoryState, MemoryCut, Part, Position, RepairedHistory, RunningAnswer, ScrollPlace, StoredMessage, TrashedChat,
    Turn, TurnWithTwoAnswers,
};
pub use data_use::{DataUse, HistoryBackup};
pub use finding::{ExportFormat, HistoryHit, HistoryHits, HistoryQuery, ImportReport};
