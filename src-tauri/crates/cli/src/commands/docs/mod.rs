mod add;
mod ask;
mod list;
mod named;
mod reading;
mod search;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, Subcommand};
use knowledge::Knowledge;
use serde_json::json;

use self::add::AddArgs;
use self::named::{collection_named, collections_named};
use self::search::SearchArgs;
use crate::app;
use crate::output;

pub(super) use ask::{footer, DocumentSearch};

/// Examples below the help of `ponder docs`.
pub const EXAMPLES: &str = r#"Examples:
  ponder docs add ~/Notes
  ponder docs search "electricity contract"
  ponder docs ask "When does the electricity contract end?""#;

/// The index in the folder of data.
const DOCUMENTS: &str = "documents.sqlite";

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
    },
    /// Read all files again
    Rebuild,
    /// Remove a collection from Ponder (its files stay)
    Remove {
        /// Name or folder of the collection
        name: String,
    },
}

/// The collections of this computer, with the models that embed them.
///
/// # Errors
/// When this computer names no place for Ponder's data.
pub(super) async fn open() -> Result<Knowledge> {
    let data_dir = hub::data_dir()?;
    let models = app::models().await;
    let knowledge = Knowledge::new(
        &data_dir.join(DOCUMENTS),
        Arc::new(app::shared_engine()?),
        Arc::new(models),
    );
    knowledge.choose_model(app::settings().await.embedding_model);
    Ok(knowledge)
}

/// Adds, reads, searches and asks collections of documents.
///
/// # Errors
/// When a collection does not exist, its folder cannot be read, or the index cannot be written.
pub async fn run(args: DocsArgs) -> Result<ExitCode> {
    let knowledge = open().await?;
    let json = args.json;
    match args.command {
        Command::Add(added) => add::add(&knowledge, added, json).await?,
        Command::List { name: Some(name) } => list::files(&knowledge, &name, json).await?,
        Command::List { name: None } => list::collections(&knowledge, json).await?,
        Command::Search(asked) => search::search(&knowledge, asked, json).await?,
        Command::Ask(asked) => return ask::ask(&knowledge, asked, json).await,
        Command::Update { name } => {
            let names: Vec<String> = name.into_iter().collect();
            for collection in collections_named(&knowledge, &names).await? {
                reading::update(&knowledge, &collection, json).await?;
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

/// A path as a person gave it, from the root.
fn absolute(path: &PathBuf) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.clone())
}
