//! The relations between the parts of Office files: which part names which, and as what.

use super::archive::{resolve, Archive, MAX_PARTS};
use super::xml::{walk, Mark};
use crate::budget::Budget;
use crate::error::{Error, Result};

/// A part that another one names.
pub(crate) struct Relation {
    /// Its name within the other part.
    pub id: String,
    /// Its role, such as `slide`: the last word of an address, of which two spellings exist.
    pub role: String,
    /// Its name in the archive.
    pub part: String,
}

/// The parts that a part names; those of the archive itself for an empty name. Addresses outside of it are left out.
///
/// # Errors
/// If they are damaged or too many.
pub(crate) fn relations(archive: &mut Archive<'_>, part: &str, budget: &Budget) -> Result<Vec<Relation>> {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let place = match folder {
        "" => format!("_rels/{name}.rels"),
        folder => format!("{folder}/_rels/{name}.rels"),
    };
    let mut found = Vec::new();
    if !archive.has(&place) {
        return Ok(found);
    }
    let kind = archive.kind();
    walk(&archive.part(&place)?, kind, budget, |mark| {
        let Mark::Open(tag) = mark else { return Ok(()) };
        if tag.name() != "Relationship" || tag.attribute("TargetMode").is_some_and(|mode| mode == "External") {
            return Ok(());
        }
        let target = tag.attribute("Target").and_then(|target| resolve(part, &target));
        if let (Some(id), Some(role), Some(part)) = (tag.attribute("Id"), tag.attribute("Type"), target) {
            let role = role.rsplit('/').next().unwrap_or_default().to_owned();
            found.push(Relation { id, role, part });
        }
        match found.len() > MAX_PARTS {
            true => Err(Error::broken(kind, "it names more files than a document has")),
            false => Ok(()),
        }
    })?;
    Ok(found)
}

/// The name of the part with which the document begins, or the one that Office gives it.
///
/// # Errors
/// If the relations are damaged.
pub(crate) fn main_part(archive: &mut Archive<'_>, usual: &str, budget: &Budget) -> Result<String> {
    let mut named = relations(archive, "", budget)?.into_iter();
    let main = named.find(|relation| relation.role == "officeDocument" && archive.has(&relation.part));
    Ok(main.map_or_else(|| usual.to_owned(), |main| main.part))
}
