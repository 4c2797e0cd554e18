//! One spelling for each JSON value, and digests of it.

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The text of a value with the keys of every object in order and without blanks.
///
/// RFC 8785 would turn numbers into doubles, by which two large integers become one: here every digit counts.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, to: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            to.push('{');
            for (index, (name, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    to.push(',');
                }
                to.push_str(&Value::from(name.as_str()).to_string());
                to.push(':');
                write(value, to);
            }
            to.push('}');
        }
        Value::Array(values) => {
            to.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    to.push(',');
                }
                write(value, to);
            }
            to.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => to.push_str(&value.to_string()),
    }
}

/// The SHA-256 of some texts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of texts in this order; where one ends and the next begins counts, too.
    pub fn of(texts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for text in texts {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        Self(hash.finalize().into())
    }

    /// These bytes, made by another hash.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest that [`Digest`]'s text in hexadecimal digits is.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).ok()?;
            *byte = u8::from_str_radix(digits, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_count_and_that_of_values_does() {
        let one: Value = serde_json::from_str(r#"{"b": [1, {"y": 2, "x": "\u00e9"}], "a": null}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"a":null,"b":[1,{"x":"é","y":2}]}"#).unwrap();
        assert_eq!(canonical(&one), r#"{"a":null,"b":[1,{"x":"é","y":2}]}"#);
        assert_eq!(canonical(&one), canonical(&other));
        assert_ne!(canonical(&json!([1, 2])), canonical(&json!([2, 1])));
    }

    #[test]
    fn every_digit_of_a_number_counts() {
        let [one, other] = [9_007_199_254_740_992_u64, 9_007_199_254_740_993].map(|number| json!({ "n": number }));
        assert_ne!(canonical(&one), canonical(&other));
        assert_ne!(canonical(&json!(1)), canonical(&json!(1.0)));
        assert_ne!(canonical(&json!("1")), canonical(&json!(1)));
    }

    #[test]
    fn digests_know_where_a_text_ends() {
        assert_ne!(Digest::of(&["ab", "c"]), Digest::of(&["a", "bc"]));
        assert_ne!(Digest::of(&["a"]), Digest::of(&["a", ""]));
        let digest = Digest::of(&["a"]);
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        for broken in ["", "00", &"g".repeat(64), &"é".repeat(32), &"+1".repeat(32)] {
            assert_eq!(Digest::parse(broken), None, "{broken}");
        }
    }
}
