//! Guesses how many tokens a request has, because the tokenizer of a remote model is not here.

use protocol::{Request, TokenCount};

/// Tokens that a template puts around a message.
const AROUND_A_MESSAGE: f64 = 4.0;

/// The estimate: four characters of ASCII to a token, three tokens to four other characters.
pub(crate) fn estimate(request: &Request) -> TokenCount {
    let of = |text: &str| -> f64 { text.chars().map(|c| if c.is_ascii() { 0.25 } else { 0.75 }).sum() };
    let messages: f64 = request
        .messages
        .iter()
        .map(|message| {
            let calls: f64 = message
                .tool_calls
                .iter()
                .map(|call| of(&call.name) + of(&call.arguments.to_string()))
                .sum();
            AROUND_A_MESSAGE + of(&message.text_with_placeholders()) + calls
        })
        .sum();
    let tools: f64 = request.tools.iter().map(|tool| of(&tool.to_string())).sum();
    TokenCount {
        // A float as an integer saturates.
        tokens: (messages + tools).ceil() as u32,
        estimated: true,
    }
}
