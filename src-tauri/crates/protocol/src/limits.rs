//! The limits of a request's numbers and texts, for all of its sources: the window, the command line, the server, the
//! engine.

use crate::{Error, ErrorCode, Result};

/// The maximum number of stop texts.
pub const MOST_STOPS: usize = 64;

/// The maximum length of a stop text, in characters.
pub const LONGEST_STOP: usize = 1000;

/// The smallest size to which a context can be limited, in tokens.
pub const LEAST_CONTEXT: u32 = 512;

/// Refuses an answer of no tokens.
///
/// # Errors
/// `BadRequest`.
pub fn check_max_tokens(most: Option<u32>) -> Result<()> {
    match most {
        Some(0) => Err(refusal(
            "max_tokens",
            "an answer of at most 0 tokens was asked for; ask for 1 or more",
        )
        .with("low", 1u32)),
        _ => Ok(()),
    }
}

/// Refuses a context that is too small for any prompt.
///
/// # Errors
/// `BadRequest`.
pub fn check_context(tokens: Option<u32>) -> Result<()> {
    match tokens {
        Some(tokens) if tokens < LEAST_CONTEXT => {
            let message = format!("a context of {tokens} tokens was asked for; ask for {LEAST_CONTEXT} or more");
            Err(refusal("context", message).with("low", LEAST_CONTEXT))
        }
        _ => Ok(()),
    }
}

/// Refuses empty and overlong stop texts, and too many of them.
///
/// # Errors
/// `BadRequest`.
pub fn check_stop(texts: &[String]) -> Result<()> {
    if texts.len() > MOST_STOPS {
        let message = format!("there are more than {MOST_STOPS} stop texts");
        return Err(refusal("stop", message).with("most", MOST_STOPS));
    }
    if texts.iter().any(String::is_empty) {
        return Err(refusal(
            "stop",
            "a stop text is empty, which would end every answer before it begins",
        ));
    }
    if texts.iter().any(|text| text.chars().count() > LONGEST_STOP) {
        let message = format!("a stop text is longer than {LONGEST_STOP} characters");
        return Err(refusal("stop", message).with("longest", LONGEST_STOP));
    }
    Ok(())
}

/// The error for an invalid setting.
#[must_use]
pub fn refusal(field: &str, message: impl Into<String>) -> Error {
    Error::new(ErrorCode::BadRequest, message).with("field", field)
}
