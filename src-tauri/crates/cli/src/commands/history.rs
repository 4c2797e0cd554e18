use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use api::{ExportFormat, HistoryQuery};
use clap::{Args, Subcommand, ValueEnum};
use jiff::{tz::TimeZone, Timestamp};
use serde_json::json;

use crate::app::App;
use crate::output;

/// The bytes of a file that show if it may hold chats.
const BEGINNING: u64 = 1024;

/// `ponder history`.
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
        /// Words to look for
        text: String,
    },
    /// Print one chat or more
    Export {
        /// The chats' ids
        #[arg(required_unless_present = "all")]
        ids: Vec<String>,
        /// All chats outside the trash
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// Markdown or a page for people, JSON for programs
        #[arg(long, value_enum, default_value_t = Format::Md)]
        format: Format,
    },
    /// Take chats from an export of Ponder, ChatGPT, Claude or LM Studio
    Import {
        /// The file, such as conversations.json, or the ZIP archive that ChatGPT or Claude sent
        file: PathBuf,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Md,
    Json,
    Html,
}

impl From<Format> for ExportFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Md => Self::Markdown,
            Format::Json => Self::Json,
            Format::Html => Self::Html,
        }
    }
}

/// Lists, searches, exports or imports chats.
///
/// # Errors
/// When the history or a file cannot be read, or a chat does not exist.
pub async fn run(args: HistoryArgs) -> Result<()> {
    let app = App::open().await?;
    let done = carry_out(&app, args).await;
    // Leaves the whole history in one file, which may be copied.
    app.chat.shut_down().await;
    done
}

async fn carry_out(app: &App, args: HistoryArgs) -> Result<()> {
    match args.command {
        None => {
            let chats = app.chat.chats().list().await?;
            if args.json {
                output::line(&json!({"chats": chats}))?;
            }
            for chat in chats.iter().filter(|_| !args.json) {
                output::text(&format!("{}  {}  {}\n", chat.id, day(chat.updated_at), chat.title))?;
            }
        }
        Some(HistoryCommand::Search { text }) => {
            let found = app.chat.library().search(&HistoryQuery::words(&text)).await?;
            if args.json {
                output::line(&json!({"found": found.hits, "more": found.more, "indexing": found.indexing}))?;
            }
            for hit in found.hits.iter().filter(|_| !args.json) {
                output::text(&format!(
                    "{}  {}  {}\n    {}\n",
                    hit.chat,
                    day(hit.at),
                    hit.title,
                    hit.snippet
                ))?;
            }
        }
        Some(HistoryCommand::Export { ids, all, format }) => {
            let chats = (!all).then_some(&ids[..]);
            let text = app.chat.library().export(chats, format.into()).await?;
            output::text(&if text.ends_with('\n') { text } else { text + "\n" })?;
        }
        Some(HistoryCommand::Import { file }) => {
            let done = app.chat.library().import(read_whole(&file)?).await?;
            if args.json {
                output::line(&json!(done))?;
            } else {
                output::text(&format!(
                    "{} chats with {} messages are new; {} were here already\n",
                    done.chats, done.messages, done.already_here
                ))?;
            }
        }
    }
    Ok(())
}

/// The bytes of a file of chats. A file without chats is refused by its beginning; one that is too long, or a device
/// that never ends, by its length.
fn read_whole(path: &Path) -> Result<Vec<u8>> {
    let unread = || format!("{} cannot be read", path.display());
    let file = File::open(path).with_context(unread)?;
    let mut bytes = Vec::new();
    (&file).take(BEGINNING).read_to_end(&mut bytes).with_context(unread)?;
    chat::check_import_beginning(&bytes)?;
    // A plain file has a length; a device or a pipe has 0, and is given up after one byte more than an import may have.
    let told = file.metadata().with_context(unread)?.len();
    if told <= chat::LONGEST_IMPORT {
        let rest = chat::LONGEST_IMPORT + 1 - bytes.len() as u64;
        (&file).take(rest).read_to_end(&mut bytes).with_context(unread)?;
    }
    anyhow::ensure!(
        told.max(bytes.len() as u64) <= chat::LONGEST_IMPORT,
        "{} is longer than 1 GB; if it is a ZIP archive, unpack it and import conversations.json",
        path.display()
    );
    Ok(bytes)
}

fn day(milliseconds: i64) -> String {
    Timestamp::from_millisecond(milliseconds)
        .map(|time| time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string())
        .unwrap_or_default()
}
