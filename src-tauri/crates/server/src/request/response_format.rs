//! The response format of a request: one thing under three names.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::http::error_body::Refusal;
use crate::request::fields::Fields;
use crate::request::values::object_or_boolean;

type Result<T> = std::result::Result<T, Refusal>;

/// A response format. Chat completions have the schema in an object of its own, the other surfaces next to the type.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ResponseFormat {
    r#type: Form,
    json_schema: Option<NamedSchema>,
    #[serde(default)]
    #[schemars(schema_with = "object_or_boolean")]
    schema: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Form {
    Text,
    JsonObject,
    JsonSchema,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NamedSchema {
    #[serde(default)]
    #[schemars(schema_with = "object_or_boolean")]
    schema: Option<Value>,
}

impl ResponseFormat {
    /// The JSON schema of the format; `name` is its field among these, and `nested` is true for chat completions.
    ///
    /// # Errors
    /// If there is no schema, or it cannot be honored; then the keyword is named.
    pub(crate) fn schema(self, fields: &Fields, name: &str, nested: bool) -> Result<Option<Value>> {
        match self.r#type {
            Form::Text => return Ok(None),
            Form::JsonObject => return Ok(Some(constraint::any_object())),
            Form::JsonSchema => {}
        }
        let (place, schema) = if nested {
            let place = format!("{name}.json_schema");
            let schema = fields.require(&place, self.json_schema)?.schema;
            (format!("{place}.schema"), schema)
        } else {
            (format!("{name}.schema"), self.schema)
        };
        let schema = fields.require(&place, schema)?;
        match constraint::check(&schema) {
            Ok(()) => Ok(Some(schema)),
            Err(error) => fields.refuse(&place, error),
        }
    }
}

/// The path of the response schema in a body, if it has one.
pub(crate) fn schema_param(body: &Value) -> Option<&'static str> {
    const PLACES: [&str; 5] = [
        "response_format.json_schema.schema",
        "text.format.schema",
        "output_config.format.schema",
        "output_format.schema",
        "format",
    ];
    let is_set = |param: &&str| body.pointer(&format!("/{}", param.replace('.', "/"))).is_some();
    PLACES.into_iter().find(is_set)
}

/// Refuses stop texts, in the field `name`, together with a schema: the answer ends when the JSON is complete.
pub(crate) fn refuse_stops(fields: &Fields, name: &str, request: &protocol::Request) -> Result<()> {
    if request.schema.is_none() || request.stop.is_empty() {
        return Ok(());
    }
    let reason = "an answer that follows a JSON schema ends when it is whole; leave this out";
    fields.refuse(name, reason)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Deserialize)]
    struct Body {
        format: Option<ResponseFormat>,
    }

    fn asked(format: Value, inner: Option<&str>) -> Result<Option<Value>> {
        let body = json!({"format": format});
        let fields = Fields::of(&body, "")?;
        match fields.read::<Body>()?.format {
            Some(format) => format.schema(&fields, "format", inner.is_some()),
            None => Ok(None),
        }
    }

    #[test]
    fn a_schema_is_found_in_every_form_and_what_cannot_be_honoured_is_named() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let nested = json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": schema}});
        assert_eq!(asked(nested, Some("json_schema")), Ok(Some(schema.clone())));
        let flat = json!({"type": "json_schema", "name": "n", "schema": schema});
        assert_eq!(asked(flat, None), Ok(Some(schema)));
        assert_eq!(
            asked(json!({"type": "json_object"}), None),
            Ok(Some(json!({"type": "object"})))
        );
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
