//! What a server says unasked, and how far its calls are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::watch;

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// The part that is done, in the server's own measure.
    pub done: f64,
    /// All of it, if that is known.
    pub total: Option<f64>,
    /// A word of the server.
    pub message: Option<String>,
}

/// Hears what a server says unasked. Requests of it are refused by default: sampling, roots, questions to the person.
pub(super) struct Handler {
    pub(super) listed: watch::Sender<u64>,
    pub(super) progress: Arc<Mutex<HashMap<ProgressToken, watch::Sender<Progress>>>>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("ponder", env!("CARGO_PKG_VERSION"));
        // The newest version belongs to another beginning than `initialize`.
        ClientConfig::new(ClientCapabilities::default(), own).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_progress(&self, said: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let calls = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = calls.get(&said.progress_token) {
            call.send_replace(Progress {
                done: said.progress,
                total: said.total,
                message: said.message,
            });
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.listed.send_modify(|times| *times += 1);
    }
}
