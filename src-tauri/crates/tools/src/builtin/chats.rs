//! The person's own chats, searched.

use api::{HistoryHit, HistoryQuery};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use protocol::Role;
use serde_json::Value;

use super::arguments::text;
use super::said;
use super::sources::ChatSource;
use crate::outcome::{Outcome, ResultPart};
use crate::visible::readable;

/// Places that a model is told of at most.
const MOST: usize = 12;

/// Characters of a title and of an excerpt at most.
const LONGEST_TITLE: usize = 120;
const LONGEST_EXCERPT: usize = 300;

/// Characters of the words at most.
const LONGEST_QUERY: usize = 500;

/// The places in chats other than this one.
pub(super) async fn search(
    chats: &dyn ChatSource,
    chat: &str,
    arguments: &Value,
    zone: &str,
) -> Result<Outcome, String> {
    let zone = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
    let words: String = text(arguments, "query")
        .unwrap_or_default()
        .chars()
        .take(LONGEST_QUERY)
        .collect();
    if !words.chars().any(char::is_alphanumeric) {
        return Err("there are no words to search for".to_owned());
    }
    let is_dated = text(arguments, "since").or(text(arguments, "until")).is_some();
    if !is_dated {
        let passages = chats.chat_passages(chat.to_owned(), words.clone()).await;
        if let Some(found) = passages.map_err(|error| error.message)? {
            return Ok(Outcome {
                parts: vec![ResultPart::Passages(found)],
                ..Outcome::default()
            });
        }
    }
    let query = HistoryQuery {
        since: text(arguments, "since")
            .map(|day| beginning(day, 0, &zone))
            .transpose()?,
        until: text(arguments, "until")
            .map(|day| beginning(day, 1, &zone))
            .transpose()?,
        ..HistoryQuery::words(&words)
    };
    let found = chats.search(query).await.map_err(|error| error.message)?;
    let others: Vec<&HistoryHit> = found.hits.iter().filter(|hit| hit.chat != chat).collect();
    let mut lines: Vec<String> = others.iter().take(MOST).map(|hit| line(hit, &zone)).collect();
    if lines.is_empty() {
        lines.push("No other chat has these words.".to_owned());
    }
    if others.len() > MOST || found.more {
        lines.push("[There are more places; more words narrow the search.]".to_owned());
    }
    if found.indexing {
        lines.push("[Older chats are still being read into the index.]".to_owned());
    }
    Ok(said(lines.join("\n")))
}

/// The begin of a day, or of one some days later, in Unix milliseconds.
fn beginning(day: &str, later: i64, zone: &TimeZone) -> Result<i64, String> {
    let wrong = || format!("{:?} is no day; one looks like 2026-01-31", short(day, 40));
    let day: Date = day.trim().parse().map_err(|_| wrong())?;
    let begins = day.checked_add(later.days()).and_then(|day| day.to_zoned(zone.clone()));
    Ok(begins.map_err(|_| wrong())?.timestamp().as_millisecond())
}

fn line(hit: &HistoryHit, zone: &TimeZone) -> String {
    let at = Timestamp::from_millisecond(hit.at).unwrap_or_default();
    let at = at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string();
    let author = match hit.role {
        Some(Role::User) => ", the user",
        Some(_) => ", a model",
        None => "",
    };
    let title = short(&hit.title, LONGEST_TITLE);
    let title = if title.is_empty() { "untitled" } else { &title };
    format!(
        "- {at}, chat “{title}”{author}: {}",
        short(&hit.snippet, LONGEST_EXCERPT)
    )
}

/// A text on one line, without anything invisible, cut to this many characters.
fn short(text: &str, most: usize) -> String {
    let line = readable(text).replace(['\n', '\t'], " ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
