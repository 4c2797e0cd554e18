//! `ponder history`: chats of the window and the terminal.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use jiff::{tz::TimeZone, Timestamp};
use serde_json::json;

use crate::app::App;
use crate::output;

#[derive(Args)]
pub struct HistoryArgs {
    #[command(subcommand)]
    command: Option<HistoryCommand>,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Subcommand)]
enum HistoryCommand {
    /// Find chats by what was said in them
    Search {
        /// What to look for
        text: String,
    },
    /// Print one chat
    Export {
        /// The chat's id
        id: String,
        /// Markdown for people, JSON for programs
        #[arg(long, value_enum, default_value_t = Format::Md)]
        format: Format,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Md,
    Json,
}

/// Lists, searches or exports.
///
/// # Errors
/// When the history cannot be read or the chat does not exist.
pub async fn run(args: HistoryArgs) -> Result<()> {
    let app = App::open().await?;
    match args.command {
        None => {
            let chats = app.chat.chats().await?;
            if args.json {
                output::line(&json!({"chats": chats}))?;
            }
            for chat in chats.iter().filter(|_| !args.json) {
                output::text(&format!("{}  {}  {}\n", chat.id, day(chat.updated_at), chat.title))?;
            }
        }
        Some(HistoryCommand::Search { text }) => {
            let found = app.chat.search(&text).await?;
            if args.json {
                output::line(&json!({"found": found}))?;
            }
            for hit in found.iter().filter(|_| !args.json) {
                output::text(&format!(
                    "{}  {}  {}\n    {}\n",
                    hit.chat,
                    day(hit.at),
                    hit.title,
                    hit.snippet.replace('\n', " ")
                ))?;
            }
        }
        Some(HistoryCommand::Export { id, format: Format::Md }) => output::text(&app.chat.export_markdown(&id).await?)?,
        Some(HistoryCommand::Export { id, format: Format::Json }) => output::line(&app.chat.export_json(&id).await?)?,
    }
    Ok(())
}

fn day(milliseconds: i64) -> String {
    Timestamp::from_millisecond(milliseconds)
        .map(|time| time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string())
        .unwrap_or_default()
}
