//! Chats as the history stores them and the windows show them.

mod attachment;
mod conversation;
mod data_use;
mod search;

pub use attachment::{AddedImage, FileText};
pub use conversation::{
    AnswerBody, AnswerEvent, AnswerState, ChatList, ChatSummary, ChatView, CompactionMark, ContextUse, DeleteScope,
    HistoryState, Part, Position, Project, RepairedHistory, RunningAnswer, ScrollPlace, StoredMessage, TrashedChat,
    Turn, TurnWithTwoAnswers,
};
pub use data_use::{DataUse, HistoryBackup};
pub use search::{ExportFormat, HistoryHit, HistoryHits, HistoryQuery, ImportReport};
