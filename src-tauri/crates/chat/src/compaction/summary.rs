//! Short texts that a model writes about a chat: the summary of a part of it.

use std::collections::HashMap;

use api::{StoredMessage, SummaryProgress};
use protocol::{
    cut_result, most_of_result, CancelFlag, CancelOnDrop, Coalesce, Content, Engine, EngineEvent, Error as Failure,
    ErrorCode, FinishReason, Message, ModelSource, Request, Result, Role, Stage, Thinking,
};

use crate::error::Error;

/// The summaries that are being made, by their chats.
pub(crate) type Summaries = HashMap<String, CancelFlag>;

/// The most tokens of a summary.
const LENGTH: u32 = 512;

/// The context that is assumed of a model whose context is unknown, in tokens.
const SMALL_CONTEXT: u32 = 4096;

const ASKED: &str =
    "Summarise the conversation below, so that it can go on from the summary alone: facts, names, numbers, decisions and open \
                     questions. Write at most 200 words, in the language of the conversation, and nothing but the summary.";

/// A summary of these messages and of the summary before them. Messages that exceed the context are read in pieces,
/// each with the summary of those before it.
pub(crate) async fn summarize(
    engine: &dyn Engine,
    model: &ModelSource,
    context: Option<u32>,
    before: &str,
    messages: &[StoredMessage],
    stop: &CancelFlag,
    progress: &mut (dyn FnMut(SummaryProgress) + Send),
) -> Result<String> {
    let context = context.unwrap_or(SMALL_CONTEXT);
    let length = LENGTH.min(context / 4).max(1);
    let text = transcript(messages);
    let count = engine.count(summary_request(model, before, &text, length)).await?;
    // Half of the context for each piece: the rest is for the summaries, and for pieces that are denser than all of it.
    let bytes = (text.len() as u64 * u64::from(context / 2) / u64::from(count.tokens.max(1))) as usize;
    let total = u64::from(count.tokens);
    let tokens = |bytes: usize| total * bytes as u64 / text.len().max(1) as u64;
    let (mut summary, mut end) = (before.to_owned(), 0);
    for piece in pieces(&text, bytes.max(256)) {
        let begin = end;
        end += piece.len();
        let mut told = SummaryProgress {
            read: tokens(begin),
            total,
            written: 0,
        };
        progress(told);
        let mut heard = |event: &EngineEvent| {
            match event {
                EngineEvent::Progress {
                    stage: Stage::Prefill,
                    done,
                    total: all,
                } => told.read = tokens(begin) + tokens(piece.len()) * done / (*all).max(1),
                EngineEvent::Delta { tokens: ids, .. } => {
                    told.read = tokens(end);
                    told.written += ids.len() as u64;
                }
                _ => return,
            }
            progress(told);
        };
        summary = written(
            engine,
            summary_request(model, &summary, piece, length),
            stop,
            &mut heard,
        )
        .await?;
    }
    Ok(summary)
}

/// A conversation as a text.
fn transcript(messages: &[StoredMessage]) -> String {
    let mut text = String::new();
    for message in messages {
        let speaker = match message.role {
            Role::User => "Person",
            Role::Assistant => "Answer",
            Role::Tool => "Tool",
            Role::System => continue,
        };
        let contents = message.parts.iter().map(|part| &part.content);
        let said = contents.filter(|content| !matches!(content, Content::Thinking { .. } | Content::ToolCall { .. }));
        let said = said.filter_map(Content::as_text).collect::<Vec<_>>().join("\n");
        let said = match message.role {
            // As much as any model was given of it.
            Role::Tool => cut_result(said, most_of_result(None)),
            _ => said,
        };
        if !said.trim().is_empty() {
            text.push_str(&format!("{speaker}: {}\n\n", said.trim()));
        }
    }
    text
}

/// Splits the text into pieces of at most `bytes` bytes, between two lines if possible.
fn pieces(mut text: &str, bytes: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    while text.len() > bytes {
        let first = text.chars().next().map_or(0, char::len_utf8);
        let most = text.floor_char_boundary(bytes).max(first);
        let end = text[..most].rfind('\n').map_or(most, |line| line + 1);
        let (piece, rest) = text.split_at(end);
        pieces.push(piece);
        text = rest;
    }
    pieces.push(text);
    pieces
}

fn summary_request(model: &ModelSource, before: &str, text: &str, length: u32) -> Request {
    let before = match before.trim() {
        "" => String::new(),
        before => format!("\n\nWhat was said before it:\n{before}"),
    };
    let words = format!("{ASKED}{before}\n\nThe conversation:\n{text}");
    let mut request = Request::new(model.clone(), vec![Message::text(Role::User, words)]);
    request.thinking = Some(Thinking::Off);
    request.thinking_budget = Some(0);
    request.max_tokens = Some(length);
    request.chat_defaults = true;
    request
}

/// The text that a model writes without thinking; an answer that ends by its length counts, too. `heard` gets every
/// event.
async fn written(
    engine: &dyn Engine,
    request: Request,
    stop: &CancelFlag,
    heard: &mut (dyn FnMut(&EngineEvent) + Send),
) -> Result<String> {
    let stopped = || Failure::new(ErrorCode::Stopped, "the summary was stopped; nothing was changed");
    let mut job = engine.generate(request);
    let _cancel = CancelOnDrop(job.cancel.clone());
    let mut text = String::new();
    loop {
        let event = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(stopped()),
            event = job.events.recv() => event,
        };
        let event = event.unwrap_or_else(EngineEvent::abandoned);
        heard(&event);
        match event {
            EngineEvent::Delta {
                content: Content::Text { text: more },
                ..
            } => text.push_str(&more),
            EngineEvent::Done(done) if done.finish_reason != FinishReason::Cancelled => break,
            EngineEvent::Done(_) => return Err(stopped()),
            EngineEvent::Failed(error) => return Err(error),
            _ => {}
        }
    }
    match text.trim() {
        "" => Err(Error::NoSummary.into()),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_pieces_is_the_text() {
        for (text, bytes) in [
            ("one\ntwo\nthree", 5),
            ("猫猫猫猫", 4),
            ("", 3),
            ("abc", 1),
            ("a\n\n\nb", 2),
        ] {
            let cut = pieces(text, bytes);
            assert_eq!(cut.concat(), text);
            assert!(cut.iter().all(|piece| piece.len() <= bytes.max(3)), "{cut:?}");
        }
    }
}
