//! Hunyuan 3's calls: GLM's pairs of elements after `NAME<tool_sep:opensource>`, every tag with that ending.

use serde_json::Map;

use super::{elements, ParsedCalls, Tools};

/// Ends the name of each tag.
const ENDING: &str = ":opensource>";
const NAME_ENDS: &str = "<tool_sep:opensource>";

/// Whether a name ends as this form has it.
pub(super) fn fits(text: &str) -> bool {
    text.contains(NAME_ENDS)
}

/// The one call.
pub(super) fn read(text: &str, tools: &Tools) -> Option<ParsedCalls> {
    let (name, pairs) = text.split_once(NAME_ENDS)?;
    let name = name.trim();
    let end = text.len();
    if pairs.trim().is_empty() {
        let whole = !name.is_empty() && !name.contains(char::is_whitespace);
        return whole.then(|| ParsedCalls {
            calls: vec![(name.to_owned(), Map::new().into())],
            end,
        });
    }
    let plain = format!("{name}\n{}", pairs.replace(ENDING, ">"));
    let reading = elements::pairs(&plain, tools)?;
    Some(ParsedCalls { end, ..reading })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_name_stands_before_its_pairs() {
        let read = |text: &str| read(text, &Tools::default()).map(|reading| json!(reading.calls));
        let text = "f<tool_sep:opensource>\n<arg_key:opensource>a</arg_key:opensource>\n<arg_value:opensource>1</arg_value:opensource>\n<arg_key:opensource>s</arg_key:opensource>\n<arg_value:opensource>x y</arg_value:opensource>\n";
        assert_eq!(read(text), Some(json!([["f", {"a": 1, "s": "x y"}]])));
        assert_eq!(read("now<tool_sep:opensource>\n"), Some(json!([["now", {}]])));
        for text in [
            "<tool_sep:opensource>",
            "a b<tool_sep:opensource>",
            "f<tool_sep:opensource>\n<arg_key:opensource>a",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
