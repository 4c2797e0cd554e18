use tools::visible::visible;

/// A text on one line, at most `most` characters of it.
pub fn one_line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(most) {
        None => line,
        Some(_) => line.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// [`one_line`] of a text of strangers, with nothing invisible in it.
pub fn visible_line(text: &str, most: usize) -> String {
    // Cut before, because a sign for an invisible character is longer than the character.
    one_line(&visible(&one_line(text, most)), usize::MAX)
}

/// A text that is visible already, on one line and otherwise as it is.
pub fn exact_line(text: &str) -> String {
    text.replace('\n', "⟨U+000A⟩").replace('\t', "⟨U+0009⟩")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_the_line() {
        assert_eq!(one_line(" Reads\na  file. ", 20), "Reads a file.");
        assert_eq!(one_line("12345", 5), "12345");
        assert_eq!(one_line("123456", 5), "1234…");
        assert_eq!(one_line("", 5), "");
        assert_eq!(visible_line("a\n\u{1b}[2Jb\u{202e}", 99), "a ⟨U+001B⟩[2Jb⟨U+202E⟩");
        assert_eq!(exact_line("sh -c 'a  b\nc'"), "sh -c 'a  b⟨U+000A⟩c'");
    }
}
