//! The names of files in documents.

use std::path::Path;

use tidy::{files, read, root};

/// Paths in backticks and targets of links, with the document's folder in front where a link is relative.
fn named(document: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            code = !code;
        }
        if code {
            continue;
        }
        found.extend(
            line.split('`')
                .skip(1)
                .step_by(2)
                .filter(|name| is_path(name))
                .map(str::to_owned),
        );
        for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !target.contains("://") && !target.starts_with('#') {
                let folder = Path::new(document).parent().unwrap_or(Path::new(""));
                let target = target.split('#').next().unwrap_or(target);
                found.push(format!("./{}", folder.join(target).display()));
            }
        }
    }
    found
}

/// True for words such as `src/cache/mod.rs`: a path of a source file, without patterns.
fn is_path(word: &str) -> bool {
    let endings = [".rs", ".ts", ".svelte", ".py", ".sh", ".sql", ".md", ".toml"];
    let plain = |letter: char| letter.is_alphanumeric() || "/._-".contains(letter);
    word.contains('/')
        && !word.starts_with(['/', '~'])
        && word.chars().all(plain)
        && endings.iter().any(|end| word.ends_with(end))
}

#[test]
fn every_file_that_a_document_names_exists() {
    let mut gone = Vec::new();
    for document in files()
        .into_iter()
        .filter(|path| path.ends_with(".md") && !path.starts_with("tests/state_pictures/"))
    {
        let folder = Path::new(&document).parent().unwrap_or(Path::new("")).to_owned();
        for name in named(&document, &read(&document)) {
            // From the root, from the document's folder, or from its sources.
            let places = [
                root().join("src-tauri/crates").join(&name),
                root().join(&name),
                root().join(&folder).join(&name),
                root().join(&folder).join("src").join(&name),
            ];
            if !places.iter().any(|place| place.exists()) {
                gone.push(format!("{document}: {name}"));
            }
        }
    }
    assert!(
        gone.is_empty(),
        "these documents name files that are not there:\n{}",
        gone.join("\n")
    );
}

#[test]
fn the_map_is_short() {
    let lines = read("ARCHITECTURE.md").lines().count();
    assert!(
        lines <= 200,
        "ARCHITECTURE.md has {lines} lines: the detail belongs to the room's README"
    );
}

#[test]
fn every_room_has_a_readme() {
    let rooms = files()
        .into_iter()
        .filter(|path| path.starts_with("src-tauri/crates/") && path.ends_with("/Cargo.toml"));
    let without: Vec<String> = rooms
        .map(|path| path.replace("Cargo.toml", "README.md"))
        .filter(|readme| !root().join(readme).is_file())
        .collect();
    assert!(without.is_empty(), "missing: {}", without.join(", "));
}
