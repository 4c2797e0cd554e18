//! The marks of a response, held against the passages of its chat.

use api::{CheckedCitation, CheckedCitations, CitationVerdict};
use protocol::QuotedPassage;

use crate::citations::{check, Verdict};

/// Checks the marks of a response, whose chat was given these passages.
pub fn check_citations(response: &str, given: &[QuotedPassage]) -> CheckedCitations {
    // Marks are numbers from 1; what a chat was not given has no words.
    let most = given.iter().map(|passage| passage.number).max().unwrap_or(0) as usize;
    let mut texts = vec![None; most];
    for passage in given {
        if let Some(place) = (passage.number as usize)
            .checked_sub(1)
            .and_then(|at| texts.get_mut(at))
        {
            *place = Some(passage.text.as_str());
        }
    }
    let known: Vec<&str> = texts.iter().map(|text| text.unwrap_or_default()).collect();
    let checked = check(response, &known);
    let citations = checked.citations.into_iter().map(|citation| {
        let number = u32::try_from(citation.passage).unwrap_or(u32::MAX);
        let is_given = texts.get(citation.passage.wrapping_sub(1)).is_some_and(Option::is_some);
        CheckedCitation {
            number,
            sentence: response[citation.sentence].to_owned(),
            verdict: match citation.verdict {
                _ if !is_given => CitationVerdict::Dangling,
                Verdict::Dangling => CitationVerdict::Dangling,
                Verdict::Supported => CitationVerdict::Supported,
                Verdict::Unchecked => CitationVerdict::Unchecked,
                Verdict::Unsupported(missing) => CitationVerdict::Unsupported { missing },
            },
        }
    });
    CheckedCitations {
        citations: citations.collect(),
        unmarked: u32::try_from(checked.unmarked.len()).unwrap_or(u32::MAX),
    }
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
            first_line: 1,
            last_line: 1,
            text: text.into(),
        }
    }

    #[test]
    fn marks_count_as_the_chat_numbers_its_passages() {
        let given = [
            passage(3, "The bridge is 42 m long."),
            passage(5, "It was built in 1911."),
        ];
        let checked = check_citations("It is 42 m long [3]. It was built in 1912 [5]. It is red [4].", &given);
        let verdicts: Vec<_> = checked.citations.iter().map(|citation| &citation.verdict).collect();
        let missing = CitationVerdict::Unsupported {
            missing: vec!["1912".into()],
        };
        assert_eq!(
            verdicts,
            [&CitationVerdict::Supported, &missing, &CitationVerdict::Dangling]
        );
        assert!(checked.citations[1].sentence.contains("1912"));
    }

    #[test]
    fn a_mark_of_any_size_is_no_danger() {
        let checked = check_citations("So it is [4294967296], [0] and [99999999999999999999].", &[]);
        assert!(checked
            .citations
            .iter()
            .all(|one| one.verdict == CitationVerdict::Dangling));
    }
}
