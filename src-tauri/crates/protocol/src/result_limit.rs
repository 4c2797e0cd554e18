//! The part of a tool's result that a model is given. The whole of it stays where results are kept.

/// Bytes of a result for a model at most; a share of its context bounds it as well.
const MOST: usize = 32 << 10;

/// Results that fill a context.
const SHARE: usize = 8;

/// Bytes to a token, about.
const BYTES_A_TOKEN: usize = 4;

/// The end of a result that was cut.
const NOTE: &str = "bytes; the rest was left out]";

/// Bytes of a result at most for a model whose context holds this many tokens, if that is known.
pub fn most_of_result(context: Option<u32>) -> usize {
    let share = context.map(|tokens| tokens as usize * BYTES_A_TOKEN / SHARE);
    share.map_or(MOST, |share| share.min(MOST))
}

/// The text of a result with at most this many bytes; one that is longer ends with a line that says how much was cut.
/// The same text and limit always give the same, so that prompts begin alike.
pub fn cut_result(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let note = |kept: usize| format!("\n[cut: these are the first {kept} of {} {NOTE}", text.len());
    // The note with the largest number is the longest.
    let kept = text.floor_char_boundary(most.saturating_sub(note(most).len()));
    format!("{}{}", &text[..kept], note(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_holds_eight_results() {
        for (context, most) in [
            (None, 32 << 10),
            (Some(0), 0),
            (Some(512), 256),
            (Some(8192), 4096),
            (Some(65_536), 32 << 10),
            (Some(u32::MAX), 32 << 10),
        ] {
            assert_eq!(most_of_result(context), most, "{context:?}");
        }
    }

    #[test]
    fn a_result_is_cut_between_characters_and_says_so() {
        let long = "ä".repeat(40_000);
        for most in [200, 201, 4096, 32 << 10] {
            let cut = cut_result(long.clone(), most);
            assert!(cut.len() <= most && cut.len() > most - 4, "{} of {most}", cut.len());
            let (kept, note) = cut.rsplit_once('\n').expect("a line of its own");
            assert!(kept.chars().all(|letter| letter == 'ä'));
            let expected = format!("[cut: these are the first {} of 80000 {NOTE}", kept.len());
            assert_eq!(note, expected);
            assert_eq!(cut_result(long.clone(), most), cut);
        }
        // Only the note is left if no text fits beside it.
        assert!(cut_result(long.clone(), 0).starts_with("\n[cut: these are the first 0 of 80000"));
        assert_eq!(cut_result(long.clone(), 80_000), long);
        assert_eq!(cut_result(String::new(), 0), "");
    }
}
