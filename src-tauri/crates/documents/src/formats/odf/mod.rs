//! Text of OpenDocument files: texts, sheets and slides, which share one language.

mod cells;
mod flow;

use super::archive::Archive;
use super::xml::{walk, Mark};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;

const MANIFEST: &str = "META-INF/manifest.xml";
const CONTENT: &str = "content.xml";

/// The text of a file.
///
/// # Errors
/// If the file is broken, protected or too large.
pub(crate) fn text(archive: &mut Archive<'_>, budget: &Budget) -> Result<String> {
    let kind = archive.kind();
    if archive.has(MANIFEST) {
        walk(&archive.part(MANIFEST)?, kind, budget, |mark| match mark {
            Mark::Open(tag) if tag.name() == "encryption-data" => Err(Error::Protected(kind.name().into())),
            _ => Ok(()),
        })?;
    }
    let content = archive.part(CONTENT)?;
    match kind {
        DocumentKind::Ods => cells::text(&content, budget),
        kind => flow::text(&content, kind, budget),
    }
}
