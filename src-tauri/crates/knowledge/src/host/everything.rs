//! Reading all documents for a question: notes on each part, which a model makes in the background, and notes on the
//! notes until they fit.

use std::collections::BTreeSet;

use protocol::{
    CallProgress, CancelOnDrop, Content, Coverage, EngineEvent, Error as Failure, ErrorCode, Message, ModelSource,
    Priority, QuotedPassage, Request, Role, TellProgress, Thinking,
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

const INSTRUCTIONS: &str = "You read one part of a person's documents at a time and take notes for a question that is \
    answered later, from the notes of all parts. Note every fact of this part that the question needs, such as each \
    entry of a list or count, with the number of its passage in brackets. Do not answer the question. If this part has \
    nothing for it, write NOTHING.";

const JOIN: &str = "These are notes on parts of a person's documents, taken for a question. Write them as one list \
    without repetitions. Keep every fact and the numbers in brackets. Add counts together.";

/// All of the documents, read for a question.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadThrough {
    /// Notes of everything that they say about it.
    pub notes: String,
    /// The passages that the notes cite.
    pub passages: Vec<QuotedPassage>,
    /// All of it.
    pub coverage: Coverage,
    /// The parts that were read.
    pub parts: u32,
}

/// The cost of reading all documents, known before it begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadingCost {
    /// Parts, for each of which the model is asked once.
    pub parts: u32,
    /// Tokens of all parts, about.
    pub tokens: u64,
}

/// The model that reads, and the tokens of a part.
#[derive(Debug, Clone)]
pub struct PartReader {
    /// The model.
    pub model: ModelSource,
    /// Tokens of passages in one request at most.
    pub most_tokens: u32,
}

impl Knowledge {
    /// The cost of reading all of these collections, in parts of this many tokens.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn reading_cost(&self, collections: &[&str], most_tokens: u32) -> Result<ReadingCost> {
        let mut cost = ReadingCost::default();
        for part in self.parts(collections, most_tokens, 1).await? {
            cost.parts += 1;
            cost.tokens += part
                .iter()
                .map(|passage| quoted_tokens(&passage.text) as u64)
                .sum::<u64>();
        }
        Ok(cost)
    }

    /// Reads all of these collections for a question. Passages are numbered from `first_number`; `tell` hears of each
    /// part. It ends when the future is dropped.
    ///
    /// # Errors
    /// Those of reading the index and of the model.
    pub async fn read_through(
        &self,
        collections: &[&str],
        question: &str,
        reader: &PartReader,
        first_number: u32,
        tell: &TellProgress,
    ) -> protocol::Result<ReadThrough> {
        let parts = self.parts(collections, reader.most_tokens, first_number).await?;
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
                Content::text(format!("The question: {question}")),
            ];
            let said = self.note(reader, INSTRUCTIONS, content).await?;
            if !said.trim().is_empty() && said.trim().trim_end_matches('.') != NOTHING {
                notes.push(said.trim().to_owned());
            }
        }
        let notes = self.joined(reader, question, notes, tell).await?;
        let cited = numbers(&notes);
        let coverage = self.coverage(collections, &all).await?;
        Ok(ReadThrough {
            notes,
            passages: all
                .into_iter()
                .filter(|passage| cited.contains(&passage.number))
                .collect(),
            coverage,
            parts: u32::try_from(count).unwrap_or(u32::MAX),
        })
    }

    /// All passages, in parts of this many tokens at most; a larger passage is a part of its own.
    async fn parts(
        &self,
        collections: &[&str],
        most_tokens: u32,
        first_number: u32,
    ) -> Result<Vec<Vec<QuotedPassage>>> {
        let Some(index) = self.existing().await? else {
            return Ok(Vec::new());
        };
        let most = (most_tokens as usize).max(LEAST_PART);
        let mut parts: Vec<Vec<QuotedPassage>> = Vec::new();
        let (mut size, mut number, mut after) = (usize::MAX, first_number, 0);
        loop {
            let passages = index.all_passages(collections, after, AT_ONCE).await?;
            after += passages.len() as u64;
            if passages.is_empty() {
                return Ok(parts);
            }
            for passage in passages {
                let own = quoted_tokens(&passage.text);
                size = size.saturating_add(own);
                if size > most {
                    parts.push(Vec::new());
                    size = own;
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
        reader: &PartReader,
        question: &str,
        mut notes: Vec<String>,
        tell: &TellProgress,
    ) -> protocol::Result<String> {
        let most = (reader.most_tokens as usize).max(LEAST_PART);
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
                    "The question: {question}\n\n{}",
                    group.join("\n")
                ))];
                shorter.push(self.note(reader, JOIN, content).await?);
            }
            let is_shorter = shorter.iter().map(|notes| tokens(notes)).sum::<usize>() < size;
            notes = shorter;
            if !is_shorter {
                return Ok(notes.join("\n"));
            }
        }
    }

    /// The response of the model to this, in the background and without thinking.
    async fn note(&self, reader: &PartReader, instructions: &str, content: Vec<Content>) -> protocol::Result<String> {
        let question = Message {
            content,
            ..Message::text(Role::User, "")
        };
        let messages = vec![Message::text(Role::System, instructions), question];
        let mut request = Request::new(reader.model.clone(), messages);
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

/// The numbers in brackets of a text.
fn numbers(text: &str) -> BTreeSet<u32> {
    let after = text.split('[').skip(1);
    let inside = after.filter_map(|rest| rest.split_once(']').map(|(inside, _)| inside));
    let each = inside.flat_map(|inside| inside.split([',', ';', ' ']));
    each.filter_map(|number| number.trim().parse().ok()).collect()
}
