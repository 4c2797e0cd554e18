//! The headers of harmony's messages: `assistant to=functions.NAME<|channel|>commentary <|constrain|>json`.

const CHANNEL: &str = "<|channel|>";
const CONSTRAIN: &str = "<|constrain|>";
const NAMES: [&str; 3] = ["analysis", "commentary", "final"];
/// A header is never longer.
const LONGEST: usize = 256;

/// What a message holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    Thought,
    Answer,
    /// The arguments of this tool.
    Call(String),
}

/// Whether the text may be a header, or the beginning of one.
pub(super) fn viable(header: &str) -> bool {
    fits(header, false)
}

/// Whether the text is a header that needs nothing more.
pub(super) fn whole(header: &str) -> bool {
    fits(header, true)
}

fn fits(header: &str, whole: bool) -> bool {
    let (role, channel) = match header.split_once(CHANNEL) {
        Some((role, channel)) => (role, Some(channel)),
        None => (header, None),
    };
    let role_whole = whole || channel.is_some();
    let role = role.trim_start();
    let rest = role.strip_prefix("assistant").unwrap_or(role);
    let begun = !role_whole && "assistant".starts_with(role);
    (begun || words_fit(rest, &["to=", CONSTRAIN], role_whole))
        && header.len() <= LONGEST
        && !header.contains('\n')
        && channel.is_none_or(|channel| {
            let end = channel.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(channel.len());
            words_fit(&channel[end..], &["to=", CONSTRAIN, "json", "code"], whole)
        })
}

/// Whether these words, each with the name that follows it, are all that stands in the text; the last may be cut off.
fn words_fit(text: &str, words: &[&str], whole: bool) -> bool {
    let mut rest = text.trim_start();
    while let Some(word) = words.iter().find(|word| rest.starts_with(**word)) {
        rest = &rest[word.len()..];
        if *word == "to=" || *word == CONSTRAIN {
            rest = rest.trim_start_matches(|c: char| c.is_alphanumeric() || "_.-".contains(c));
        }
        rest = rest.trim_start();
    }
    rest.is_empty() || !whole && words.iter().any(|word| word.starts_with(rest))
}

/// What the message after a whole header holds; `None` if it names no channel that is known.
pub(super) fn body(header: &str) -> Option<Body> {
    let recipient = header.split_once("to=").map(|(_, name)| {
        let end = name.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(name.len());
        name[..end].strip_prefix("functions.").unwrap_or(&name[..end])
    });
    if let Some(name) = recipient.filter(|name| !name.is_empty() && *name != "assistant" && *name != "user") {
        return Some(Body::Call(name.to_owned()));
    }
    match channel(header)? {
        "analysis" => Some(Body::Thought),
        // A preamble to calls is meant for the user.
        "commentary" | "final" => Some(Body::Answer),
        _ => None,
    }
}

/// The name of the channel, as far as it is there.
fn channel(header: &str) -> Option<&str> {
    let (_, name) = header.rsplit_once(CHANNEL)?;
    let end = name.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(name.len());
    Some(&name[..end])
}

/// Where the words begin in a header that a marker or the end of the answer cut off: what stands in it is no header's.
pub(super) fn words(header: &str, explicit: bool, at_end: bool) -> usize {
    if let Some((role, rest)) = header.rsplit_once(CHANNEL) {
        let start = role.len() + CHANNEL.len();
        let name = channel(header).unwrap_or_default();
        let cut = at_end && NAMES.iter().any(|known| known.starts_with(rest));
        let known = NAMES.contains(&name);
        return match known && whole(header) || cut && viable(header) {
            true => header.len(),
            false => start + if known { name.len() } else { 0 },
        };
    }
    if explicit && (whole(header) || at_end && viable(header)) {
        return header.len();
    }
    match header.strip_prefix("assistant").filter(|_| explicit) {
        Some(rest) if rest.starts_with(char::is_whitespace) => header.len() - rest.len(),
        _ => 0,
    }
}
