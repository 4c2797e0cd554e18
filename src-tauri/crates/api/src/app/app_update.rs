//! Newer versions of the app itself.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A newer version of Ponder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct AppRelease {
    /// Its number, such as `0.2.0`.
    pub version: String,
    /// What is new in it, as Markdown; empty if nothing was written. Not signed, so it is shown as a stranger's text.
    pub notes: String,
    /// When it was made; milliseconds since 1970.
    #[ts(type = "number | null")]
    pub at: Option<i64>,
}

/// What is known of newer versions of Ponder. Nothing is asked and nothing fetched unless a person wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
#[ts(export)]
pub enum AppUpdate {
    /// This build takes no updates by itself: no release key is built in, or the system's packages bring them.
    Off,
    /// Nobody has asked since the app was started.
    NotAsked,
    /// The server is being asked.
    Asking,
    /// There is no newer version.
    Newest,
    /// There is one.
    Available {
        /// Which.
        release: AppRelease,
    },
    /// It is being fetched.
    Fetching {
        /// Which.
        release: AppRelease,
        /// Bytes that are here.
        #[ts(type = "number")]
        done: u64,
        /// Bytes that the server promised; 0 if it promised none.
        #[ts(type = "number")]
        total: u64,
    },
    /// Its signature was right and it lies in the place of this one; it takes over when the app is started again.
    Installed {
        /// Which.
        release: AppRelease,
    },
}
