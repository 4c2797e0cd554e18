//! Notes on parts of documents, and the passages that go with them.

use std::collections::BTreeSet;

use protocol::ReadDocuments;

use super::size::{quoted_tokens, tokens};

/// The smallest part, in tokens: a context that holds less cannot read documents.
pub(super) const LEAST_PART: usize = 256;

/// The signs between the numbers of a mark.
const SEPARATORS: [char; 3] = [',', ';', ' '];

/// The notes and the passages that fit beside them, those of the first marks first. The numbers of the others are taken
/// out of the notes, because an answer could cite them and nobody could look.
pub(super) fn fitting(mut read: ReadDocuments, most_tokens: u32) -> ReadDocuments {
    let most = (most_tokens as usize).max(LEAST_PART);
    let mut room = most.saturating_sub(tokens(&read.notes));
    let mut kept = BTreeSet::new();
    for number in marks(&read.notes) {
        let passage = read.passages.iter().find(|passage| passage.number == number);
        let Some(size) = passage.map(|passage| quoted_tokens(&passage.text)) else {
            continue;
        };
        if !kept.contains(&number) && size <= room {
            room -= size;
            kept.insert(number);
        }
    }
    if kept.len() < read.passages.len() {
        read.notes = with_marks(&read.notes, &kept);
        read.passages.retain(|passage| kept.contains(&passage.number));
    }
    read
}

/// The notes with these numbers alone in their marks.
fn with_marks(notes: &str, kept: &BTreeSet<u32>) -> String {
    let mut text = String::with_capacity(notes.len());
    let mut rest = notes;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((inside, behind)) = after.split_once(']') else {
            break;
        };
        let numbers: Option<Vec<u32>> = inside
            .split(SEPARATORS)
            .filter(|word| !word.is_empty())
            .map(number)
            .collect();
        text.push_str(before);
        match numbers {
            Some(numbers) if !numbers.is_empty() => {
                let left: Vec<String> = numbers
                    .iter()
                    .filter(|number| kept.contains(number))
                    .map(u32::to_string)
                    .collect();
                match left.is_empty() {
                    true => text.truncate(text.trim_end_matches(' ').len()),
                    false => text.push_str(&format!("[{}]", left.join(", "))),
                }
            }
            _ => text.push_str(&format!("[{inside}]")),
        }
        rest = behind;
    }
    text.push_str(rest);
    text
}

fn number(word: &str) -> Option<u32> {
    word.trim().parse().ok()
}

/// The numbers in brackets of a text, in its order.
fn marks(text: &str) -> Vec<u32> {
    let after = text.split('[').skip(1);
    let inside = after.filter_map(|rest| rest.split_once(']').map(|(inside, _)| inside));
    inside
        .flat_map(|inside| inside.split(SEPARATORS))
        .filter_map(number)
        .collect()
}

/// The numbers in brackets of a text.
pub(super) fn numbers(text: &str) -> BTreeSet<u32> {
    marks(text).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use protocol::{Coverage, QuotedPassage};

    use super::*;

    fn passage(number: u32) -> QuotedPassage {
        QuotedPassage {
            number,
            collection: "c".into(),
            file: "a.txt".into(),
            file_hash: String::new(),
            headings: String::new(),
            page: None,
            first_line: number,
            last_line: number,
            text: "word ".repeat(200),
        }
    }

    #[test]
    fn notes_name_only_the_passages_that_go_with_them() {
        let notes = "- Boats [3, 1].\n- Fees [2] and a list [x] [4; 3].\n- Open [";
        let read = ReadDocuments {
            notes: notes.to_owned(),
            passages: (1..=4).map(passage).collect(),
            coverage: Coverage::default(),
            parts: 2,
        };
        let all = fitting(read.clone(), 10_000);
        assert_eq!((all.notes.as_str(), all.passages.len()), (notes, 4));
        let own = quoted_tokens(&passage(1).text);
        let two = fitting(read.clone(), (tokens(notes) + 2 * own) as u32);
        assert_eq!(two.notes, "- Boats [3, 1].\n- Fees and a list [x] [3].\n- Open [");
        let left: Vec<u32> = two.passages.iter().map(|passage| passage.number).collect();
        assert_eq!(left, [1, 3]);
        let longer = read.passages.iter().map(|passage| QuotedPassage {
            text: "word ".repeat(4 * LEAST_PART),
            ..passage.clone()
        });
        let longer = ReadDocuments {
            passages: longer.collect(),
            ..read
        };
        let none = fitting(longer, 0);
        assert_eq!(
            (none.notes.as_str(), none.passages.len()),
            ("- Boats.\n- Fees and a list [x].\n- Open [", 0)
        );
    }
}
