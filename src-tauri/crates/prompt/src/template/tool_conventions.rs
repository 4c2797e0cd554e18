//! The conventions of a chat template for tool calls and their results, found by trial renderings.

use serde_json::{json, Map, Value};
use sha2::{Digest, Sha256};

/// The conventions of a chat template for tool calls and their results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ToolConventions {
    /// It refuses every call id but nine letters and digits, as Mistral's templates do.
    pub short_ids: bool,
    /// It prints a result that is a JSON object, as JSON or in the model's own notation (Gemma 4). Half of the public
    /// templates do not: they expect text, and print nothing, Python's notation, or an error.
    pub objects: bool,
}

impl ToolConventions {
    /// The conventions of a template, told by what it renders.
    pub(crate) fn of(render: &impl Fn(Map<String, Value>) -> Option<String>) -> Self {
        const SHORT: &str = "a1B2c3D4e";
        let text = Value::from("Axolotl");
        let objects = || {
            let result = json!({"Quokka": {"Numbat": [12, "Axolotl"]}});
            trial(render, SHORT, &result).is_some_and(|text| {
                ["Quokka", "Numbat", "12", "Axolotl"]
                    .iter()
                    .all(|word| text.contains(word))
                    && !text.contains("'Quokka'")
            })
        };
        Self {
            short_ids: trial(render, "call_0", &text).is_none() && trial(render, SHORT, &text).is_some(),
            objects: objects(),
        }
    }

    /// The id of a call as this template accepts it; the same id always becomes the same one.
    pub(crate) fn call_id(self, id: &str) -> String {
        const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let accepted = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if accepted || !self.short_ids {
            return id.to_owned();
        }
        let hash = Sha256::digest(id);
        hash.iter()
            .take(9)
            .map(|byte| char::from(DIGITS[usize::from(*byte) % DIGITS.len()]))
            .collect()
    }
}

/// The tool of a call on trial.
pub(crate) const TOOL: &str = "get_weather";

/// The name and the value of its argument.
pub(crate) const ARGUMENT: (&str, &str) = ("city", "Oslo");

/// A call with this id and its result, rendered; `None` if the template refuses them.
pub(crate) fn trial(
    render: &impl Fn(Map<String, Value>) -> Option<String>,
    id: &str,
    result: &Value,
) -> Option<String> {
    let parameters =
        json!({"type": "object", "properties": {(ARGUMENT.0): {"type": "string"}}, "required": [ARGUMENT.0]});
    let variables = json!({
        "messages": [
            {"role": "user", "content": "How is it in Oslo?"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"type": "function", "id": id, "function": {"name": TOOL, "arguments": {(ARGUMENT.0): ARGUMENT.1}}},
            ]},
            {"role": "tool", "name": TOOL, "tool_call_id": id, "content": result},
        ],
        "tools": [{"type": "function", "function": {"name": TOOL, "description": "The weather.", "parameters": parameters}}],
        "documents": null,
        "add_generation_prompt": true,
    });
    let variables: Map<String, Value> = variables.as_object()?.clone();
    render(variables)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::template::Template;

    fn of(source: &str) -> ToolConventions {
        let template = Template::new(&json!(source), Map::new()).unwrap();
        ToolConventions::of(&|variables| template.render(variables).ok())
    }

    #[test]
    fn ids_are_shortened_for_templates_that_refuse_others() {
        let strict = of("{% for m in messages %}{% if m.role == 'tool' and m.tool_call_id | length != 9 %}{{ raise_exception('9') }}{% endif %}{{ m.content }}{% endfor %}");
        assert!(strict.short_ids);
        assert_eq!(strict.call_id("a1B2c3D4e"), "a1B2c3D4e");
        for id in ["call_0", "", "functions.get_weather:0", "a1B2c3D4_"] {
            let short = strict.call_id(id);
            assert!(
                short.len() == 9 && short.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                "{id}: {short}"
            );
            assert_eq!(short, strict.call_id(id));
        }
        assert_ne!(strict.call_id("call_0"), strict.call_id("call_1"));
        assert_eq!(
            of("{% for m in messages %}{{ m.content }}{% endfor %}").call_id("call_0"),
            "call_0"
        );
        assert!(!of("{{ raise_exception('no tools here') }}").short_ids);
    }

    #[test]
    fn objects_are_for_templates_that_print_them() {
        let each = |print: &str| {
            of(&format!(
                "{{% for m in messages %}}{{% if m.role == 'tool' %}}{print}{{% endif %}}{{% endfor %}}"
            ))
        };
        assert!(each("{{ m.content | tojson }}").objects);
        assert!(
            each("{% if m.content is mapping %}{% for k, v in m.content | items %}{{ k }}={{ v | tojson }}{% endfor %}{% endif %}").objects
        );
        assert!(!each("{{ m.content }}").objects, "Python's notation");
        assert!(
            !each("{% if m.content is string %}{{ m.content }}{% endif %}").objects,
            "nothing"
        );
        assert!(!each("{{ m.content | trim + 'x' }}").objects, "Python's notation");
        assert!(!each("{{ m.content.strip() }}").objects, "an error");
    }
}
