//! The headers of messages: harmony's `assistant to=functions.NAME<|channel|>commentary <|constrain|>json`, Muse's
//! `assistant to=NAME` and Functionary's line of its own.

/// The headers that a format puts before its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::channels) enum Headers {
    /// Harmony's, which name a channel.
    Channels,
    /// Muse's, which say to whom the message goes.
    Recipients,
    /// Functionary's: a recipient alone, up to the line's end.
    Lines,
}

const CHANNEL: &str = "<|channel|>";
const CONSTRAIN: &str = "<|constrain|>";
const NAMES: [&str; 3] = ["analysis", "commentary", "final"];
/// A header is never longer.
const LONGEST: usize = 256;

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::channels) enum Body {
    Thought,
    Answer,
    /// The arguments of this tool.
    Call(String),
    /// Calls between markers, which are words of the message everywhere else.
    Calls,
}

impl Headers {
    /// The header that a prompt writes to open a thought.
    pub(in crate::channels) fn thought(self) -> &'static str {
        match self {
            Self::Channels => "<|channel|>analysis",
            Self::Recipients => " to=self",
            Self::Lines => "",
        }
    }

    /// True if the text may be a header, or the beginning of one.
    pub(in crate::channels) fn viable(self, header: &str) -> bool {
        match self {
            Self::Channels => fits(header, false),
            Self::Recipients => addressed(header, false),
            Self::Lines => line(header).is_some(),
        }
    }

    /// True if the text is a complete header.
    pub(in crate::channels) fn whole(self, header: &str) -> bool {
        match self {
            Self::Channels => fits(header, true),
            Self::Recipients => addressed(header, true),
            Self::Lines => false,
        }
    }

    /// The content of the message after a complete header; `None` if it names no known channel.
    pub(in crate::channels) fn body(self, header: &str) -> Option<Body> {
        match self {
            Self::Channels => body(header),
            Self::Recipients => Some(match recipient(header) {
                // A message without a recipient is a thought as well.
                None | Some("self") => Body::Thought,
                Some("user" | "commentary") => Body::Answer,
                Some(_) => Body::Calls,
            }),
            Self::Lines => match line(header)? {
                "" => None,
                "all" => Some(Body::Answer),
                name => Some(Body::Call(name.to_owned())),
            },
        }
    }

    /// The offset of the words in a header that a marker or the end of the answer cut off.
    pub(in crate::channels) fn words(self, header: &str, explicit: bool, at_end: bool) -> usize {
        match self {
            Self::Channels => words(header, explicit, at_end),
            Self::Recipients if explicit && addressed(header, true) => header.len(),
            // Nothing was said yet.
            Self::Recipients if at_end && addressed(header, false) && (explicit || header.contains("to=")) => {
                header.len()
            }
            Self::Recipients | Self::Lines => 0,
        }
    }
}

/// True if the text is `assistant to=NAME`, each part of which may be missing.
fn addressed(header: &str, whole: bool) -> bool {
    let role = header.trim_start_matches(' ');
    let rest = role.strip_prefix("assistant").unwrap_or(role);
    let begun = !whole && "assistant".starts_with(role);
    (begun || words_fit(rest, &["to="], whole)) && header.len() <= LONGEST && !header.contains('\n')
}

/// The name that a recipient's line begins with, as far as it is there; `None` if it is none.
fn line(header: &str) -> Option<&str> {
    let name = header.strip_prefix(">>>").unwrap_or(header);
    let name = name.strip_suffix('\n').unwrap_or(name);
    let fits = name.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c)) && name.len() <= LONGEST;
    let begun = ">>>".starts_with(header);
    (fits || begun).then_some(if begun { "" } else { name })
}

/// The recipient that a header names.
fn recipient(header: &str) -> Option<&str> {
    let (_, name) = header.split_once("to=")?;
    let end = name.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(name.len());
    Some(&name[..end])
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
        && channel.is_none_or(|channel| {
            let end = channel
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(channel.len());
            words_fit(&channel[end..], &["to=", CONSTRAIN, "json", "code"], whole)
        })
}

/// True if the text consists of these words, each with the name that follows it; the last may be cut off.
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

fn body(header: &str) -> Option<Body> {
    let recipient = recipient(header).map(|name| name.strip_prefix("functions.").unwrap_or(name));
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

/// The offset of the words in a harmony header that was cut off.
fn words(header: &str, explicit: bool, at_end: bool) -> usize {
    if let Some((role, rest)) = header.rsplit_once(CHANNEL) {
        let start = role.len() + CHANNEL.len();
        let name = channel(header).unwrap_or_default();
        let cut = at_end && NAMES.iter().any(|known| known.starts_with(rest));
        let known = NAMES.contains(&name);
        return match known && fits(header, true) || cut && fits(header, false) {
            true => header.len(),
            false => start + if known { name.len() } else { 0 },
        };
    }
    if explicit && (fits(header, true) || at_end && fits(header, false)) {
        return header.len();
    }
    match header.strip_prefix("assistant").filter(|_| explicit) {
        Some(rest) if rest.starts_with(char::is_whitespace) => header.len() - rest.len(),
        _ => 0,
    }
}
