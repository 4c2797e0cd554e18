//! Parts of a text that people can name: pages, or lines if it has none.

use protocol::{Excerpt, ExcerptUnit};

/// The character between two pages of a text.
pub const PAGE_BREAK: char = '\u{c}';

/// A longer line counts as several, so that a text of one line has parts, too; in characters.
const LONGEST_LINE: usize = 2000;

/// The unit of a text's parts: pages if it has page breaks, else lines.
pub fn unit(text: &str) -> ExcerptUnit {
    match text.contains(PAGE_BREAK) {
        true => ExcerptUnit::Pages,
        false => ExcerptUnit::Lines,
    }
}

/// The pages or lines of a text, in order; together they are the text without its page breaks.
pub fn pieces(text: &str) -> Vec<&str> {
    match unit(text) {
        ExcerptUnit::Pages => text.split(PAGE_BREAK).collect(),
        ExcerptUnit::Lines => text.split_inclusive('\n').flat_map(cut).collect(),
    }
}

/// All of a text.
pub fn whole(text: &str) -> Excerpt {
    Excerpt::whole(unit(text), u32::try_from(pieces(text).len()).unwrap_or(u32::MAX))
}

/// A line in pieces of bounded length.
fn cut(line: &str) -> Vec<&str> {
    let mut rest = line;
    let mut pieces = Vec::new();
    // The line feed belongs to what it ends.
    let end = |rest: &str| rest.char_indices().nth(LONGEST_LINE).map(|(at, _)| at);
    while let Some(at) = end(rest).filter(|at| &rest[*at..] != "\n") {
        let (piece, after) = rest.split_at(at);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_sum_of_its_pieces() {
        assert_eq!(pieces("a\n\nb"), ["a\n", "\n", "b"]);
        assert_eq!(pieces("a\nb\u{c}c\n"), ["a\nb", "c\n"]);
        assert_eq!(whole("a\u{c}b"), Excerpt::whole(ExcerptUnit::Pages, 2));
        assert_eq!((unit("a\nb"), unit("a\u{c}")), (ExcerptUnit::Lines, ExcerptUnit::Pages));
        let long = format!("{}\n{}", "é".repeat(2000), "é".repeat(4001));
        assert_eq!(
            pieces(&long)
                .iter()
                .map(|piece| piece.chars().count())
                .collect::<Vec<_>>(),
            [2001, 2000, 2000, 1]
        );
        assert_eq!(pieces(&long).concat(), long);
    }
}
