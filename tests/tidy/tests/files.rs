//! The length, width and place of source files.

use tidy::{read, root, sources};

const LONGEST_FILE: usize = 500;
const WIDEST_LINE: usize = 120;

/// Places whose lines are still to be wrapped. This list may only shrink.
const WIDE: [&str; 1] = ["ui/"];

#[test]
fn no_source_file_is_longer_than_it_should_be() {
    let long: Vec<String> = sources()
        .into_iter()
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

#[test]
fn modules_with_a_folder_stand_in_it() {
    let beside: Vec<String> = sources()
        .into_iter()
        .filter(|path| {
            path.strip_suffix(".rs")
                .is_some_and(|folder| root().join(folder).is_dir())
        })
        .collect();
    assert!(
        beside.is_empty(),
        "these are the `mod.rs` of the folder beside them:\n{}",
        beside.join("\n")
    );
}
