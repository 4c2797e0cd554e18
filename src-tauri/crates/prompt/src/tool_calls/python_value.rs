//! Values as Python writes them.

use serde_json::{Map, Value};

use super::call::DEPTH;
use super::number::padded_number;

/// A text that is one value.
pub(super) fn whole(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text };
    let value = reader.value(0)?;
    reader.rest.trim().is_empty().then_some(value)
}

/// True for characters of names.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.' || c == '-'
}

/// Reads Python's syntax from the left.
pub(super) struct Reader<'a> {
    pub(super) rest: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, token: &str) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(token)?;
        Some(())
    }

    pub(super) fn word(&mut self) -> Option<&'a str> {
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
        let begins = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        begins.then(|| {
            self.rest = &text[end..];
            &text[..end]
        })
    }

    pub(super) fn value(&mut self, depth: usize) -> Option<Value> {
        if depth == DEPTH {
            return None;
        }
        let text = self.rest.trim_start();
        match text.chars().next()? {
            '"' | '\'' => self.text().map(Value::from),
            '[' | '(' => {
                let close = if text.starts_with('[') { "]" } else { ")" };
                self.rest = &text[1..];
                let mut items = Vec::new();
                self.items(close, |reader| reader.value(depth + 1).map(|value| items.push(value)))?;
                Some(items.into())
            }
            '{' => {
                self.rest = &text[1..];
                self.braces(depth)
            }
            c if c.is_ascii_digit() || c == '-' || c == '+' || c == '.' => {
                let end = text
                    .find(|c: char| !c.is_ascii_alphanumeric() && !"+-._".contains(c))
                    .unwrap_or(text.len());
                let number = padded_number(text[..end].trim_start_matches('+'))?;
                self.rest = &text[end..];
                Some(number)
            }
            _ => match self.word()? {
                "True" | "true" => Some(true.into()),
                "False" | "false" => Some(false.into()),
                "None" | "null" => Some(Value::Null),
                _ => None,
            },
        }
    }

    /// Items up to a closing bracket, with a comma after each but the last, and perhaps after that.
    pub(super) fn items(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        while self.take(close).is_none() {
            item(self)?;
            if self.take(",").is_none() && !self.rest.trim_start().starts_with(close) {
                return None;
            }
        }
        Some(())
    }

    /// A dictionary in braces, or a set, which becomes a list.
    fn braces(&mut self, depth: usize) -> Option<Value> {
        let (mut fields, mut items) = (Map::new(), Vec::new());
        self.items("}", |reader| {
            let key = reader.value(depth + 1)?;
            if reader.take(":").is_none() {
                items.push(key);
                return Some(());
            }
            let key = match key {
                Value::String(key) => key,
                Value::Number(_) | Value::Bool(_) => key.to_string(),
                _ => return None,
            };
            fields.insert(key, reader.value(depth + 1)?);
            Some(())
        })?;
        match (items.is_empty(), fields.is_empty()) {
            (true, _) => Some(fields.into()),
            (false, true) => Some(items.into()),
            (false, false) => None,
        }
    }

    /// A text in one or three quotation marks of either kind.
    fn text(&mut self) -> Option<String> {
        let start = self.rest.trim_start();
        let mark = ["\"\"\"", "'''", "\"", "'"]
            .into_iter()
            .find(|mark| start.starts_with(mark))?;
        let mut rest = &start[mark.len()..];
        let mut text = String::new();
        loop {
            if let Some(after) = rest.strip_prefix(mark) {
                self.rest = after;
                return Some(text);
            }
            let mut characters = rest.chars();
            match characters.next()? {
                '\\' => escape(&mut characters, &mut text)?,
                c => text.push(c),
            }
            rest = characters.as_str();
        }
    }
}

/// The character of an escape; what Python does not know stays as it is.
fn escape(characters: &mut std::str::Chars<'_>, text: &mut String) -> Option<()> {
    let code = |characters: &mut std::str::Chars<'_>, digits: usize| {
        let hex = characters.as_str().get(..digits)?;
        characters.nth(digits - 1);
        u32::from_str_radix(hex, 16).ok()
    };
    let c = match characters.next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        '0' => '\0',
        '\n' => return Some(()),
        same @ ('\\' | '\'' | '"' | '/') => same,
        'x' => char::from_u32(code(characters, 2)?)?,
        'u' => {
            let high = code(characters, 4)?;
            if !(0xD800..0xDC00).contains(&high) {
                char::from_u32(high)?
            } else {
                // Half of a character that JSON writes as two.
                (characters.next()? == '\\' && characters.next()? == 'u').then_some(())?;
                let low = code(characters, 4)?.checked_sub(0xDC00)?;
                char::from_u32(0x10000 + ((high - 0xD800) << 10) + low)?
            }
        }
        other => {
            text.push('\\');
            other
        }
    };
    text.push(c);
    Some(())
}
