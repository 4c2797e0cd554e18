//! The shape of a JSON text, before anything is parsed: a few bytes of it become hundreds in memory.

/// An excess that a JSON text has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonExcess {
    /// It is nested too deep.
    Depth,
    /// It has too many values.
    Values,
}

/// Counts the values of a JSON text by its brackets and commas outside of strings. A text that is no JSON has some
/// number, too; its parser refuses it.
///
/// # Errors
/// The limit that the text exceeds.
pub fn json_values(text: &[u8], deepest: usize, most_values: usize) -> Result<usize, JsonExcess> {
    let (mut depth, mut values, mut in_string, mut escaped) = (0_usize, 0_usize, false, false);
    for byte in text {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                values += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if depth > deepest {
            return Err(JsonExcess::Depth);
        }
        if values > most_values {
            return Err(JsonExcess::Values);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_do_not_count() {
        let count = |text: String| json_values(text.as_bytes(), 100, 250_000);
        let text = format!("{{\"a\": \"{}\\\"{}\"}}", "[".repeat(10_000), ",".repeat(300_000));
        assert_eq!(count(text), Ok(1));
        assert_eq!(count("[".repeat(10_000)), Err(JsonExcess::Depth));
        assert_eq!(count("[]".repeat(130_000)), Ok(130_000));
        assert_eq!(count(format!("[{}0]", "0,".repeat(300_000))), Err(JsonExcess::Values));
    }
}
