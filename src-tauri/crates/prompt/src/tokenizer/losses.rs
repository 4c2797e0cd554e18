//! Losses of a tokenizer: text that it drops or shortens before it makes tokens of it.

use serde_json::Value;

/// NFC makes one syllable of three letters of Hangul; nothing else becomes shorter by more.
const NFC: usize = 3;

/// The factor by which a text may shrink before tokens are made of it, by the `normalizer` and the `pre_tokenizer`
/// of tokenizer.json; `None` if some of it may get lost, or a step is not known.
pub(super) fn most_shrinking(normalizer: &Value, pre_tokenizer: &Value) -> Option<usize> {
    steps(pre_tokenizer, "pretokenizers").try_for_each(keeps_all)?;
    steps(normalizer, "normalizers").map(shrinking).product()
}

/// The steps of a sequence, or the only one; none if there is nothing to be done.
fn steps<'a>(whole: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    let steps = match whole.get(name).and_then(Value::as_array) {
        Some(steps) => steps.as_slice(),
        None => std::slice::from_ref(whole),
    };
    steps.iter().filter(|step| !step.is_null())
}

fn keeps_all(step: &Value) -> Option<()> {
    let kept = match step["type"].as_str()? {
        "ByteLevel" | "Metaspace" | "Digits" => true,
        "Split" | "Punctuation" => step["behavior"] != "Removed",
        _ => false,
    };
    kept.then_some(())
}

fn shrinking(step: &Value) -> Option<usize> {
    match step["type"].as_str()? {
        "Prepend" => Some(1),
        "Replace" => {
            let (pattern, content) = (step.pointer("/pattern/String")?.as_str()?, step["content"].as_str()?);
            (content.len() >= pattern.len()).then_some(1)
        }
        "NFC" => Some(NFC),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_gets_shorter_is_known_for_the_steps_of_chat_models() {
        let split = |behavior: &str| json!({"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": behavior});
        let sequence = |split| json!({"type": "Sequence", "pretokenizers": [split, {"type": "ByteLevel"}]});
        let blanks = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
        let both = json!({"type": "Sequence", "normalizers": [{"type": "NFC"}, blanks]});
        assert_eq!(most_shrinking(&Value::Null, &sequence(split("Isolated"))), Some(1));
        assert_eq!(most_shrinking(&both, &Value::Null), Some(3));
        assert_eq!(most_shrinking(&both, &sequence(split("Removed"))), None);
        for lossy in [
            json!({"type": "Lowercase"}),
            json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}),
            json!({"type": "Replace", "pattern": {"String": "``"}, "content": "\""}),
        ] {
            assert_eq!(most_shrinking(&lossy, &Value::Null), None, "{lossy}");
        }
    }
}
