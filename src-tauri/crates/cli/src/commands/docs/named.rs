use std::path::Path;

use anyhow::Result;
use knowledge::{Collection, Knowledge, Source};
use protocol::{Error, ErrorCode};

use crate::input::absolute;
use crate::output::one_line;

/// The collection of this id, name or folder.
///
/// # Errors
/// When there is none, or several have this name.
pub async fn collection_named(knowledge: &Knowledge, name: &str) -> Result<Collection> {
    let all = knowledge.collections().await.map_err(Error::from)?;
    let folder = absolute(Path::new(name));
    let is_meant = |collection: &&Collection| {
        let is_folder = matches!(&collection.source, Source::Folder(own) if *own == folder);
        collection.id == name || collection.name == name || is_folder
    };
    let mut meant = all.iter().filter(is_meant);
    match (meant.next(), meant.next()) {
        (Some(one), None) => Ok(one.clone()),
        (Some(_), Some(_)) => {
            let message = format!(
                "several collections are called {}. Name one by its folder, or by its ID from 'ponder docs list --json'",
                one_line(name, usize::MAX)
            );
            Err(Error::new(ErrorCode::BadRequest, message).into())
        }
        (None, _) => {
            let message = format!(
                "there is no collection called {}. 'ponder docs list' shows all",
                one_line(name, usize::MAX)
            );
            Err(Error::new(ErrorCode::NotFound, message).into())
        }
    }
}

/// The collections of these names; all of them without any.
///
/// # Errors
/// When one of them is not there, or there is none at all.
pub async fn collections_named(knowledge: &Knowledge, names: &[String]) -> Result<Vec<Collection>> {
    let mut meant = Vec::new();
    for name in names {
        meant.push(collection_named(knowledge, name).await?);
    }
    if names.is_empty() {
        meant = knowledge.collections().await.map_err(Error::from)?;
    }
    if meant.is_empty() {
        let message = "there are no documents. Add a folder with 'ponder docs add FOLDER'";
        return Err(Error::new(ErrorCode::NotFound, message).into());
    }
    Ok(meant)
}
