//! The title that a chat gets from its first question.

use protocol::Content;

/// At most this many characters.
const LENGTH: usize = 60;

/// The beginning of a question on one line: its words, or what its images and files are called if it has none.
pub(crate) fn fallback_title(question: &[Content]) -> String {
    let words = |media: bool| {
        let is_own = |part: &&Content| part.is_media() == media && !matches!(part, Content::Passages { .. });
        let parts = question.iter().filter(is_own);
        parts.filter_map(Content::as_text).collect::<Vec<_>>().join(" ")
    };
    let text = words(false);
    match text.trim().is_empty() {
        true => beginning(&words(true)),
        false => beginning(&text),
    }
}

/// The beginning of a text on one line, in whole words if it has any.
fn beginning(text: &str) -> String {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.chars().filter(|c| !c.is_control()).collect())
        .collect();
    let line = words.join(" ");
    if line.chars().count() <= LENGTH {
        return line;
    }
    let head: String = line.chars().take(LENGTH - 1).collect();
    let next_is_space = line.chars().nth(LENGTH - 1) == Some(' ');
    let kept = match head.rfind(' ') {
        Some(end) if !next_is_space => &head[..end],
        _ => head.trim_end(),
    };
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_only_if_there_are_no_words() {
        let image = |alt: &str| Content::Image {
            attachment: String::new(),
            media_type: "image/png".into(),
            width: 1,
            height: 1,
            alt: alt.into(),
        };
        let hill = image("hill.png");
        assert_eq!(
            fallback_title(&[hill.clone(), image(""), Content::text("What is this?")]),
            "What is this?"
        );
        assert_eq!(
            fallback_title(&[hill, image(""), Content::text(" ")]),
            "[image: hill.png] [image]"
        );
    }

    #[test]
    fn a_short_question_is_its_own_title_on_one_line() {
        assert_eq!(beginning("  What is\n\t347 + 589? "), "What is 347 + 589?");
        assert_eq!(beginning(&"x".repeat(60)), "x".repeat(60));
    }

    #[test]
    fn a_long_question_is_cut_between_words() {
        let text = "Please tell me everything that you know about the history of tea in England";
        assert_eq!(
            beginning(text),
            "Please tell me everything that you know about the history…"
        );
        let text = format!("{} {}", "a".repeat(59), "b".repeat(9));
        assert_eq!(beginning(&text), format!("{}…", "a".repeat(59)));
    }

    #[test]
    fn a_text_without_spaces_is_cut_between_characters() {
        assert_eq!(beginning(&"猫".repeat(100)), format!("{}…", "猫".repeat(59)));
    }
}
