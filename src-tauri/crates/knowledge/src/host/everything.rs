//! Reading all documents for a question: notes on each part, which a model makes in the background, and notes on the
//! notes until they fit.

use std::collections::BTreeSet;

use protocol::{
    CallProgress, CancelOnDrop, Content, Coverage, EngineEvent, Error as Failure, ErrorCode, Message, Priority,
    QuotedPassage, ReadDocuments, ReadingCost, ReadingRequest, Request, Role, TellProgress, Thinking,
};

use super::finding::quoted;
use super::size::{quoted_tokens, tokens};
use super::Knowledge;
use crate::Result;

/// Passages that are read from the index at once.
const AT_ONCE: u32 = 512;

/// Tokens of notes on a part at most.
const LONGEST_NOTES: u32 = 400;

/// The smallest part, in tokens: a context that holds less cannot read documents.
const LEAST_PART: usize = 256;

/// The answer of a model that has nothing to note.
const NOTHING: &str = "NOTHING";

/// The signs between the numbers of a mark.
const SEPARATORS: [char; 3] = [',', ';', ' '];

const INSTRUCTIONS: &str = "You read one part of a person's documents at a time and take notes for a question that is \
    answered later, from the notes of all parts. Note every fact of this part that the question needs, such as each \
    entry of a list or count, with the number of its passage in brackets. Do not answer the question. If this part has \
    nothing for it, write NOTHING.";

const JOIN: &str = "These are notes on parts of a person's documents, taken for a question. Write them as one list \
    without repetitions. Keep every fact and the numbers in brackets. Add counts together.";

/// The parts that passages make, counted one by one: a larger passage is a part of its own.
struct PartSizes {
    most: usize,
    size: usize,
}

impl PartSizes {
    fn new(most_tokens: u32) -> Self {
        Self {
            most: (most_tokens as usize).max(LEAST_PART),
            size: usize::MAX,
        }
    }

    /// Adds a passage of this size; true if a part begins with it.
    fn begins(&mut self, size: usize) -> bool {
        self.size = self.size.saturating_add(size);
        let begins = self.size > self.most;
        if begins {
            self.size = size;
        }
        begins
    }
}

