//! Passages of documents that go to the model with a message.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;
use api::CitationVerdict;
use knowledge::{check_citations, Knowledge, Rules, Source};
use protocol::{Content, Coverage, Error, Message, PassageRequest, PassageSource, QuotedPassage, Role};
use serde_json::{json, Value};

use crate::app;
use crate::input::absolute;
use crate::output::{one_line, plural};

/// Tokens of passages for a model whose context is not known.
const MOST_TOKENS: u32 = 4096;

/// The share of a context that passages may fill.
const SHARE: u32 = 2;

/// The documents of one question.
pub struct DocumentSearch {
    knowledge: Knowledge,
    collections: Vec<String>,
    /// The folder of an index that is gone after the question.
    _temporary: Option<tempfile::TempDir>,
}

impl DocumentSearch {
    /// These collections.
    pub fn of_collections(knowledge: Knowledge, collections: Vec<String>) -> Self {
        Self {
            knowledge,
            collections,
            _temporary: None,
        }
    }

    /// The documents in these folders and files: as collections know them, or else in an index for this question alone.
    ///
    /// # Errors
    /// When one cannot be read, or the index cannot be written.
    pub async fn of_paths(paths: &[PathBuf]) -> Result<Self> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| absolute(path)).collect();
        let own = app::knowledge().await?;
        let known = own.collections().await.map_err(Error::from)?;
        let collection = |path: &PathBuf| {
            let is_it = |source: &Source| matches!(source, Source::Folder(folder) if folder == path);
            known.iter().find(|collection| is_it(&collection.source))
        };
        let mut collections = Vec::new();
        if let Some(all) = paths.iter().map(collection).collect::<Option<Vec<_>>>() {
            for known in all {
                own.update(&known.id).await.map_err(Error::from)?;
                collections.push(known.id.clone());
            }
            own.embed().await.map_err(Error::from)?;
            return Ok(Self::of_collections(own, collections));
        }
        let folder = tempfile::tempdir()?;
        let knowledge = app::knowledge_in(folder.path()).await?;
        for path in &paths {
            let source = match path.is_dir() {
                true => Source::Folder(path.clone()),
                false => Source::Files(vec![path.clone()]),
            };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let id = knowledge
                .add(&name, &source, &Rules::default())
                .await
                .map_err(Error::from)?;
            knowledge.update(&id).await.map_err(Error::from)?;
            collections.push(id);
        }
        knowledge.embed().await.map_err(Error::from)?;
        Ok(Self {
            knowledge,
            collections,
            _temporary: Some(folder),
        })
    }

    /// Puts passages before the words of the last question; returns them with how much was read. `context` is that of
    /// the model, if it is known.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub async fn put_into(
        &self,
        messages: &mut [Message],
        context: Option<u32>,
    ) -> Result<Option<(Vec<QuotedPassage>, Coverage)>> {
        let Some(question) = messages.iter_mut().rev().find(|message| message.role == Role::User) else {
            return Ok(None);
        };
        let request = PassageRequest {
            collections: self.collections.clone(),
            chat: None,
            question: question.text_with_placeholders(),
            most_tokens: context.map_or(MOST_TOKENS, |context| context / SHARE),
            given: Vec::new(),
            first_number: 1,
        };
        let Some(found) = self.knowledge.passages(request).await? else {
            return Ok(None);
        };
        question.content.insert(0, found.clone());
        match found {
            Content::Passages { passages, coverage } => Ok(Some((passages, coverage))),
            _ => Ok(None),
        }
    }
}

/// The lines after a response: how much was read, the cited passages, and marks that are not supported; for programs one
/// JSON object.
pub fn footer(response: &str, given: &[QuotedPassage], coverage: &Coverage) -> (Vec<String>, Value) {
    let checked = check_citations(response, given);
    let cited: BTreeSet<u32> = checked.citations.iter().map(|citation| citation.number).collect();
    let mut lines = vec![extent(coverage)];
    for passage in given.iter().filter(|passage| cited.contains(&passage.number)) {
        lines.push(format!(
            "[{}] {}",
            passage.number,
            one_line(&passage.place(), usize::MAX)
        ));
    }
    for citation in &checked.citations {
        match &citation.verdict {
            CitationVerdict::Dangling => lines.push(format!("[{}] names no passage", citation.number)),
            CitationVerdict::Unsupported { missing } => {
                let missing: Vec<String> = missing.iter().map(|words| one_line(words, usize::MAX)).collect();
                lines.push(format!("[{}] does not say: {}", citation.number, missing.join(", ")));
            }
            CitationVerdict::Supported | CitationVerdict::Unchecked => {}
        }
    }
    let value = json!({
        "type": "passages",
        "coverage": coverage,
        "passages": given,
        "citations": checked.citations,
        "unmarked": checked.unmarked,
    });
    (lines, value)
}

fn extent(coverage: &Coverage) -> String {
    let of_passages = plural(coverage.of_passages.into(), "passage");
    let of_files = plural(coverage.of_files.into(), "file");
    let mut text = match coverage.is_whole() {
        true => format!("read all {of_passages} in {of_files}"),
        false => format!(
            "read {} of {of_passages} in {} of {of_files}",
            coverage.passages, coverage.files
        ),
    };
    if coverage.unread > 0 {
        let were = if coverage.unread == 1 { "was" } else { "were" };
        text += &format!(", {} {were} not read", plural(coverage.unread.into(), "file"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(number: u32, text: &str) -> QuotedPassage {
        QuotedPassage {
            number,
            collection: "c".into(),
            file: "a.txt".into(),
            file_hash: String::new(),
            headings: String::new(),
            page: None,
            first_line: 4,
            last_line: 4,
            text: text.into(),
        }
    }

    #[test]
    fn the_footer_tells_the_extent_the_sources_and_what_is_not_supported() {
        let coverage = Coverage {
            passages: 2,
            of_passages: 212,
            files: 1,
            of_files: 40,
            unread: 3,
        };
        let given = [passage(1, "The ferry leaves at 7."), passage(2, "It is blue.")];
        let (lines, value) = footer("It leaves at 9 [1]. It is big [5].", &given, &coverage);
        let expected = [
            "read 2 of 212 passages in 1 of 40 files, 3 files were not read",
            "[1] a.txt, line 4",
            "[1] does not say: 9",
            "[5] names no passage",
        ];
        assert_eq!(lines, expected);
        assert_eq!(value["citations"].as_array().map(Vec::len), Some(2));
    }
}
