use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Result;
use api::CollectionActivity;
use indicatif::{ProgressBar, ProgressStyle};
use knowledge::{Collection, Knowledge, Updated};
use protocol::{Error, ErrorCode, OWN_CHATS};
use serde_json::json;

use crate::output::{self, plural};

/// The time between two looks at the progress.
pub const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Reads what is new in a collection, with its progress, and reports it.
///
/// # Errors
/// When its folder cannot be read, or the index cannot be written.
pub async fn update(knowledge: &Knowledge, collection: &Collection, json: bool) -> Result<()> {
    // The window reads them, which has the history open and is told of changes.
    if collection.id == OWN_CHATS {
        return Ok(());
    }
    let bar = bar("files", json);
    let work = async { knowledge.update(&collection.id).await.map_err(Error::from) };
    let look = async {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let activity = knowledge.activity_of(&collection.id);
            if let CollectionActivity::Reading { done, of } = activity {
                bar.set_length(of);
                bar.set_position(done);
                if json {
                    // A closed pipe leaves nobody to tell.
                    let _ = output::line(&json!({"type": "progress", "done": done, "total": of}));
                }
            }
        }
    };
    let updated = tokio::select! {
        updated = work => updated,
        () = look => unreachable!("it looks until it is dropped"),
    };
    bar.finish_and_clear();
    report(knowledge, collection, &updated?, json).await
}

/// Embeds passages that have no embedding yet, with the progress; nothing happens without an embedding model.
///
/// # Errors
/// When the index cannot be read or written, or the model makes no embeddings.
pub async fn embed(knowledge: &Knowledge, json: bool) -> Result<()> {
    let before = knowledge.view().await.map_err(Error::from)?.embeddings;
    if before.model.is_none() {
        if !json {
            eprintln!("(documents are searched by words; an embedding model lets them be searched by meaning, too)");
        }
        return Ok(());
    }
    let bar = bar("passages", json);
    bar.set_length(before.of);
    let work = async { knowledge.embed().await.map_err(Error::from) };
    let look = async {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Ok(view) = knowledge.view().await {
                bar.set_position(view.embeddings.done);
            }
        }
    };
    let embedded = tokio::select! {
        embedded = work => embedded,
        () = look => unreachable!("it looks until it is dropped"),
    };
    bar.finish_and_clear();
    embedded?;
    match knowledge.view().await.map_err(Error::from)?.embeddings.problem {
        Some(problem) => {
            let message = format!("passages were not embedded, so they are searched by words alone: {problem}");
            Err(Error::new(ErrorCode::Engine, message).into())
        }
        None => Ok(()),
    }
}

async fn report(knowledge: &Knowledge, collection: &Collection, updated: &Updated, json: bool) -> Result<()> {
    let view = knowledge.view().await.map_err(Error::from)?;
    let Some(view) = view.collections.into_iter().find(|view| view.id == collection.id) else {
        return Ok(());
    };
    let mut text = format!(
        "{}: {} with {}",
        output::one_line(&view.name, usize::MAX),
        plural(view.read, "file"),
        plural(view.passages, "passage"),
    );
    let changes = [
        (updated.read, "read now"),
        (updated.forgotten, "gone"),
        (view.failed, "cannot be read"),
        (view.skipped, "left out"),
        (view.waiting, "waiting"),
    ];
    for (count, word) in changes.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!(", {count} {word}");
    }
    text += &unread_images(view.images);
    let value = json!({
        "type": "collection",
        "id": view.id,
        "name": view.name,
        "files": view.read,
        "passages": view.passages,
        "read": updated.read,
        "forgotten": updated.forgotten,
        "failed": view.failed,
        "skipped": view.skipped,
        "images": view.images,
        "waiting": view.waiting,
    });
    Ok(output::report(json, &value, &text)?)
}

/// That images were not read, as the end of a line; empty without any.
pub fn unread_images(count: u64) -> String {
    match count {
        0 => String::new(),
        count => format!(", {} not read", plural(count, "image")),
    }
}

/// The progress on standard error, if that is a terminal and nobody reads JSON.
pub fn bar(unit: &str, json: bool) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{{bar:24}} {{percent:>3}}% {{pos}} of {{len}} {unit}"));
    let bar = match json || !std::io::stderr().is_terminal() {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(0),
    };
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
