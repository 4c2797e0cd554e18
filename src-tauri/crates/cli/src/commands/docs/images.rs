use anyhow::Result;
use knowledge::{Collection, Knowledge};
use protocol::Error;
use serde_json::json;

use super::reading::{bar, LOOK_EVERY};
use crate::output::{self, one_line, plural};

/// Reads the images of a collection that no model has read yet, with the progress, and reports those that failed.
///
/// # Errors
/// When the model is not on this computer, does not support images or fails, or the index cannot be written.
pub async fn read(knowledge: &Knowledge, collection: &Collection, model: &str, json: bool) -> Result<()> {
    let bar = bar("images", json);
    let work = async { knowledge.read_images(&collection.id, model).await.map_err(Error::from) };
    let look = async {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Some(reading) = knowledge.image_reading(&collection.id) {
                bar.set_length(reading.of);
                bar.set_position(reading.done);
                if json {
                    // A closed pipe leaves nobody to tell.
                    let _ = output::line(&json!({"type": "progress", "done": reading.done, "total": reading.of}));
                }
            }
        }
    };
    let read = tokio::select! {
        read = work => read,
        () = look => unreachable!("it looks until it is dropped"),
    };
    bar.finish_and_clear();
    let read = read?;
    for (path, error) in &read.failed {
        let file = path.to_string_lossy();
        if json {
            output::line(&json!({"type": "image_failed", "file": file, "error": error}))?;
        } else {
            eprintln!(
                "{} was not read: {}",
                one_line(&file, usize::MAX),
                one_line(&error.message, usize::MAX)
            );
        }
    }
    let mut text = format!(
        "{}: {} read now",
        one_line(&collection.name, usize::MAX),
        plural(read.read, "image")
    );
    if !read.failed.is_empty() {
        text += &format!(", {} failed", read.failed.len());
    }
    let value = json!({
        "type": "images",
        "id": collection.id,
        "name": collection.name,
        "read": read.read,
        "failed": read.failed.len(),
    });
    Ok(output::report(json, &value, &text)?)
}
