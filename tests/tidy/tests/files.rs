//! The length and width of source files.

use tidy::{read, sources};

const LONGEST_FILE: usize = 500;
const WIDEST_LINE: usize = 120;
/// Files that are still to be split. This list may only shrink.
const LATER: [&str; 3] = [
    "src-tauri/crates/chat/tests/it/continuation.rs",
    "src-tauri/crates/history/tests/it/messages.rs",
    "tests/window.rs",
];

/// Places whose lines are still to be wrapped. This list may only shrink.
const WIDE: [&str; 1] = ["ui/"];

#[test]
fn no_source_file_is_longer_than_it_should_be() {
    let long: Vec<String> = sources()
        .into_iter()
        .filter(|path| !LATER.contains(&path.as_str()))
        .filter_map(|path| {
            let lines = read(&path).lines().count();
            (lines > LONGEST_FILE).then(|| format!("{path} has {lines} lines"))
        })
        .collect();
    assert!(
        long.is_empty(),
        "look for the noun that wants a file of its own:\n{}",
        long.join("\n")
    );
}

#[test]
fn code_of_two_files_stands_side_by_side() {
    let mut wide = Vec::new();
    for path in sources()
        .iter()
        .filter(|path| !WIDE.iter().any(|place| path.starts_with(place)))
        .filter(|path| [".rs", ".ts", ".svelte"].iter().any(|ending| path.ends_with(ending)))
    {
        // Texts that are shown or compared are as long as they are; comments are wrapped by hand.
        for (number, line) in read(path).lines().enumerate() {
            let text = line.trim_start().starts_with('/')
                || line.trim_start().starts_with('*')
                || line.contains('"')
                || line.contains('\'')
                || line.contains('`')
                || line.contains("http");
            if line.chars().count() > WIDEST_LINE && !text {
                wide.push(format!("{path}:{}", number + 1));
            }
        }
    }
    assert!(
        wide.is_empty(),
        "{} lines are wider than {WIDEST_LINE} columns:\n{}",
        wide.len(),
        wide.join("\n")
    );
}
