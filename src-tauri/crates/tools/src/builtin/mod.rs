//! Tools that Ponder has itself.

mod arguments;
mod attachments;
mod calculator;
mod chats;
mod clock;
mod declarations;
mod documents;
mod notes;
mod sources;
#[cfg(test)]
mod tests;
mod web;

use protocol::TellProgress;
use serde_json::Value;

use crate::outcome::{Outcome, ResultPart};

use arguments::text;

pub use sources::{AttachedFile, ChatSource, NoChats, Sources};
pub use web::SearchEngine;

/// The server that built-in tools belong to.
pub const SERVER: &str = protocol::OWN_SERVER;

/// A built-in tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// The time in a time zone.
    GetTime,
    /// The value of an expression, in exact decimals.
    Calculate,
    /// Places in the person's own chats.
    SearchChats,
    /// The text of a file of the chat.
    ReadAttachment,
    /// The text of a page of the web.
    FetchPage,
    /// Pages of the web about something.
    SearchWeb,
    /// Passages of the documents of the chat.
    SearchDocuments,
    /// The passages around one of them.
    OpenPassage,
    /// All documents of the chat, part by part.
    ReadAll,
    /// A note about the person, which they confirm.
    SuggestNote,
}

/// A call of a built-in tool.
pub struct OwnCall<'a> {
    /// The arguments, which fit its schema.
    pub arguments: &'a Value,
    /// The chat.
    pub chat: &'a str,
    /// The person's time zone.
    pub zone: &'a str,
    /// The search engine that the person chose.
    pub engine: Option<&'a SearchEngine>,
    /// Hears how far it is.
    pub tell: TellProgress,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::GetTime,
        Self::Calculate,
        Self::SearchChats,
        Self::ReadAttachment,
        Self::FetchPage,
        Self::SearchWeb,
        Self::SearchDocuments,
        Self::OpenPassage,
        Self::ReadAll,
        Self::SuggestNote,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::GetTime => "get_time",
            Self::Calculate => "calculate",
            Self::SearchChats => protocol::SEARCH_CHATS,
            Self::ReadAttachment => "read_attachment",
            Self::FetchPage => "fetch_page",
            Self::SearchWeb => "search_web",
            Self::SearchDocuments => "search_documents",
            Self::OpenPassage => "open_passage",
            Self::ReadAll => "read_all",
            Self::SuggestNote => protocol::SUGGEST_NOTE,
        }
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// True if it reaches the internet, so that it is off until a person switches it on, and a consent to it is one for
    /// a host.
    pub fn reaches_the_internet(self) -> bool {
        matches!(self, Self::FetchPage | Self::SearchWeb)
    }

    /// True if a result may hold words of strangers: of pages, files, and answers about them in other chats.
    pub fn may_quote_strangers(self) -> bool {
        !matches!(self, Self::GetTime | Self::Calculate | Self::SuggestNote)
    }

    /// True if a person is asked about every call, whatever they allowed before: their word on it is what it is for.
    pub fn always_asks(self) -> bool {
        self == Self::SuggestNote
    }

    /// The host that a call with these arguments reaches; `None` for a tool that reaches none.
    ///
    /// # Errors
    /// A sentence about an address that it does not reach; nothing was asked then.
    pub fn host(self, arguments: &Value, engine: Option<&SearchEngine>) -> Result<Option<String>, String> {
        match self {
            Self::FetchPage => web::host_of_page(text(arguments, "url").unwrap_or_default()).map(Some),
            Self::SearchWeb => engine.map(SearchEngine::host).transpose(),
            _ => Ok(None),
        }
    }

    /// Runs it.
    pub async fn run(self, call: OwnCall<'_>, sources: &Sources) -> Outcome {
        let OwnCall { arguments, chat, .. } = call;
        let chats = &*sources.chats;
        let result = match self {
            Self::GetTime => clock::time(text(arguments, "timezone").unwrap_or(call.zone)).map(said),
            Self::Calculate => calculate(text(arguments, "expression")).await.map(said),
            Self::SearchChats => chats::search(chats, chat, arguments, call.zone).await,
            Self::ReadAttachment => attachments::read(chats, chat, arguments).await.map(said),
            Self::FetchPage => web::fetch(sources, arguments).await.map(said),
            Self::SearchWeb => match call.engine {
                Some(engine) => {
                    let query = text(arguments, "query").unwrap_or_default();
                    web::search(sources, engine, query).await.map(said)
                }
                None => Err("no search engine is set up; the person does that under Settings › Tools".to_owned()),
            },
            Self::SearchDocuments => documents::search(chats, chat, arguments).await,
            Self::OpenPassage => documents::around(chats, chat, arguments).await,
            Self::ReadAll => documents::read_all(chats, chat, arguments, call.tell).await,
            Self::SuggestNote => notes::keep(chats, chat, arguments).await.map(said),
        };
        result.unwrap_or_else(Outcome::failed)
    }
}

fn said(text: String) -> Outcome {
    Outcome {
        parts: vec![ResultPart::Text(text)],
        ..Outcome::default()
    }
}

async fn calculate(expression: Option<&str>) -> Result<String, String> {
    let Some(expression) = expression.map(str::to_owned) else {
        return Err("there is no expression".to_owned());
    };
    let computed = tokio::task::spawn_blocking(move || calculator::value(&expression)).await;
    computed.unwrap_or_else(|_| Err("the expression cannot be computed".to_owned()))
}
