mod add;
mod ask;
mod images;
mod list;
mod named;
mod reading;
mod search;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use knowledge::Knowledge;
use protocol::OWN_CHATS;
use serde_json::json;

use self::add::AddArgs;
pub use self::named::collection_named;
use self::named::collections_named;
use self::search::SearchArgs;
use crate::app;
use crate::output;

/// Examples below the help of `ponder docs`.
pub const EXAMPLES: &str = r#"Examples:
  ponder docs add ~/Notes
  ponder docs search "electricity contract"
  ponder docs ask "When does the electricity contract end?""#;

/// `ponder docs`.
#[derive(Args)]
pub struct DocsArgs {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON object per line
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Add a folder or files and read them
    Add(AddArgs),
    /// List collections, or the files of one
    List {
        /// Name or folder of the collection
        name: Option<String>,
    },
    /// Find passages in documents
    Search(SearchArgs),
    /// Ask a model about documents
    Ask(ask::AskArgs),
    /// Read new and changed files
    Update {
        /// Name or folder of the collection (default: all)
        name: Option<String>,
        /// Read images with this local model
        #[arg(long, value_name = "MODEL")]
        images: Option<String>,
    },
    /// Read all files again and forget the texts of images
    Rebuild,
    /// Remove a collection from Ponder (its files stay)
    Remove {
        /// Name or folder of the collection
        name: String,
    },
}

/// Adds, reads, searches and asks collections of documents.
///
/// # Errors
/// When a collection does not exist, its folder cannot be read, or the index cannot be written.
pub async fn run(args: DocsArgs) -> Result<ExitCode> {
    if let Command::Ask(asked) = &args.command {
        asked.model.device.apply();
    }
    let knowledge = app::knowledge().await?;
    let json = args.json;
    match args.command {
        Command::Add(added) => add::add(&knowledge, added, json).await?,
        Command::List { name: Some(name) } => list::files(&knowledge, &name, json).await?,
        Command::List { name: None } => list::collections(&knowledge, json).await?,
        Command::Search(asked) => search::search(&knowledge, asked, json).await?,
        Command::Ask(asked) => return ask::ask(&knowledge, asked, json).await,
        Command::Update { name, images } => {
            let names: Vec<String> = name.into_iter().collect();
            let collections = collections_named(&knowledge, &names).await?;
            for collection in &collections {
                reading::update(&knowledge, collection, json).await?;
            }
            if let Some(model) = images {
                for collection in collections.iter().filter(|collection| collection.id != OWN_CHATS) {
                    images::read(&knowledge, collection, &model, json).await?;
                }
            }
            reading::embed(&knowledge, json).await?;
        }
        Command::Rebuild => {
            knowledge.forget_files().await.map_err(protocol::Error::from)?;
            for collection in collections_named(&knowledge, &[]).await? {
                reading::update(&knowledge, &collection, json).await?;
            }
            reading::embed(&knowledge, json).await?;
        }
        Command::Remove { name } => remove(&knowledge, &name, json).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn remove(knowledge: &Knowledge, name: &str, json: bool) -> Result<()> {
    let collection = collection_named(knowledge, name).await?;
    knowledge.remove(&collection.id).await.map_err(protocol::Error::from)?;
    let text = format!("{} was removed. Its files are untouched.", collection.name);
    Ok(output::report(
        json,
        &json!({"type": "removed", "id": collection.id, "name": collection.name}),
        &text,
    )?)
}
