//! The lists of a server, and what stands in them: tools, resources, prompts.

use std::collections::BTreeMap;

use serde_json::{json, Value};
use tokio::time::{timeout_at, Instant};

use super::{value, CallError, Session};
use crate::catalog::{
    content_of, prompts_of, resources_of, templates_of, text_of, tools_of, Listing, Prompt, Resource, ResourceContent,
};

/// Pages of a list at most.
const MOST_PAGES: usize = 32;

impl Session {
    /// The server's tools.
    ///
    /// # Errors
    /// [`CallError`] if it does not list them.
    pub async fn tools(&self) -> Result<Listing, CallError> {
        Ok(tools_of(&self.pages("tools/list").await?))
    }

    /// True if the server says that it has resources.
    pub fn has_resources(&self) -> bool {
        let info = self.service.peer_info();
        info.is_some_and(|info| info.capabilities.resources.is_some())
    }

    /// True if the server says that it has prompts.
    pub fn has_prompts(&self) -> bool {
        let info = self.service.peer_info();
        info.is_some_and(|info| info.capabilities.prompts.is_some())
    }

    /// The server's resources, and templates of the addresses of others.
    ///
    /// # Errors
    /// [`CallError`] if it does not list them. A server without templates may not know that list.
    pub async fn resources(&self) -> Result<(Vec<Resource>, Vec<Resource>), CallError> {
        let resources = resources_of(&self.pages("resources/list").await?);
        let templates = match self.pages("resources/templates/list").await {
            Ok(pages) => templates_of(&pages),
            Err(CallError::Refused(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok((resources, templates))
    }

    /// The content of a resource; `None` if the server's answer holds none.
    ///
    /// # Errors
    /// [`CallError`] if it does not come.
    pub async fn resource(&self, uri: &str) -> Result<Option<ResourceContent>, CallError> {
        let deadline = Instant::now() + self.limits.call;
        let answer = self.answer("resources/read", json!({ "uri": uri }), deadline).await?;
        Ok(content_of(&answer))
    }

    /// The server's prompts.
    ///
    /// # Errors
    /// [`CallError`] if it does not list them.
    pub async fn prompts(&self) -> Result<Vec<Prompt>, CallError> {
        Ok(prompts_of(&self.pages("prompts/list").await?))
    }

    /// The text of a prompt with these arguments; `None` if the server's answer holds none.
    ///
    /// # Errors
    /// [`CallError`] if it does not come.
    pub async fn prompt(&self, name: &str, arguments: &BTreeMap<String, String>) -> Result<Option<String>, CallError> {
        let deadline = Instant::now() + self.limits.call;
        let params = json!({ "name": name, "arguments": arguments });
        let answer = self.answer("prompts/get", params, deadline).await?;
        Ok(text_of(&answer))
    }

    async fn pages(&self, list: &str) -> Result<Vec<Value>, CallError> {
        let deadline = Instant::now() + self.limits.list;
        let (mut pages, mut cursor) = (Vec::new(), None::<String>);
        while pages.len() < MOST_PAGES {
            let params = cursor.as_ref().map_or(json!({}), |cursor| json!({ "cursor": cursor }));
            let page = self.answer(list, params, deadline).await?;
            let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            pages.push(page);
            // A server that names the same page again would never end.
            if next.is_none() || next == cursor {
                break;
            }
            cursor = next;
        }
        Ok(pages)
    }

    async fn answer(&self, method: &str, params: Value, deadline: Instant) -> Result<Value, CallError> {
        let begun = Instant::now();
        let asked = self.ask(method, params);
        let answer = timeout_at(deadline, async { asked.await?.await_response().await }).await;
        match answer {
            Ok(answer) => Ok(value(answer.map_err(|error| self.failure(error))?)),
            Err(_) => Err(CallError::Silent(begun.elapsed())),
        }
    }
}
