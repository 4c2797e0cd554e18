//! Ids of answers, items and calls. They are random and never reused, because Claude Code merges messages with the same
//! id.

use uuid::Uuid;

/// The prefix of the ids of searches.
pub(crate) const SEARCH_PREFIX: &str = "fs_";

/// The prefixes of call ids: one per dialect, and that of searches.
const CALL_PREFIXES: [&str; 3] = ["call_", "toolu_", SEARCH_PREFIX];

/// A new id: the prefix, such as `msg_`, and 32 hexadecimal digits.
pub(crate) fn fresh(prefix: &str) -> String {
    format!("{prefix}{}", Uuid::now_v7().simple())
}

/// The id of a call for a client: the prefix and the engine's own id, so that [`engine_call_id`] finds it again.
pub(crate) fn call_id(prefix: &str, engine_id: &str) -> String {
    if is_engine_id(engine_id) {
        format!("{prefix}{engine_id}")
    } else {
        fresh(prefix)
    }
}

/// The engine's id of a call: with it the prompt of the next turn begins with exactly the tokens of this one. Ids of
/// other programs stay as they are.
pub(crate) fn engine_call_id(id: &str) -> &str {
    let stripped = CALL_PREFIXES.iter().find_map(|prefix| id.strip_prefix(prefix));
    stripped.filter(|id| is_engine_id(id)).unwrap_or(id)
}

/// True if an id has the form of [`protocol::ToolCall::new`].
fn is_engine_id(id: &str) -> bool {
    id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_its_own_name_again_when_it_comes_back() {
        let id = call_id("toolu_", "aB3dE6gH9");
        assert_eq!((id.as_str(), engine_call_id(&id)), ("toolu_aB3dE6gH9", "aB3dE6gH9"));
        assert_eq!(engine_call_id("call_0"), "call_0");
        let (one, other) = (call_id("call_", "functions.f:0"), call_id("call_", "functions.f:0"));
        assert!(one != other && engine_call_id(&one) == one);
    }
}
