//! How long a model stays loaded after its last answer, as `keep_alive` of a request or the server's own says.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// How long a model stays loaded after its last answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeepAlive {
    /// Until another model needs the memory.
    #[default]
    UntilReplaced,
    /// For this long after its last answer.
    For(Duration),
}

impl std::str::FromStr for KeepAlive {
    type Err = String;

    /// Parses Ollama's format: `10m`, `1h30m`, `500ms`, seconds without a unit, `0` for at once, any negative value for
    /// no limit.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || "this is neither a time such as 10m, nor seconds, nor -1".to_owned();
        if let Ok(seconds) = text.parse::<f64>() {
            return Self::of_seconds(seconds).ok_or_else(wrong);
        }
        let mut rest = text.strip_prefix('-').unwrap_or(text);
        if rest.is_empty() {
            return Err(wrong());
        }
        let mut seconds = 0.0;
        while !rest.is_empty() {
            let digits = rest
                .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
                .ok_or_else(wrong)?;
            let (number, after) = rest.split_at(digits);
            let letters = after
                .find(|letter: char| !letter.is_ascii_alphabetic())
                .unwrap_or(after.len());
            let (unit, after) = after.split_at(letters);
            let unit = match unit {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return Err(wrong()),
            };
            seconds += number.parse::<f64>().map_err(|_| wrong())? * unit;
            rest = after;
        }
        let negative = text.starts_with('-');
        Self::of_seconds(if negative { -1.0 } else { seconds }).ok_or_else(wrong)
    }
}

impl KeepAlive {
    /// The time as an engine takes it ([`protocol::Request::keep_alive`]).
    pub(crate) fn time(self) -> Duration {
        match self {
            Self::UntilReplaced => Duration::MAX,
            Self::For(time) => time,
        }
    }

    fn of_seconds(seconds: f64) -> Option<Self> {
        if seconds < 0.0 {
            return Some(Self::UntilReplaced);
        }
        // Values beyond a duration are unlimited too.
        (!seconds.is_nan()).then(|| Duration::try_from_secs_f64(seconds).map_or(Self::UntilReplaced, Self::For))
    }
}

/// The field that says how long the model of a request stays.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct KeepAliveField {
    pub(crate) keep_alive: Option<KeepAlive>,
}

impl<'de> Deserialize<'de> for KeepAlive {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            Value::Number(seconds) => seconds.to_string(),
            _ => String::new(),
        };
        text.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for KeepAlive {
    fn schema_name() -> Cow<'static, str> {
        "KeepAlive".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number"]})
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request::fields::Fields;

    #[test]
    fn times_are_written_as_for_ollama() {
        let read = |text: &str| text.parse::<KeepAlive>();
        for (text, seconds) in [
            ("10m", 600.0),
            ("1h30m", 5400.0),
            ("500ms", 0.5),
            ("0", 0.0),
            ("3600", 3600.0),
            ("1.5s", 1.5),
            ("0s", 0.0),
        ] {
            assert_eq!(
                read(text),
                Ok(KeepAlive::For(Duration::from_secs_f64(seconds))),
                "{text}"
            );
        }
        for text in ["-1", "-1s", "-5m", "1e300"] {
            assert_eq!(read(text), Ok(KeepAlive::UntilReplaced), "{text}");
        }
        for text in ["", "soon", "m", "10 m", "10d", "5m3", "NaN", "1.2.3s", "-"] {
            let wrong = read(text);
            assert!(wrong.is_err(), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn a_request_says_it_as_text_or_seconds() {
        let read = |value: Value| {
            let body = json!({"keep_alive": value});
            Fields::of(&body, "")?
                .read()
                .map(|field: KeepAliveField| field.keep_alive)
        };
        assert_eq!(read(Value::Null), Ok(None));
        assert_eq!(read(json!("10m")), Ok(Some(KeepAlive::For(Duration::from_secs(600)))));
        assert_eq!(read(json!(30)), Ok(Some(KeepAlive::For(Duration::from_secs(30)))));
        assert_eq!(read(json!(-1)), Ok(Some(KeepAlive::UntilReplaced)));
        for wrong in [json!("soon"), json!(true), json!([])] {
            assert_eq!(read(wrong).unwrap_err().param.as_deref(), Some("keep_alive"));
        }
    }
}