impl Knowledge {
    /// The cost of reading all of these collections, in parts of this many tokens.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn reading_cost(&self, collections: &[&str], most_tokens: u32) -> Result<ReadingCost> {
        let mut cost = ReadingCost::default();
        let Some(index) = self.existing().await? else {
            return Ok(cost);
        };
        let mut sizes = PartSizes::new(most_tokens);
        let mut after = 0;
        loop {
            let passages = index.all_passages(collections, after, AT_ONCE).await?;
            if passages.is_empty() {
                cost.note_tokens = u64::from(cost.parts) * u64::from(LONGEST_NOTES);
                return Ok(cost);
            }
            after += passages.len() as u64;
            for passage in passages {
                let size = quoted_tokens(&passage.text);
                cost.parts += u32::from(sizes.begins(size));
                cost.passages += 1;
                cost.tokens += size as u64;
            }
        }
    }

    /// Reads all documents of a request for its question; `tell` hears of each part. It ends when the future is
    /// dropped. All passages that the notes cite are returned, however many they are.
    ///
    /// # Errors
    /// Those of reading the index and of the model.
    pub async fn read_through(&self, request: &ReadingRequest, tell: &TellProgress) -> protocol::Result<ReadDocuments> {
        let collections = self.known(&request.collections).await?;
        let collections: Vec<&str> = collections.iter().map(String::as_str).collect();
        let parts = self
            .parts(&collections, request.most_tokens, request.first_number)
            .await?;
        let all: Vec<QuotedPassage> = parts.iter().flatten().cloned().collect();
        let count = parts.len();
        let mut notes = Vec::new();
        for (part, done) in parts.into_iter().zip(0_u32..) {
            tell(progress(done, count, "part"));
            let content = vec![
                Content::Passages {
                    passages: part,
                    coverage: Coverage::default(),
                },
                Content::text(format!("The question: {}", request.question)),
            ];
            let said = self.note(request, INSTRUCTIONS, content).await?;
            if !said.trim().is_empty() && said.trim().trim_end_matches('.') != NOTHING {
                notes.push(said.trim().to_owned());
            }
        }
        let notes = self.joined(request, notes, tell).await?;
        let cited = numbers(&notes);
        let coverage = self.coverage(&collections, &all).await?;
        Ok(ReadDocuments {
            notes,
            passages: all
                .into_iter()
                .filter(|passage| cited.contains(&passage.number))
                .collect(),
            coverage,
            parts: u32::try_from(count).unwrap_or(u32::MAX),
        })
    }

    /// All passages, in parts of this many tokens at most.
    async fn parts(
        &self,
        collections: &[&str],
        most_tokens: u32,
        first_number: u32,
    ) -> Result<Vec<Vec<QuotedPassage>>> {
        let Some(index) = self.existing().await? else {
            return Ok(Vec::new());
        };
        let mut sizes = PartSizes::new(most_tokens);
        let mut parts: Vec<Vec<QuotedPassage>> = Vec::new();
        let (mut number, mut after) = (first_number, 0);
        loop {
            let passages = index.all_passages(collections, after, AT_ONCE).await?;
            after += passages.len() as u64;
            if passages.is_empty() {
                return Ok(parts);
            }
            for passage in passages {
                if sizes.begins(quoted_tokens(&passage.text)) {
                    parts.push(Vec::new());
                }
                if let Some(part) = parts.last_mut() {
                    part.push(quoted(passage, number));
                }
                number += 1;
            }
        }
    }

    /// Notes that fit a part together, as they are or shortened by the model until they do.
    async fn joined(
        &self,
        request: &ReadingRequest,
        mut notes: Vec<String>,
        tell: &TellProgress,
    ) -> protocol::Result<String> {
        let most = (request.most_tokens as usize).max(LEAST_PART);
        loop {
            let size: usize = notes.iter().map(|notes| tokens(notes) + 1).sum();
            if size <= most || notes.len() < 2 {
                return Ok(notes.join("\n"));
            }
            let groups = groups(notes, most);
            let count = groups.len();
            let mut shorter = Vec::new();
            for (group, done) in groups.into_iter().zip(0_u32..) {
                tell(progress(done, count, "notes"));
                let content = vec![Content::text(format!(
                    "The question: {}\n\n{}",
                    request.question,
                    group.join("\n")
                ))];
                shorter.push(self.note(request, JOIN, content).await?);
            }
            let is_shorter = shorter.iter().map(|notes| tokens(notes)).sum::<usize>() < size;
            notes = shorter;
            if !is_shorter {
                return Ok(notes.join("\n"));
            }
        }
    }

    /// The response of the model to this, in the background and without thinking.
    async fn note(
        &self,
        reading: &ReadingRequest,
        instructions: &str,
        content: Vec<Content>,
    ) -> protocol::Result<String> {
        let question = Message {
            content,
            ..Message::text(Role::User, "")
        };
        let messages = vec![Message::text(Role::System, instructions), question];
        let mut request = Request::new(reading.model.clone(), messages);
        request.priority = Priority::Background;
        request.thinking = Some(Thinking::Off);
        request.max_tokens = Some(LONGEST_NOTES);
        let mut job = self.shared.engine.generate(request);
        let _cancel = CancelOnDrop(job.cancel.clone());
        let mut said = String::new();
        while let Some(event) = job.events.recv().await {
            match event {
                EngineEvent::Delta {
                    content: Content::Text { text },
                    ..
                } => said.push_str(&text),
                EngineEvent::Done(_) => return Ok(said),
                EngineEvent::Failed(error) => return Err(error),
                _ => {}
            }
        }
        Err(Failure::new(ErrorCode::Engine, "the model ended without a response"))
    }
}

/// Notes in groups that fit, of two at least, so that every round has fewer.
fn groups(notes: Vec<String>, most: usize) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<String>> = Vec::new();
    let mut size = 0;
    for notes in notes {
        let own = tokens(&notes) + 1;
        match groups.last_mut() {
            Some(group) if group.len() < 2 || size + own <= most => {
                size += own;
                group.push(notes);
            }
            _ => {
                size = own;
                groups.push(vec![notes]);
            }
        }
    }
    groups
}

fn progress(done: u32, total: usize, what: &str) -> CallProgress {
    CallProgress {
        done: Some(f64::from(done)),
        total: Some(total as f64),
        message: Some(format!("{what} {} of {total}", done + 1)),
        asks: false,
    }
}

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
fn numbers(text: &str) -> BTreeSet<u32> {
    marks(text).into_iter().collect()
}

#[cfg(test)]
mod tests {
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
        let none = fitting(read, 0);
        assert_eq!(
            (none.notes.as_str(), none.passages.len()),
            ("- Boats.\n- Fees and a list [x].\n- Open [", 0)
        );
    }
}
