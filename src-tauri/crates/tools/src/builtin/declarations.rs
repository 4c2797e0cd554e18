//! Built-in tools as a model and a person are told of them.

use api::CallEffects;
use serde_json::{json, Value};

use super::Builtin;
use crate::catalog::Tool;

impl Builtin {
    /// As a tool among others.
    pub fn tool(self) -> Tool {
        let (title, description) = self.words();
        let (properties, required) = self.arguments();
        Tool {
            name: self.name().to_owned(),
            title: Some(title.to_owned()),
            description: description.to_owned(),
            parameters: json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false
            }),
            effects: CallEffects {
                read_only: self != Self::SuggestNote,
                destructive: false,
                open_world: self.reaches_the_internet(),
            },
        }
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::GetTime => ("Time", "Tells the date and the time now, in a time zone."),
            Self::Calculate => (
                "Calculator",
                "Computes an expression exactly, such as 0.1 + 0.2, 2^64 / 3 or 15% of 80.",
            ),
            Self::SearchChats => (
                "Search chats",
                "Searches the user's other chats for words. Returns short excerpts with titles and dates.",
            ),
            Self::ReadAttachment => (
                "Read attachment",
                "Reads a file that is attached to this chat: pages or lines of it, or those with a word. Without a name \
                 it lists the files.",
            ),
            Self::FetchPage => (
                "Read web page",
                "Reads the text of a page on the internet. Scripts do not run, and images are left out.",
            ),
            Self::SearchWeb => (
                "Search the web",
                "Searches the web and returns up to ten results with title, address and excerpt.",
            ),
            Self::SearchDocuments => (
                "Search documents",
                "Searches the user's documents. Returns the passages that answer best, each with a number to cite.",
            ),
            Self::OpenPassage => (
                "Read around a passage",
                "Returns the passages before and after one that was found, to read on in its file.",
            ),
            Self::SuggestNote => (
                "Suggest a note",
                "Suggests a short note about the user that will be useful in later chats, such as a preference or a fact \
                 that they told. The user confirms or refuses it.",
            ),
            Self::ReadAll => (
                "Read all documents",
                "Reads all of the user's documents, part by part, and returns notes on a question. For questions that need \
                 everything: count, list every, compare, summarize. It takes long; search first if a few passages may do.",
            ),
        }
    }

    fn arguments(self) -> (Value, Vec<&'static str>) {
        let text = |description: &str| json!({ "type": "string", "description": description });
        let number =
            |least: u32, description: &str| json!({ "type": "integer", "minimum": least, "description": description });
        match self {
            Self::GetTime => {
                let zone = "A name of the IANA database, such as Europe/Berlin. Without it: the user's own.";
                (json!({ "timezone": text(zone) }), Vec::new())
            }
            Self::Calculate => (json!({ "expression": text("The expression.") }), vec!["expression"]),
            Self::SearchChats => (
                json!({
                    "query": text("Words that all occur in one message; \"quoted words\" occur one after another."),
                    "since": text("The first day, such as 2026-01-31."),
                    "until": text("The last day."),
                }),
                vec!["query"],
            ),
            Self::ReadAttachment => (
                json!({
                    "name": text("The file's name."),
                    "first": number(1, "The first page, or line of a file without pages."),
                    "last": number(1, "The last one."),
                    "search": text("Only pages or lines with this word."),
                }),
                Vec::new(),
            ),
            Self::FetchPage => (
                json!({
                    "url": text("The address, with https://."),
                    "start": number(0, "Where to begin in a long text, as an earlier result said."),
                }),
                vec!["url"],
            ),
            Self::SearchWeb => (json!({ "query": text("What to search for.") }), vec!["query"]),
            Self::SearchDocuments => (
                json!({ "query": text("Words of the passages, or a whole question.") }),
                vec!["query"],
            ),
            Self::OpenPassage => (
                json!({ "number": number(1, "The number of the passage.") }),
                vec!["number"],
            ),
            Self::SuggestNote => (
                json!({ "note": text("One sentence, which is understood without this chat.") }),
                vec!["note"],
            ),
            Self::ReadAll => (
                json!({ "question": text("The question, with everything that has to be noted for it.") }),
                vec!["question"],
            ),
        }
    }
}
