//! Newer versions of the app itself.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A newer version of Ponder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct AppRelease {
    /// Its number, such as `0.2.0`.
    pub version: String,
    /// Release notes as Markdown; empty if there are none. They are not signed, so they are shown as untrusted text.
    pub notes: String,
    /// The release date, in milliseconds since 1970.
    #[ts(type = "number | null")]
    pub at: Option<i64>,
}

/// The state of the app's own updates. Nothing is requested or fetched unless the user asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
#[ts(export)]
pub enum AppUpdate {
    /// This build takes no updates by itself: no release key is built in, or the system's packages bring them.
    Off,
    /// Nothing was requested since the app started.
    NotAsked,
    /// The server is being asked.
    Asking,
    /// There is no newer version.
    Newest,
    /// A newer version exists.
    Available {
        /// The newer version.
        release: AppRelease,
    },
    /// It is being fetched.
    Fetching {
        /// The version that is fetched.
        release: AppRelease,
        /// Bytes fetched so far.
        #[ts(type = "number")]
        done: u64,
        /// Total size in bytes as the server announced it; 0 if it did not.
        #[ts(type = "number")]
        total: u64,
    },
    /// The signature was valid and the new version has replaced this one on disk; it runs after a restart.
    Installed {
        /// The installed version.
        release: AppRelease,
    },
}
