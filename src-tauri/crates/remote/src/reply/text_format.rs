//! Detects whose markers a server's text holds: a server that does not parse thoughts and calls passes them on as
//! written.

use prompt::Splitter;

/// The format of text that begins with no marker. Its own are the most common ones.
pub(crate) const PLAIN: &str = "qwen";
/// Opens a thought in that format.
pub(crate) const OPEN: &str = "<think>";
/// Closes a thought in that format.
pub(crate) const CLOSE: &str = "</think>";

/// The shortest marker that is looked for: `[` alone begins many an answer.
const SHORTEST: usize = 5;

/// The format of a text by its beginning; `None` while that may still become a marker.
pub(crate) fn detect_format(text: &str) -> Option<&'static str> {
    let beginning = text.trim_start();
    let mut undecided = beginning.is_empty();
    for name in std::iter::once(PLAIN).chain(Splitter::names()) {
        let Some(splitter) = Splitter::named(name, false, true) else {
            continue;
        };
        for marker in splitter.markers().filter(|marker| marker.len() >= SHORTEST) {
            if beginning.starts_with(marker) {
                // A longer marker may begin with this one, but no two formats part in such a way.
                return Some(name);
            }
            undecided |= marker.starts_with(beginning);
        }
    }
    (!undecided).then_some(PLAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_the_first_marker() {
        for (text, format) in [
            ("Hello", Some(PLAIN)),
            ("[1, 2]", Some(PLAIN)),
            ("<p>", Some(PLAIN)),
            (" \n", None),
            ("<thi", None),
            ("\n<think>", Some(PLAIN)),
            ("<|chan", None),
            ("<|channel>thought\n", Some("gemma4")),
            ("[THINK]hm", Some("mistral")),
            ("<seed:think>", Some("seed")),
        ] {
            assert_eq!(detect_format(text), format, "{text:?}");
        }
        let splitter = Splitter::named(PLAIN, false, true).expect("the table has it");
        let markers: Vec<&str> = splitter.markers().collect();
        assert!(markers.contains(&OPEN) && markers.contains(&CLOSE), "{markers:?}");
    }
}
