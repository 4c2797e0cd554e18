//! The chat templates of public packages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use prompt::Splitter;

/// The markers that a template spells out, which are tokens of its model, and those that its model has besides.
pub fn spelled(template: &str) -> Vec<&'static str> {
    let formats = Splitter::names().filter_map(|name| Splitter::named(name, false, true));
    let mut markers: BTreeSet<&str> = formats
        .flat_map(|format| format.markers().collect::<Vec<_>>())
        .collect();
    if template.contains(":opensource") {
        return markers
            .into_iter()
            .filter(|marker| marker.contains(":opensource"))
            .collect();
    }
    if template.contains("<|eot_id|>") {
        markers.retain(|marker| template.contains(marker) || *marker == "<|python_tag|>");
        return markers.into_iter().collect();
    }
    markers
        .into_iter()
        .filter(|marker| marker.starts_with('<') && template.contains(marker))
        .collect()
}

/// The templates of a folder.
pub fn templates(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .flat_map(|path| if path.is_dir() { templates(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|ending| ending == "jinja"))
        .collect();
    found.sort();
    found
}
