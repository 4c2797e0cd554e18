mod repair;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use api::{ExportFormat, HistoryHit, HistoryQuery};
use clap::{Args, Subcommand, ValueEnum};
use jiff::{tz::TimeZone, Timestamp};
use serde_json::json;

use crate::app::App;
use crate::output;

/// The bytes of a file that show if it may hold chats.
const BEGINNING: u64 = 1024;

/// Examples below the help of `ponder history`.
pub const EXAMPLES: &str = r#"Examples:
  ponder history search "holiday plans"
  ponder history export --all --format json -o chats.json
  ponder history import conversations.json"#;

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
    /// List chats
    List,
    /// Find chats by their text
    Search {
        /// Words to search for
        text: String,
    },
    /// Print a chat
    Show {
        /// Chat ID
        id: String,
    },
    /// Rename a chat
    Rename {
        /// Chat ID
        id: String,
        /// New title
        #[arg(value_parser = not_blank)]
        title: String,
    },
    /// Move chats to the trash, to be deleted after 30 days
    Delete {
        /// Chat IDs
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Restore chats from the trash
    Restore {
        /// Chat IDs
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Print chats, or write them to a file
    Export {
        /// Chat IDs
        #[arg(required_unless_present = "all", value_name = "ID")]
        ids: Vec<String>,
        /// Export all chats that are not in the trash
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// Markdown, JSON or HTML
        #[arg(long, value_enum, default_value_t = Format::Md, value_name = "md|json|html", hide_possible_values = true)]
        format: Format,
        /// Write to a file
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Check and repair a damaged history
    Repair(repair::RepairArgs),
    /// Import chats from Ponder, ChatGPT, Claude or LM Studio
    Import {
        /// JSON file, or ZIP archive from ChatGPT or Claude
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

/// Refuses a title of blanks alone, which the window takes for none.
fn not_blank(title: &str) -> Result<String, String> {
    match title.trim().is_empty() {
        true => Err("it is blank. Pass a title, such as \"Holiday plans\"".to_owned()),
        false => Ok(title.to_owned()),
    }
}

/// Lists, searches, exports or imports chats.
///
/// # Errors
/// When the history or a file cannot be read, or a chat does not exist.
pub async fn run(args: HistoryArgs) -> Result<()> {
    // A damaged history cannot be opened.
    if let Some(HistoryCommand::Repair(repair)) = args.command {
        return repair::run(repair, args.json).await;
    }
    let app = App::open().await?;
    let done = carry_out(&app, args).await;
    // Leaves the whole history in one file, which may be copied.
    app.chat.shut_down().await;
    done
}

async fn carry_out(app: &App, args: HistoryArgs) -> Result<()> {
    match args.command {
        None | Some(HistoryCommand::List) => {
            let chats = app.chat.chats().list().await?;
            if args.json {
                output::line(&json!({"chats": chats}))?;
            }
            if chats.is_empty() && !args.json {
                output::text("No chats yet. Start one with 'ponder chat'.\n")?;
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
            if found.hits.is_empty() && !args.json {
                output::text("No results.\n")?;
            }
            for hit in found.hits.iter().filter(|_| !args.json) {
                output::text(&hit_lines(hit))?;
            }
        }
        Some(HistoryCommand::Show { id }) => {
            let format = if args.json { Format::Json } else { Format::Md };
            output::text(&exported(app, Some(&[id]), format).await?)?;
        }
        Some(HistoryCommand::Rename { id, title }) => {
            app.chat.chats().rename(&id, &title).await?;
            if args.json {
                output::line(&json!({"renamed": id, "title": title}))?;
            }
        }
        Some(HistoryCommand::Delete { ids }) => {
            for id in &ids {
                app.chat.library().delete(id).await?;
                if !args.json {
                    let back = format!("'ponder history restore {id}' restores it within 30 days");
                    output::text(&format!("Moved {id} to the trash. {back}\n"))?;
                }
            }
            if args.json {
                output::line(&json!({"deleted": ids}))?;
            }
        }
        Some(HistoryCommand::Restore { ids }) => {
            for id in &ids {
                app.chat.library().restore(id).await?;
            }
            if args.json {
                output::line(&json!({"restored": ids}))?;
            }
        }
        Some(HistoryCommand::Export {
            ids,
            all,
            format,
            output,
        }) => {
            let text = exported(app, (!all).then_some(&ids), format).await?;
            match output {
                Some(path) => {
                    fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
                }
                None => output::text(&text)?,
            }
        }
        Some(HistoryCommand::Repair(_)) => {}
        Some(HistoryCommand::Import { file }) => {
            let done = app.chat.library().import(read_whole(&file)?).await?;
            if args.json {
                output::line(&json!(done))?;
            } else {
                let chats = output::plural(done.chats as u64, "chat");
                let messages = output::plural(done.messages as u64, "message");
                let known = match done.already_here {
                    0 => String::new(),
                    known => format!(", skipped {known} already here"),
                };
                let dropped = match done.dropped_images {
                    0 => String::new(),
                    dropped => format!(
                        ", left out {} that cannot be shown",
                        output::plural(dropped as u64, "image")
                    ),
                };
                output::text(&format!("Imported {chats} ({messages}){known}{dropped}\n"))?;
            }
        }
    }
    Ok(())
}

/// A hit of a search: the chat and its title, and the words that were found below.
pub(super) fn hit_lines(hit: &HistoryHit) -> String {
    let (chat, title, snippet) = (&hit.chat, &hit.title, &hit.snippet);
    format!("{chat}  {}  {title}\n    {snippet}\n", day(hit.at))
}

/// The text of these chats, or of all, with a line end.
async fn exported(app: &App, chats: Option<&[String]>, format: Format) -> Result<String> {
    let text = app.chat.library().export(chats, format.into()).await?;
    let has_end = text.is_empty() || text.ends_with('\n');
    Ok(if has_end { text } else { text + "\n" })
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
        "{} is longer than 1 GB. Unpack a ZIP archive and import its conversations.json",
        path.display()
    );
    Ok(bytes)
}

fn day(milliseconds: i64) -> String {
    Timestamp::from_millisecond(milliseconds)
        .map(|time| time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string())
        .unwrap_or_default()
}
