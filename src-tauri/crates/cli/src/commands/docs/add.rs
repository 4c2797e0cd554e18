use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use knowledge::{Knowledge, Rules, Source};
use protocol::{Error, ErrorCode};

use super::named::collection_named;
use super::reading;
use crate::input::absolute;

/// `ponder docs add`.
#[derive(Args)]
pub struct AddArgs {
    /// Folder, or files
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// Name of the collection (default: that of the folder)
    #[arg(long)]
    name: Option<String>,
    /// Read only files that match (repeatable, ! leaves out), for example "*.md"
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Read hidden files, too
    #[arg(long)]
    hidden: bool,
}

/// Adds a collection and reads it.
///
/// # Errors
/// When its folder cannot be read, or the index cannot be written.
pub async fn add(knowledge: &Knowledge, args: AddArgs, json: bool) -> Result<()> {
    let paths: Vec<PathBuf> = args.paths.iter().map(|path| absolute(path)).collect();
    let source = source(paths)?;
    if matches!(source, Source::Files(_)) && (args.hidden || !args.only.is_empty()) {
        let message = "--only and --hidden choose among the files of a folder. Leave them out, or name the folder";
        return Err(Error::new(ErrorCode::BadRequest, message).into());
    }
    let first = match &source {
        Source::Folder(folder) => Some(folder),
        Source::Files(files) => files.first(),
    };
    let called = first.and_then(|path| path.file_name());
    let called = called.map(|name| name.to_string_lossy().into_owned());
    let name = args.name.or(called).unwrap_or_else(|| "Documents".to_owned());
    let rules = Rules {
        patterns: args.only,
        hidden: args.hidden,
        ..Rules::default()
    };
    let known = knowledge.collections().await.map_err(Error::from)?;
    if let Some(known) = known.iter().find(|known| known.source == source) {
        let message = format!(
            "{} is a collection already. 'ponder docs update' reads what changed in it",
            known.name
        );
        return Err(Error::new(ErrorCode::BadRequest, message).into());
    }
    let id = knowledge.add(&name, &source, &rules).await.map_err(Error::from)?;
    let added = collection_named(knowledge, &id).await?;
    reading::update(knowledge, &added, json).await?;
    reading::embed(knowledge, json).await
}

/// One folder, or files.
fn source(mut paths: Vec<PathBuf>) -> Result<Source> {
    if let Some(missing) = paths.iter().find(|path| !path.exists()) {
        let message = format!("{} does not exist", missing.display());
        return Err(Error::new(ErrorCode::NotFound, message).into());
    }
    match (paths.iter().any(|path| path.is_dir()), paths.len()) {
        (false, _) => Ok(Source::Files(paths)),
        (true, 1) => Ok(Source::Folder(paths.remove(0))),
        (true, _) => {
            let message = "a collection is one folder, or files. Add each folder by itself";
            Err(Error::new(ErrorCode::BadRequest, message).into())
        }
    }
}
