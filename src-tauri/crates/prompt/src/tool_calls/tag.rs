//! Tags in a text that is still being written.

/// How a text begins, compared with a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// With the tag, which is this long.
    Whole(usize),
    /// More text will tell.
    Begun,
    /// With something else.
    No,
}

/// Compares the beginning of a text with a tag that is made of these pieces. At the text's end nothing more will tell.
pub(super) fn fit(text: &str, pieces: &[&str], at_end: bool) -> Fit {
    let mut length = 0;
    for piece in pieces {
        let rest = &text[length..];
        if rest.starts_with(piece) {
            length += piece.len();
        } else if piece.starts_with(rest) && !at_end {
            return Fit::Begun;
        } else {
            return Fit::No;
        }
    }
    Fit::Whole(length)
}

/// The first of several tags that a text begins with, and its length; `Err` while more text will tell.
pub(super) fn first<T: Copy>(tags: impl IntoIterator<Item = (T, Fit)>) -> Result<Option<(T, usize)>, ()> {
    let mut begun = false;
    for (tag, fit) in tags {
        match fit {
            Fit::Whole(length) => return Ok(Some((tag, length))),
            Fit::Begun => begun = true,
            Fit::No => {}
        }
    }
    if begun {
        Err(())
    } else {
        Ok(None)
    }
}

/// Passes over the next tag that begins with this character and fits; the result is where it begins.
pub(super) fn pass(text: &str, at: &mut usize, first: char, fit: impl Fn(usize) -> Fit) -> Option<usize> {
    while let Some(found) = text[*at..].find(first).map(|found| *at + found) {
        match fit(found) {
            Fit::Whole(length) => {
                *at = found + length;
                return Some(found);
            }
            Fit::Begun => {
                *at = found;
                return None;
            }
            Fit::No => *at = found + first.len_utf8(),
        }
    }
    *at = text.len();
    None
}

/// The offset of the next word.
pub(super) fn skip_blank(text: &str, at: usize) -> usize {
    text.len() - text[at..].trim_start().len()
}
