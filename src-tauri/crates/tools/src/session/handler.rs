//! Hears a server's messages and requests.
#![expect(
    deprecated,
    reason = "a later version of the protocol has no roots and no sampling, and servers use both"
)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomRequest, CustomResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode, FormElicitationCapability,
    Implementation, ListRootsResult, ProgressNotificationParam, ProtocolVersion, Root, RootsCapabilities,
    UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::Value;
use tokio::sync::watch;
use url::Url;

use super::running_calls::RunningCalls;
use crate::elicitation::{Elicitation, Reply};
use crate::stdio::ErrorLines;
use crate::visible::visible;

/// Characters of a word about progress at most.
const LONGEST_WORD: usize = 200;

/// The method by which a server wants the model to write something for it.
pub(super) const SAMPLING: &str = "sampling/createMessage";

/// The refusal of that.
pub(super) const NO_SAMPLING: &str = "servers of tools may not use the model (sampling)";

/// Hears what a server says and asks by itself.
pub(super) struct Handler {
    pub(super) listed: watch::Sender<u64>,
    pub(super) calls: RunningCalls,
    pub(super) roots: watch::Receiver<Vec<PathBuf>>,
    pub(super) log: ErrorLines,
    pub(super) refused_sampling: AtomicBool,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("ponder", env!("CARGO_PKG_VERSION"));
        let mut roots = RootsCapabilities::default();
        roots.list_changed = Some(true);
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(roots);
        capabilities.elicitation = Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::new())
                .with_url(UrlElicitationCapability::new()),
        );
        // The newest version belongs to another beginning than `initialize`.
        ClientConfig::new(capabilities, own).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_progress(&self, said: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let word = said.message.map(|message| {
            let short: String = message.chars().take(LONGEST_WORD).collect();
            visible(&short).replace('\n', " ")
        });
        self.calls.tell(&said.progress_token, said.progress, said.total, word);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.listed.send_modify(|times| *times += 1);
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Err(self.refuse_sampling())
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(roots(&self.roots.borrow())))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(params).unwrap_or_default();
        let reply = self.elicit(&params, &context).await?;
        let (action, content) = match reply {
            Reply::Accept(content) => (ElicitationAction::Accept, content),
            Reply::Decline => (ElicitationAction::Decline, None),
            Reply::Cancel => (ElicitationAction::Cancel, None),
        };
        let mut result = ElicitResult::new(action);
        result.content = content;
        Ok(result)
    }

    /// Elicitations as well that rmcp's types do not take for one: an odd field of a form is no reason to ask nobody.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            "elicitation/create" => {
                let reply = self.elicit(&request.params.unwrap_or_default(), &context).await?;
                Ok(CustomResult::new(reply.to_value()))
            }
            SAMPLING => Err(self.refuse_sampling()),
            method => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None)),
        }
    }
}

impl Handler {
    async fn elicit(&self, params: &Value, context: &RequestContext<RoleClient>) -> Result<Reply, ErrorData> {
        let refused = |why: String| ErrorData::invalid_params(why, None);
        let elicitation = Elicitation::read(params).map_err(refused)?;
        tokio::select! {
            reply = self.calls.ask(elicitation) => reply.map_err(refused),
            // The server takes it back.
            () = context.ct.cancelled() => Ok(Reply::Cancel),
        }
    }

    fn refuse_sampling(&self) -> ErrorData {
        // Once, because a flood would push out what the server itself says.
        if !self.refused_sampling.swap(true, Ordering::Relaxed) {
            self.log.note(NO_SAMPLING);
        }
        ErrorData::new(ErrorCode::METHOD_NOT_FOUND, NO_SAMPLING, None)
    }
}

/// Folders as a server is told of them.
pub(super) fn roots(folders: &[PathBuf]) -> Vec<Root> {
    let root = |folder: &PathBuf| {
        let uri = Url::from_directory_path(folder).ok()?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let root = Root::new(uri.as_str().trim_end_matches('/'));
        Some(match name {
            Some(name) => root.with_name(name),
            None => Root::new(uri.as_str()),
        })
    };
    folders.iter().filter_map(root).collect()
}

/// True if a folder can be given to a server.
pub fn can_be_root(folder: &Path) -> bool {
    Url::from_directory_path(folder).is_ok()
}
