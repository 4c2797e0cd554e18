//! The form of an answer that a request asks for, the same thing under three names.

use serde_json::{json, Value};

use crate::fields::Fields;
use crate::refusal::Refusal;

type Result<T> = std::result::Result<T, Refusal>;

/// The forms that an answer can be asked for in.
#[derive(Debug, Clone, Copy)]
enum Form {
    Text,
    AnyObject,
    Schema,
}

/// The JSON schema that the object `name` of these fields asks an answer to follow; `inner` is the field of it that holds the
/// schema, if it does not do so itself.
///
/// # Errors
/// If it asks for something else, or the schema cannot be honoured; then the keyword is named.
pub(crate) fn schema(fields: &Fields, name: &str, inner: Option<&str>) -> Result<Option<Value>> {
    let Some(format) = fields.object(name)? else { return Ok(None) };
    let forms = [
        ("text", Form::Text),
        ("json_object", Form::AnyObject),
        ("json_schema", Form::Schema),
    ];
    match format.required_word("type", &forms)? {
        Form::Text => return Ok(None),
        Form::AnyObject => return Ok(Some(constraint::any_object())),
        Form::Schema => {}
    }
    let holder = match inner {
        None => Some(format.clone()),
        Some(inner) => format.object(inner)?,
    };
    let Some(holder) = holder else {
        return format.refuse(inner.unwrap_or(name), "this field is required");
    };
    let schema = holder.required_as("schema", || json!({"type": ["object", "boolean"]}))?;
    match constraint::check(schema) {
        Ok(()) => Ok(Some(schema.clone())),
        Err(error) => holder.refuse("schema", error),
    }
}

/// The place of the JSON schema that the answer to a body shall follow, if it holds one.
pub(crate) fn schema_param(body: &Value) -> Option<&'static str> {
    const PLACES: [(&str, &str); 4] = [
        ("/response_format/json_schema/schema", "response_format.json_schema.schema"),
        ("/text/format/schema", "text.format.schema"),
        ("/output_config/format/schema", "output_config.format.schema"),
        ("/output_format/schema", "output_format.schema"),
    ];
    let place = PLACES.into_iter().find(|(pointer, _)| body.pointer(pointer).is_some());
    place.map(|(_, param)| param)
}

/// Refuses stop texts, in the field `name`, beside a schema: the answer ends when it is whole.
pub(crate) fn refuse_stops(fields: &Fields, name: &str, request: &protocol::Request) -> Result<()> {
    match request.schema.is_some() && !request.stop.is_empty() {
        true => fields.refuse(name, "an answer that follows a JSON schema ends when it is whole; leave this out"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(format: Value, inner: Option<&str>) -> Result<Option<Value>> {
        schema(&Fields::of(&json!({"format": format}), "")?, "format", inner)
    }

    #[test]
    fn a_schema_is_found_in_every_form_and_what_cannot_be_honoured_is_named() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let nested = json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": schema}});
        assert_eq!(asked(nested, Some("json_schema")), Ok(Some(schema.clone())));
        let flat = json!({"type": "json_schema", "name": "n", "schema": schema});
        assert_eq!(asked(flat, None), Ok(Some(schema)));
        assert_eq!(asked(json!({"type": "json_object"}), None), Ok(Some(json!({"type": "object"}))));
        assert_eq!(asked(json!({"type": "text"}), None), Ok(None));
        assert_eq!(asked(Value::Null, None), Ok(None));
        for (format, inner, place, named) in [
            (json!({"type": "grammar"}), None, "format.type", "grammar"),
            (
                json!({"type": "json_schema"}),
                Some("json_schema"),
                "format.json_schema",
                "required",
            ),
            (json!({"type": "json_schema"}), None, "format.schema", "required"),
            (
                json!({"type": "json_schema", "schema": {"not": {}}}),
                None,
                "format.schema",
                "\"not\"",
            ),
            (
                json!({"type": "json_schema", "json_schema": {"schema": {"type": "array", "uniqueItems": true}}}),
                Some("json_schema"),
                "format.json_schema.schema",
                "uniqueItems",
            ),
        ] {
            let refusal = asked(format, inner).unwrap_err();
            assert_eq!(refusal.param.as_deref(), Some(place));
            assert!(refusal.message.contains(named), "{}", refusal.message);
        }
    }
}
