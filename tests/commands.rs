//! The window calls what the shell offers: every `invoke('name', {…})` of the interface is a command with those
//! arguments, and every command is called.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Names of arguments by the command they belong to.
type Signatures = BTreeMap<String, BTreeSet<String>>;

#[test]
fn every_call_of_the_window_is_a_command_with_those_arguments() {
    let offered = offered();
    let called = called();
    assert!(
        called.len() > 30,
        "only {} calls were found: is this reader out of date?",
        called.len()
    );
    assert_eq!(
        registered(),
        offered.keys().cloned().collect(),
        "`commands::all` lists every command once"
    );
    for (name, arguments) in &called {
        let wanted = offered
            .get(name)
            .unwrap_or_else(|| panic!("the window calls {name}, which is no command"));
        assert_eq!(
            arguments, wanted,
            "arguments of {name}: the window's beside the command's"
        );
    }
    let unused: Vec<_> = offered.keys().filter(|name| !called.contains_key(*name)).collect();
    assert!(unused.is_empty(), "nobody calls {unused:?}");
}

/// The calls in `ui/src/host/tauri.ts`.
fn called() -> Signatures {
    let text = read("ui/src/host/tauri.ts");
    let mut calls = Signatures::new();
    for (start, _) in text.match_indices("invoke(") {
        let inside = balanced(&text[start + "invoke".len()..]);
        let parts = split(inside);
        let Some(name) = parts
            .first()
            .and_then(|name| name.strip_prefix('\'')?.strip_suffix('\''))
        else {
            panic!("a call without a plain name: {inside}");
        };
        // A body that is not an object has no argument names.
        let fields = parts.get(1).filter(|object| object.starts_with('{'));
        let fields = fields.map(|object| split(balanced(object))).unwrap_or_default();
        let names = fields
            .iter()
            .map(|field| field.split(':').next().unwrap_or(field).trim().to_owned());
        assert!(
            calls.insert(name.to_owned(), names.collect()).is_none(),
            "{name} is called twice"
        );
    }
    calls
}

/// The functions of the shell that are commands, with the arguments that a window gives.
fn offered() -> Signatures {
    let mut commands = Signatures::new();
    for file in fs::read_dir(Path::new(ROOT).join("src-tauri/src/commands"))
        .expect("a folder")
        .flatten()
    {
        let text = fs::read_to_string(file.path()).expect("text");
        for after in text.split("#[tauri::command]").skip(1) {
            let (_, function) = after.split_once("fn ").expect("a function follows");
            let name = function.split(['(', '<']).next().expect("it has a name").trim();
            let arguments = split(balanced(&function[name.len()..]));
            let given = arguments.iter().filter_map(|argument| {
                let (name, kind) = argument.split_once(':')?;
                // Tauri itself gives these.
                let own = ["State<", "AppHandle", "WebviewWindow", "Request<"]
                    .iter()
                    .any(|own| kind.trim().starts_with(own));
                (!own).then(|| camel(name.trim()))
            });
            assert!(
                commands.insert(name.to_owned(), given.collect()).is_none(),
                "{name} stands twice"
            );
        }
    }
    commands
}

/// The names in the list that Tauri is given.
fn registered() -> BTreeSet<String> {
    let text = read("src-tauri/src/commands/mod.rs");
    let (_, list) = text.split_once("generate_handler!").expect("there is a list");
    split(balanced(list))
        .iter()
        .map(|path| path.rsplit("::").next().unwrap_or(path).to_owned())
        .collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).expect("it is text")
}

/// The text between the bracket that `text` begins with and its closing one.
fn balanced(text: &str) -> &str {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[1..at];
        }
    }
    panic!("a bracket is never closed: {text}");
}

/// A list's entries: commas inside brackets belong to their entry.
fn split(text: &str) -> Vec<String> {
    let (mut entries, mut depth) = (vec![String::new()], 0);
    for letter in text.chars() {
        match letter {
            '(' | '{' | '[' | '<' => depth += 1,
            ')' | '}' | ']' | '>' => depth -= 1,
            ',' if depth == 0 => {
                entries.push(String::new());
                continue;
            }
            _ => {}
        }
        entries.last_mut().expect("there is one").push(letter);
    }
    let trimmed = entries.iter().map(|entry| entry.trim().to_owned());
    trimmed.filter(|entry| !entry.is_empty()).collect()
}

/// A Rust name as JavaScript writes it.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (head, tail) = word.split_at(1);
        camel += &(head.to_uppercase() + tail);
    }
    camel
}
