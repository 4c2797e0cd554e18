//! Collections with the states of their files.

use protocol::Error;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// All collections.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CollectionsView {
    /// The collections, the oldest first.
    pub collections: Vec<CollectionView>,
    /// The search by meaning.
    pub embeddings: EmbeddingProgress,
    /// The order of found passages.
    pub reranking: RerankingView,
}

/// The model that orders found passages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct RerankingView {
    /// The reference of the reranker; none if there is none on this computer.
    pub model: Option<String>,
    /// Why it ordered nothing the last time, in words for the user.
    pub problem: Option<String>,
}

/// How far passages have embeddings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct EmbeddingProgress {
    /// The reference of the embedding model; none if there is none on this computer: words alone are searched then.
    pub model: Option<String>,
    /// The reference of the model whose embeddings are searched: an earlier one until this one has as many; none while
    /// words alone are searched.
    pub searched: Option<String>,
    /// Passages with an embedding of this model.
    #[ts(type = "number")]
    pub done: u64,
    /// All passages.
    #[ts(type = "number")]
    pub of: u64,
    /// Why embedding stopped, in words for the user.
    pub problem: Option<String>,
}

/// A collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct CollectionView {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The place of its files.
    pub source: CollectionSource,
    /// Files whose text is in the index.
    #[ts(type = "number")]
    pub read: u64,
    /// Files that wait to be read.
    #[ts(type = "number")]
    pub waiting: u64,
    /// Files that cannot be read.
    #[ts(type = "number")]
    pub failed: u64,
    /// Files that are left out by nobody's choice.
    #[ts(type = "number")]
    pub skipped: u64,
    /// Images that no model has read yet, also those that one failed at.
    #[ts(type = "number")]
    pub images: u64,
    /// The reading of its images, while it runs and if it left something to tell.
    pub image_reading: Option<ImageReading>,
    /// Passages of all files.
    #[ts(type = "number")]
    pub passages: u64,
    /// Bytes of the texts of all files.
    #[ts(type = "number")]
    pub text_bytes: u64,
    /// The number of files and folders that are left out for each reason.
    pub left_out: Vec<LeftOut>,
    /// When its folder was last looked through, in Unix milliseconds; none if it never was.
    #[ts(type = "number | null")]
    pub synced_at: Option<i64>,
    /// The work on it.
    pub activity: CollectionActivity,
    /// Why its changes are not noticed by themselves; none if they are, or if nobody follows it.
    pub unwatched: Option<Unwatched>,
}

/// The place of the files of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CollectionSource {
    /// A folder with its subfolders.
    Folder {
        /// Its path.
        path: String,
    },
    /// Single files.
    Files {
        /// Their paths.
        paths: Vec<String>,
    },
    /// The user's own chats. The path of each file is the id of a chat.
    Chats,
}

/// The work on a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CollectionActivity {
    /// It is up to date, as far as its folder tells its changes.
    #[default]
    Idle,
    /// Its folder is being looked through.
    Looking,
    /// Files are being read.
    Reading {
        /// Files that were read.
        #[ts(type = "number")]
        done: u64,
        /// Files that are to be read.
        #[ts(type = "number")]
        of: u64,
    },
    /// The person paused it.
    Paused,
    /// Its folder is not there, or cannot be looked through. What was read of it is still found.
    Failed {
        /// Why.
        error: Error,
    },
}

/// The reading of the images of a collection by a vision model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ImageReading {
    /// The reference of the model.
    pub model: String,
    /// Images that the model was shown.
    #[ts(type = "number")]
    pub done: u64,
    /// Images that it is to be shown.
    #[ts(type = "number")]
    pub of: u64,
    /// Images that could not be read.
    #[ts(type = "number")]
    pub failed: u64,
    /// True while it runs.
    pub is_running: bool,
    /// Why it ended before the last image; none if nothing is wrong.
    pub problem: Option<Error>,
}

/// Why changes of a collection are not noticed by themselves. They are found when Ponder starts, and when the person
/// looks for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Unwatched {
    /// It has more folders than are watched.
    TooManyFolders {
        /// The most that are.
        #[ts(type = "number")]
        most: u64,
    },
    /// The system lets this user watch no more.
    WatchLimit {
        /// The system's setting.
        setting: String,
    },
    /// The system does not watch it for another reason.
    NotPossible,
}

/// Files and folders that a collection leaves out for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct LeftOut {
    /// The reason.
    pub reason: SkipReason,
    /// How many.
    #[ts(type = "number")]
    pub count: u64,
}

/// Why a file is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Its name, or that of its folder, begins with a dot.
    Hidden,
    /// An ignore file names it, or its folder.
    Ignored,
    /// The patterns of the collection leave it out.
    Pattern,
    /// It is a link; links are not followed.
    Link,
    /// It is a pipe, a socket or a device.
    Special,
    /// It is larger than the limit.
    TooLarge,
    /// It has no bytes.
    Empty,
    /// The system does not let it be listed or read.
    Unreadable,
    /// The collection has its most files without it.
    TooMany,
    /// It was written while it was read.
    Changing,
    /// It is not there any more.
    Gone,
    /// It is an image, and no model has read it yet.
    Image,
}

impl SkipReason {
    /// For logs and stored rows.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::Ignored => "ignored",
            Self::Pattern => "pattern",
            Self::Link => "link",
            Self::Special => "special",
            Self::TooLarge => "too_large",
            Self::Empty => "empty",
            Self::Unreadable => "unreadable",
            Self::TooMany => "too_many",
            Self::Changing => "changing",
            Self::Gone => "gone",
            Self::Image => "image",
        }
    }

    /// True for what somebody chose to leave out: it is counted and not listed.
    pub fn is_chosen(self) -> bool {
        matches!(self, Self::Hidden | Self::Ignored | Self::Pattern)
    }
}

/// A file of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CollectionFile {
    /// Its path below the folder of the collection, or its absolute path.
    pub path: String,
    /// Its size in bytes.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Its outcome.
    pub state: CollectionFileState,
}

/// The outcome of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CollectionFileState {
    /// It is to be read.
    Waiting,
    /// Its text is in the index.
    Read {
        /// The number of its passages.
        #[ts(type = "number")]
        passages: u64,
    },
    /// It cannot be read.
    Failed {
        /// Why.
        error: Error,
    },
    /// It was left out.
    LeftOut {
        /// Why; none if only another version knows.
        reason: Option<SkipReason>,
    },
}
