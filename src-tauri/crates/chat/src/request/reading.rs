//! Reading all documents of a chat for a question: its cost, told before it begins, and the request for it.

use std::sync::Arc;

use api::StoredMessage;
use protocol::{Error as Failure, ErrorCode, PassageSource, ReadingCost, ReadingRequest, Result, Timing, Usage};

use crate::core::Core;
use crate::request::build::RequestTemplate;
use crate::request::compaction_mark::after_mark;
use crate::request::passages::{given, room};

/// The fewest tokens whose time says how fast a model reads: shorter prompts take as long as one step.
const LEAST_MEASURED: u32 = 64;

/// The documents of the host.
///
/// # Errors
/// `NotFound` if the host has none, or the chat.
pub(crate) fn documents<'a>(core: &'a Core, template: &RequestTemplate) -> Result<&'a Arc<dyn PassageSource>> {
    let source = core
        .passages
        .get()
        .filter(|_| !template.settings.collections.is_empty());
    source.ok_or_else(|| {
        Failure::new(
            ErrorCode::NotFound,
            "this chat has no documents; add a folder or files first",
        )
    })
}

/// The cost of reading all documents for a question after these messages.
///
/// # Errors
/// `NotFound` without documents, `Storage` if the index cannot be read.
pub(crate) async fn reading_cost(
    core: &Core,
    template: &RequestTemplate,
    seen: &[StoredMessage],
) -> Result<ReadingCost> {
    let most = room(core, template, seen).await;
    let source = documents(core, template)?;
    let mut cost = source.reading_cost(template.settings.collections.clone(), most).await?;
    let measured = core.settings_history.newest_timings(&template.reference).await?;
    cost.seconds = seconds(&cost, &measured);
    Ok(cost)
}

/// The request to read all documents for a question after this branch.
pub(crate) async fn reading_request(
    core: &Core,
    template: &RequestTemplate,
    branch: &[StoredMessage],
    question: String,
) -> ReadingRequest {
    let (_, seen) = after_mark(&template.settings, branch);
    ReadingRequest {
        collections: template.settings.collections.clone(),
        question,
        model: template.model.clone(),
        most_tokens: room(core, template, seen).await,
        first_number: given(branch).iter().map(|passage| passage.number).max().unwrap_or(0) + 1,
    }
}

/// The time of reading, by how fast the model read its longest prompt and wrote its longest answer of late.
fn seconds(cost: &ReadingCost, measured: &[(Usage, Timing)]) -> Option<u32> {
    let (read, reading) = measured.iter().max_by_key(|(usage, _)| usage.prefilled_tokens)?;
    let (_, writing) = measured.iter().max_by_key(|(usage, _)| usage.completion_tokens)?;
    if read.prefilled_tokens < LEAST_MEASURED {
        return None;
    }
    let at = |tokens: u64, rate: f64| (rate > 0.0).then(|| tokens as f64 / rate);
    let reads = at(cost.tokens, reading.prefill_tokens_per_second)?;
    let writes = at(cost.note_tokens, writing.decode_tokens_per_second)?;
    // A value that does not fit becomes the largest.
    Some((reads + writes).ceil() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(prefilled: u32, prefill: f64, written: u32, decode: f64) -> (Usage, Timing) {
        let usage = Usage {
            prefilled_tokens: prefilled,
            completion_tokens: written,
            ..Usage::default()
        };
        let timing = Timing {
            prefill_tokens_per_second: prefill,
            decode_tokens_per_second: decode,
            ..Timing::default()
        };
        (usage, timing)
    }

    #[test]
    fn the_time_is_that_of_the_longest_answers() {
        let cost = ReadingCost {
            tokens: 46_000,
            note_tokens: 5_600,
            ..ReadingCost::default()
        };
        let measured = [
            answer(30, 12.0, 90, 7.0),
            answer(2_000, 460.0, 3, 1.0),
            answer(900, 300.0, 400, 28.0),
        ];
        assert_eq!(seconds(&cost, &measured), Some(100 + 200));
        assert_eq!(seconds(&cost, &measured[..1]), None);
        assert_eq!(seconds(&cost, &[]), None);
        assert_eq!(seconds(&cost, &[answer(900, 300.0, 1, 0.0)]), None);
    }
}
