//! Arguments against the schema of their tool.

use serde_json::Value;

/// Characters of a complaint at most: it quotes what a model wrote.
const LONGEST: usize = 500;

/// The greatest whole number that a number of JSON with a fraction stands for exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The arguments that a person wrote.
///
/// # Errors
/// A sentence for the person: about a text that is no JSON, or a number that could not be sent as it is written.
pub fn read(text: &str) -> Result<Value, String> {
    let arguments: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match is_exact(&arguments) {
        true => Ok(arguments),
        false => Err("a number in it has too many digits to be sent as it is written".to_owned()),
    }
}

/// False if a number in it is so large that it was rounded.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => number.as_f64().is_some_and(|float| float.abs() <= EXACT),
        Value::Array(values) => values.iter().all(is_exact),
        Value::Object(values) => values.values().all(is_exact),
        _ => true,
    }
}

/// Checks arguments before they are shown or sent.
///
/// # Errors
/// A sentence for the model or the person. A schema that cannot be used refuses nothing; the server knows better.
pub fn check(schema: &Value, arguments: &Value) -> Result<(), String> {
    if !arguments.is_object() {
        return Err("the arguments of a call are a JSON object".to_owned());
    }
    // Nothing is fetched for a schema that refers elsewhere.
    let Ok(validator) = jsonschema::validator_for(schema) else {
        return Ok(());
    };
    let Err(error) = validator.validate(arguments) else {
        return Ok(());
    };
    let place = error.instance_path.to_string();
    let complaint = match place.is_empty() {
        true => error.to_string(),
        false => format!("{place}: {error}"),
    };
    Err(complaint.chars().take(LONGEST).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_that_do_not_fit_are_told_why() {
        let schema = json!({
            "type": "object",
            "properties": { "city": { "type": "string" }, "days": { "type": "integer", "maximum": 9 } },
            "required": ["city"],
            "additionalProperties": false
        });
        assert_eq!(check(&schema, &json!({ "city": "Bonn", "days": 2 })), Ok(()));
        for (arguments, word) in [
            (json!({}), "city"),
            (json!({ "city": 7 }), "string"),
            (json!({ "city": "Bonn", "days": 10 }), "9"),
            (json!({ "city": "Bonn", "more": 1 }), "more"),
            (json!(["Bonn"]), "object"),
        ] {
            let complaint = check(&schema, &arguments).unwrap_err();
            assert!(
                complaint.contains(word) && complaint.chars().count() <= LONGEST,
                "{complaint}"
            );
        }
        let long = check(&schema, &json!({ "city": ["x".repeat(100_000)] })).unwrap_err();
        assert!(long.chars().count() <= LONGEST);
    }

    #[test]
    fn arguments_that_a_person_wrote_are_taken_as_they_are_or_not_at_all() {
        let exact = r#"{"account":12345678901234567890,"least":-9223372036854775808,"part":0.5}"#;
        assert_eq!(read(exact).unwrap().to_string(), exact);
        for text in [
            "",
            "{",
            "{\"a\": 123456789012345678901}",
            "{\"a\": [1e40]}",
            "{\"a\": NaN}",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_schema_that_cannot_be_used_refuses_nothing() {
        for schema in [
            json!({ "type": 7 }),
            json!({ "$ref": "https://example.org/schema.json" }),
            json!({ "$ref": "file:///etc/passwd" }),
            json!({ "properties": { "a": { "pattern": "(" } } }),
        ] {
            assert_eq!(check(&schema, &json!({ "a": "b" })), Ok(()), "{schema}");
        }
    }
}
