//! The title that a chat gets from its first question.

/// At most this many characters.
const LENGTH: usize = 60;

/// The beginning of a text on one line, in whole words if it has any.
pub(crate) fn title(text: &str) -> String {
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
    fn a_short_question_is_its_own_title_on_one_line() {
        assert_eq!(title("  What is\n\t347 + 589? "), "What is 347 + 589?");
        assert_eq!(title(&"x".repeat(60)), "x".repeat(60));
    }

    #[test]
    fn a_long_question_is_cut_between_words() {
        let text = "Please tell me everything that you know about the history of tea in England";
        assert_eq!(title(text), "Please tell me everything that you know about the history…");
        let text = format!("{} {}", "a".repeat(59), "b".repeat(9));
        assert_eq!(title(&text), format!("{}…", "a".repeat(59)));
    }

    #[test]
    fn a_text_without_spaces_is_cut_between_characters() {
        assert_eq!(title(&"猫".repeat(100)), format!("{}…", "猫".repeat(59)));
    }
}
