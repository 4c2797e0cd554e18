//! Reading all documents for a question: notes on each part, which a model makes in the background, and notes on the
//! notes until they fit.

use protocol::{
    CallProgress, Content, Coverage, Message, Priority, QuotedPassage, ReadDocuments, ReadingCost, ReadingRequest,
    Request, Role, TellProgress, Thinking,
};

use super::finding::quoted;
use super::part_notes::{numbers, LEAST_PART};
use super::size::{quoted_tokens, tokens};
use super::Knowledge;
use crate::Result;

/// Passages that are read from the index at once.
const AT_ONCE: u32 = 512;

/// Tokens of notes on a part at most.
const LONGEST_NOTES: u32 = 400;

/// The answer of a model that has nothing to note.
const NOTHING: &str = "NOTHING";

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
        self.response(request).await
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
