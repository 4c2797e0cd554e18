use anyhow::Result;
use api::{CollectionActivity, CollectionFileState, CollectionSource, CollectionView, SkipReason};
use knowledge::Knowledge;
use protocol::Error;
use serde_json::json;

use super::named::collection_named;
use super::reading::unread_images;
use crate::output::{self, one_line, plural};

/// Lists all collections.
///
/// # Errors
/// When the index cannot be read.
pub async fn collections(knowledge: &Knowledge, json: bool) -> Result<()> {
    let view = knowledge.view().await.map_err(Error::from)?;
    if json {
        let lines = view.collections.iter();
        return lines
            .into_iter()
            .try_for_each(|collection| Ok(output::line(&json!(collection))?));
    }
    if view.collections.is_empty() {
        return Ok(output::text(
            "No documents. Add a folder with 'ponder docs add FOLDER'.\n",
        )?);
    }
    let mut text: String = view.collections.iter().map(line).collect();
    let embeddings = view.embeddings;
    text += &match embeddings.model {
        Some(model) => format!(
            "{} of {} passages have embeddings of {}\n",
            embeddings.done,
            embeddings.of,
            one_line(&model, usize::MAX)
        ),
        None => "Without an embedding model, documents are searched by words alone.\n".to_owned(),
    };
    Ok(output::text(&text)?)
}

fn line(view: &CollectionView) -> String {
    let place = match &view.source {
        CollectionSource::Folder { path } => path.clone(),
        CollectionSource::Files { paths } => plural(paths.len() as u64, "file"),
        CollectionSource::Chats => "read while Ponder's window is open".to_owned(),
    };
    let mut text = format!(
        "{}  {}  {}, {}",
        one_line(&view.name, usize::MAX),
        one_line(&place, usize::MAX),
        plural(view.read, "file"),
        plural(view.passages, "passage")
    );
    let rest = [
        (view.waiting, "waiting"),
        (view.failed, "cannot be read"),
        (view.skipped, "left out"),
    ];
    for (count, word) in rest.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!(", {count} {word}");
    }
    text += &unread_images(view.images);
    match &view.activity {
        CollectionActivity::Paused => text += " (paused)",
        CollectionActivity::Failed { error } => text += &format!("\n  {}", one_line(&error.message, usize::MAX)),
        CollectionActivity::Idle | CollectionActivity::Looking | CollectionActivity::Reading { .. } => {}
    }
    text + "\n"
}

/// Lists the files of a collection with their states.
///
/// # Errors
/// When there is no such collection, or the index cannot be read.
pub async fn files(knowledge: &Knowledge, name: &str, json: bool) -> Result<()> {
    let collection = collection_named(knowledge, name).await?;
    let files = knowledge.files(&collection.id).await.map_err(Error::from)?;
    if json {
        return files.iter().try_for_each(|file| Ok(output::line(&json!(file))?));
    }
    let text: String = files
        .iter()
        .map(|file| {
            let state = match &file.state {
                CollectionFileState::Waiting => "waiting".to_owned(),
                CollectionFileState::Read { passages } => plural(*passages, "passage"),
                CollectionFileState::Failed { error } => {
                    format!("cannot be read: {}", one_line(&error.message, usize::MAX))
                }
                CollectionFileState::LeftOut { reason } => format!("left out: {}", left_out(*reason)),
            };
            format!("{}  {state}\n", one_line(&file.path, usize::MAX))
        })
        .collect();
    Ok(output::text(&text)?)
}

/// Why a file is left out, for people.
fn left_out(reason: Option<SkipReason>) -> &'static str {
    match reason {
        Some(SkipReason::Hidden) => "its name begins with a dot",
        Some(SkipReason::Ignored) => "an ignore file names it",
        Some(SkipReason::Pattern) => "the patterns leave it out",
        Some(SkipReason::Link) => "links are not followed",
        Some(SkipReason::Special) => "it is a pipe, a socket or a device",
        Some(SkipReason::TooLarge) => "it is too large",
        Some(SkipReason::Empty) => "it is empty",
        Some(SkipReason::Unreadable) => "it may not be read",
        Some(SkipReason::TooMany) => "the collection has too many files",
        Some(SkipReason::Changing) => "it changed while it was read",
        Some(SkipReason::Gone) => "it is gone",
        Some(SkipReason::Image) => "it is an image, which 'ponder docs update --images MODEL' reads",
        None => "for a reason of another version",
    }
}
