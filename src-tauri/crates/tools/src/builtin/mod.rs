//! Tools that Ponder has itself. They read no file and ask no network.

mod calculator;
mod clock;

use serde_json::{json, Value};

use crate::catalog::{Effects, Tool};
use crate::outcome::{Outcome, ResultPart};

/// The server that built-in tools belong to.
pub const SERVER: &str = "ponder";

/// A built-in tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// The time in a time zone.
    GetTime,
    /// The value of an expression, in exact decimals.
    Calculate,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::GetTime, Self::Calculate];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::GetTime => "get_time",
            Self::Calculate => "calculate",
        }
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// As a tool among others.
    pub fn tool(self) -> Tool {
        let (title, description, parameters) = match self {
            Self::GetTime => (
                "Time",
                "Tells the date and the time now, in a time zone.",
                json!({
                    "type": "object",
                    "properties": {
                        "timezone": {
                            "type": "string",
                            "description": "A name of the IANA database, such as Europe/Berlin. Without it: the user's own."
                        }
                    },
                    "additionalProperties": false
                }),
            ),
            Self::Calculate => (
                "Calculator",
                "Computes an expression exactly, such as 0.1 + 0.2, 2^64 / 3 or 15% of 80.",
                json!({
                    "type": "object",
                    "properties": { "expression": { "type": "string", "description": "The expression." } },
                    "required": ["expression"],
                    "additionalProperties": false
                }),
            ),
        };
        Tool {
            name: self.name().to_owned(),
            title: Some(title.to_owned()),
            description: description.to_owned(),
            parameters,
            effects: Effects {
                read_only: true,
                destructive: false,
                open_world: false,
            },
        }
    }

    /// Runs it; `own_zone` is the user's time zone. It takes some milliseconds, or two seconds at most.
    pub fn run(self, arguments: &Value, own_zone: &str) -> Outcome {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let result = match self {
            Self::GetTime => clock::time(text("timezone").unwrap_or(own_zone)),
            Self::Calculate => match text("expression") {
                Some(expression) => calculator::value(expression),
                None => Err("there is no expression".to_owned()),
            },
        };
        match result {
            Ok(text) => Outcome {
                parts: vec![ResultPart::Text(text)],
                ..Outcome::default()
            },
            Err(reason) => Outcome::failed(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(tool: Builtin, arguments: Value) -> (String, bool) {
        let outcome = tool.run(&arguments, "UTC");
        (outcome.for_model(1000), outcome.is_error)
    }

    #[test]
    fn sums_are_exact() {
        for (expression, value) in [
            ("0.1 + 0.2", "0.3"),
            ("2^64", "18446744073709551616"),
            ("7 * (3 - 10)", "-49"),
            ("1.10 * 3", "3.3"),
            ("15% of 80", "12"),
            ("347 + 589", "936"),
        ] {
            let result = run(Builtin::Calculate, json!({ "expression": expression }));
            assert_eq!(result, (value.to_owned(), false), "{expression}");
        }
    }

    #[test]
    fn what_cannot_be_computed_says_so_and_nothing_runs_for_ever() {
        let begun = std::time::Instant::now();
        for expression in [
            "1/0",
            "hello + ",
            "9^9^9^9^9",
            "(((((",
            "",
            &"(".repeat(50_000),
            &"9".repeat(2_000_000),
        ] {
            let (_, is_error) = run(Builtin::Calculate, json!({ "expression": expression }));
            assert!(is_error, "{:.40}", expression);
        }
        assert!(run(Builtin::Calculate, json!({})).1);
        assert!(run(Builtin::Calculate, json!({ "expression": 5 })).1);
        assert!(begun.elapsed().as_secs() < 20);
    }

    #[test]
    fn the_time_is_that_of_the_zone() {
        let (berlin, is_error) = run(Builtin::GetTime, json!({ "timezone": "Europe/Berlin" }));
        assert!(!is_error && berlin.contains("Europe/Berlin"), "{berlin}");
        assert!(run(Builtin::GetTime, json!({})).0.contains("UTC"));
        let (wrong, is_error) = run(Builtin::GetTime, json!({ "timezone": "Mars/Olympus" }));
        assert!(is_error && wrong.contains("Mars/Olympus"), "{wrong}");
    }

    #[test]
    fn every_tool_is_found_by_its_name() {
        for tool in Builtin::ALL {
            assert_eq!(Builtin::named(tool.name()), Some(tool));
            assert!(!tool.tool().effects.has_side_effects());
        }
        assert_eq!(Builtin::named("shell"), None);
    }
}
