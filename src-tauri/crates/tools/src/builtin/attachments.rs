//! Files that are attached to the chat of a call, read in parts.

use api::FileText;
use protocol::ExcerptUnit;
use serde_json::Value;

use super::arguments::{number, text};
use super::sources::{AttachedFile, ChatSource};
use crate::visible::readable;

/// Bytes of a part at most.
const LONGEST: usize = 30_000;

/// Names in a list at most.
const MOST_NAMES: usize = 50;

/// A part of a file of this chat, or the list of its files.
pub(super) async fn read(chats: &dyn ChatSource, chat: &str, arguments: &Value) -> Result<String, String> {
    let files = chats.files(chat.to_owned()).await.map_err(|error| error.message)?;
    let list = list(&files);
    let Some(name) = text(arguments, "name").map(str::trim).filter(|name| !name.is_empty()) else {
        return Ok(list);
    };
    // Of several files with one name the latest counts.
    let exact = files.iter().rfind(|file| file.name == name);
    let alike = || {
        files
            .iter()
            .rfind(|file| file.name.to_lowercase() == name.to_lowercase())
    };
    let file = exact
        .or_else(alike)
        .ok_or_else(|| format!("No file of this chat is called so. {list}"))?;
    let whole = chats.text(chat.to_owned(), file.attachment.clone()).await;
    let whole = whole.map_err(|error| error.message)?;
    part(&file.name, &whole, arguments)
}

fn list(files: &[AttachedFile]) -> String {
    if files.is_empty() {
        return "This chat has no files.".to_owned();
    }
    let names: Vec<String> = files
        .iter()
        .rev()
        .take(MOST_NAMES)
        .map(|file| one_line(&file.name))
        .collect();
    format!("Files of this chat, the latest first:\n- {}", names.join("\n- "))
}

fn part(name: &str, file: &FileText, arguments: &Value) -> Result<String, String> {
    let unit = match file.unit {
        ExcerptUnit::Pages => "page",
        ExcerptUnit::Lines => "line",
    };
    let all = file.pieces.len();
    let first = number(arguments, "first").unwrap_or(1).max(1);
    let last = number(arguments, "last").unwrap_or(all).min(all);
    if first > last {
        return Err(format!("{} has the {unit}s 1 to {all}", one_line(name)));
    }
    let word = text(arguments, "search")
        .map(str::to_lowercase)
        .filter(|word| !word.trim().is_empty());
    let chosen = file.pieces.iter().zip(1..).take(last).skip(first - 1);
    let chosen = chosen.filter(|(piece, _)| word.as_ref().is_none_or(|word| piece.to_lowercase().contains(word)));
    let mut said = String::new();
    let mut next = None;
    let mut count = 0;
    for (piece, at) in chosen {
        let piece = match file.unit {
            ExcerptUnit::Pages => format!("[page {at}]\n{}\n\n", piece.trim()),
            ExcerptUnit::Lines if word.is_some() => format!("{at}: {}\n", piece.trim_end()),
            ExcerptUnit::Lines => format!("{}\n", piece.trim_end_matches('\n')),
        };
        let left = LONGEST.saturating_sub(said.len());
        if piece.len() > left {
            // A page that is longer than all that fits is begun at least.
            if said.is_empty() {
                said.push_str(&piece[..piece.floor_char_boundary(left)]);
                count += 1;
                next = Some((at, "in the middle of"));
            } else {
                next = Some((at, "before"));
            }
            break;
        }
        said.push_str(&piece);
        count += 1;
    }
    if count == 0 {
        return Ok(format!(
            "No {unit} of {} from {first} to {last} has this word.",
            one_line(name)
        ));
    }
    let note = next.map_or_else(String::new, |(at, place)| {
        format!("\n[cut {place} {unit} {at} of {all}; `first` reads on from there]")
    });
    let what = match word {
        Some(_) => format!("{unit}s with the word"),
        None => format!("{unit}s {first} to {last} of {all}"),
    };
    Ok(format!("{}, {what}:\n\n{}{note}", one_line(name), readable(&said)))
}

fn one_line(name: &str) -> String {
    readable(name).replace(['\n', '\t'], " ").chars().take(200).collect()
}
