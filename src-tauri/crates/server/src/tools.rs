//! Tools as all surfaces offer them to a model, and which of them it may call.

use protocol::{Message, Request, Role};
use serde_json::{json, Map, Value};

use crate::fields::Fields;
use crate::refusal::Refusal;

type Result<T> = std::result::Result<T, Refusal>;

/// Which tools the model may call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ToolChoice {
    /// None: they are not shown to it.
    None,
    /// As it likes.
    #[default]
    Auto,
    /// At least one of them.
    Required,
    /// This one.
    Named(String),
}

/// What a request says of tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Tools {
    /// In the form of chat templates.
    pub(crate) declarations: Vec<Value>,
    pub(crate) choice: ToolChoice,
    /// Whether it may call several at once.
    pub(crate) parallel: bool,
}

impl Tools {
    /// Puts the tools into a request, and what the choice asks for at the end of its conversation, where no cached prompt changes:
    /// not every model can be held to a call, and those that are held to one choose better if they know.
    pub(crate) fn apply(&self, param: &str, request: &mut Request) -> Result<()> {
        let instruction = match &self.choice {
            ToolChoice::None => return Ok(()),
            ToolChoice::Auto => None,
            ToolChoice::Required if self.declarations.is_empty() => {
                return Err(Refusal::field(param, "a call is required, but there are no tools"));
            }
            ToolChoice::Required => Some("Answer with a call of one of the tools.".to_owned()),
            ToolChoice::Named(name) if !self.declarations.iter().any(|tool| tool["function"]["name"] == *name) => {
                return Err(Refusal::field(param, format!("there is no tool {name:?}")));
            }
            ToolChoice::Named(name) => Some(format!("Answer with a call of the tool {name}.")),
        };
        request.tools = match &self.choice {
            ToolChoice::Named(name) => {
                let named = self.declarations.iter().filter(|tool| tool["function"]["name"] == *name);
                named.cloned().collect()
            }
            _ => self.declarations.clone(),
        };
        request.call_required = instruction.is_some();
        request.messages.extend(instruction.map(|text| Message::text(Role::System, text)));
        Ok(())
    }
}

/// A tool in the form of chat templates, with every field that they read.
pub(crate) fn declaration(name: &str, description: Option<&str>, parameters: Option<Fields>) -> Value {
    let mut schema: Map<String, Value> = match parameters {
        Some(parameters) => parameters
            .names()
            // It says which dialect the schema is of, in forty tokens that no model reads.
            .filter(|name| *name != "$schema")
            .filter_map(|name| Some((name.to_owned(), parameters.get(name)?.clone())))
            .collect(),
        None => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    json!({"type": "function", "function": {"name": name, "description": description.unwrap_or_default(), "parameters": schema}})
}

/// The declarations of a list of OpenAI's tools. Types other than functions are run by OpenAI and skipped, because Codex always
/// sends some. `nested` is the form of chat completions, where the function stands in a field of its own.
pub(crate) fn openai(fields: &Fields, nested: bool) -> Result<Vec<Value>> {
    let mut declarations = Vec::new();
    for (index, tool) in fields.list("tools")?.unwrap_or_default().iter().enumerate() {
        let tool = fields.element("tools", index, tool)?;
        let kind = tool.text("type")?;
        if kind.is_some_and(|kind| kind != "function") {
            tracing::debug!("a tool that is no function was skipped");
            continue;
        }
        let function = match tool.object("function")? {
            Some(function) if nested => function,
            None if nested => return tool.refuse("function", "this field is required"),
            _ => tool,
        };
        let name = function.required_text("name")?;
        declarations.push(declaration(name, function.text("description")?, function.object("parameters")?));
    }
    Ok(declarations)
}

/// The choice of an OpenAI request; `nested` as in [`openai`].
pub(crate) fn openai_choice(fields: &Fields, nested: bool) -> Result<ToolChoice> {
    const WORDS: [&str; 3] = ["none", "auto", "required"];
    let schema = || json!({"anyOf": [{"enum": WORDS}, {"type": "object"}, {"type": "null"}]});
    match fields.get_as("tool_choice", schema) {
        None => Ok(ToolChoice::Auto),
        Some(Value::String(word)) => match word.as_str() {
            "none" => Ok(ToolChoice::None),
            "auto" => Ok(ToolChoice::Auto),
            "required" => Ok(ToolChoice::Required),
            other => fields.refuse("tool_choice", format!("{other:?} is none of {}", WORDS.join(", "))),
        },
        Some(_) => {
            let Some(choice) = fields.object("tool_choice")? else {
                return Ok(ToolChoice::Auto);
            };
            match choice.text("type")? {
                Some("function") => {
                    let function = if nested { choice.object("function")? } else { Some(choice.clone()) };
                    match function {
                        Some(function) => Ok(ToolChoice::Named(function.required_text("name")?.to_owned())),
                        None => choice.refuse("function", "this field is required"),
                    }
                }
                _ => choice.refuse("type", "only a function can be chosen"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::{FolderSource, Request};

    use super::*;

    fn request() -> Request {
        let folder = FolderSource {
            reference: "m".into(),
            path: "/m".into(),
            revision: None,
        };
        Request::new(folder, vec![Message::text(Role::User, "hi")])
    }

    fn tools(body: &Value) -> Result<Tools> {
        let fields = Fields::of(body, "")?;
        Ok(Tools {
            declarations: openai(&fields, true)?,
            choice: openai_choice(&fields, true)?,
            parallel: true,
        })
    }

    #[test]
    fn unknown_types_are_skipped_and_every_declaration_is_whole() {
        let body = json!({"tools": [
            {"type": "namespace", "name": "agents", "tools": []},
            {"type": "function", "function": {"name": "add", "strict": true, "parameters": {"$schema": "x", "type": "object"}}},
            {"type": "web_search"}]});
        let expected =
            json!({"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object", "properties": {}}}});
        assert_eq!(tools(&body).unwrap().declarations, [expected]);
        let nameless = json!({"tools": [{"type": "function", "function": {}}]});
        assert_eq!(tools(&nameless).unwrap_err().param.as_deref(), Some("tools[0].function.name"));
    }

    #[test]
    fn a_choice_hides_tools_or_asks_for_a_call() {
        let two = json!([{"type": "function", "function": {"name": "a"}}, {"type": "function", "function": {"name": "b"}}]);
        let applied = |choice: Value| {
            let mut request = request();
            tools(&json!({"tools": two, "tool_choice": choice}))
                .unwrap()
                .apply("tool_choice", &mut request)
                .map(|()| {
                    let names: Vec<_> = request
                        .tools
                        .iter()
                        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
                        .collect();
                    (names.join(" "), request.messages.len(), request.call_required)
                })
        };
        assert_eq!(applied(json!("none")), Ok((String::new(), 1, false)));
        assert_eq!(applied(json!("auto")), Ok(("a b".into(), 1, false)));
        assert_eq!(applied(json!("required")), Ok(("a b".into(), 2, true)));
        assert_eq!(
            applied(json!({"type": "function", "function": {"name": "b"}})),
            Ok(("b".into(), 2, true))
        );
        let unknown = applied(json!({"type": "function", "function": {"name": "c"}}));
        assert_eq!(unknown.unwrap_err().param.as_deref(), Some("tool_choice"));
        assert!(tools(&json!({"tool_choice": "some"})).is_err());
        let mut without = request();
        let required = tools(&json!({"tool_choice": "required"})).unwrap();
        assert!(required.apply("tool_choice", &mut without).is_err());
    }
}
