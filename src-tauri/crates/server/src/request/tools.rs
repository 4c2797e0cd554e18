//! The tools that a request offers, and the model's choice among them.

use protocol::{Message, Request, Role};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{json, Map, Value};

use crate::http::error_body::Refusal;
use crate::request::fields::Fields;
use crate::request::values::List;

type Result<T> = std::result::Result<T, Refusal>;

/// The name of the tool that searches the user's documents, on responses, and of its function for the model.
pub(crate) const FILE_SEARCH: &str = "file_search";

/// The tools that the model may call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ToolChoice {
    /// None: they are not shown to it.
    None,
    /// Any or none of them.
    #[default]
    Auto,
    /// At least one of them.
    Required,
    /// This one.
    Named(String),
    /// Only these are shown, and one of them has to be called if `required`.
    Allowed {
        /// Their names.
        names: Vec<String>,
        /// True if a call is required.
        required: bool,
    },
}

/// The tools of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Tools {
    /// In the form of chat templates.
    pub(crate) declarations: Vec<Value>,
    pub(crate) choice: ToolChoice,
    /// True if it may call several at once.
    pub(crate) parallel: bool,
}

impl Tools {
    /// Adds the tools to a request, and an instruction for a required call to the end of its conversation, where no
    /// cached prefix changes: not every model can be forced to call, and a forced one chooses better if it knows.
    pub(crate) fn apply(&self, param: &str, request: &mut Request) -> Result<()> {
        let is_declared = |name: &String| self.declarations.iter().any(|tool| tool["function"]["name"] == **name);
        let undeclared = |name: &String| Err(Refusal::field(param, format!("there is no tool {name:?}")));
        const ANY: &str = "Answer with a call of one of the tools.";
        let instruction = match &self.choice {
            ToolChoice::None => return Ok(()),
            ToolChoice::Auto => None,
            ToolChoice::Required if self.declarations.is_empty() => {
                return Err(Refusal::field(param, "a call is required, but there are no tools"));
            }
            ToolChoice::Required => Some(ANY.to_owned()),
            ToolChoice::Named(name) if !is_declared(name) => return undeclared(name),
            ToolChoice::Named(name) => Some(format!("Answer with a call of the tool {name}.")),
            ToolChoice::Allowed { names, required } => match names.iter().find(|name| !is_declared(name)) {
                Some(name) => return undeclared(name),
                None if *required && names.is_empty() => {
                    return Err(Refusal::field(param, "a call is required, but no function is allowed"));
                }
                None => required.then(|| ANY.to_owned()),
            },
        };
        request.tools.clone_from(&self.declarations);
        let shown: Option<&[String]> = match &self.choice {
            ToolChoice::Named(name) => Some(std::slice::from_ref(name)),
            ToolChoice::Allowed { names, .. } => Some(names),
            _ => None,
        };
        if let Some(names) = shown {
            request
                .tools
                .retain(|tool| names.iter().any(|name| tool["function"]["name"] == **name));
        }
        request.call_required = instruction.is_some();
        let instruction = instruction.map(|text| Message::text(Role::System, text));
        request.messages.extend(instruction);
        Ok(())
    }
}

/// A tool in the form of chat templates, with every field that they read.
pub(crate) fn declaration(name: &str, description: Option<String>, parameters: Option<Map<String, Value>>) -> Value {
    let mut schema = parameters.unwrap_or_default();
    // `$schema` names the dialect, in forty tokens that no model reads.
    schema.retain(|name, value| name != "$schema" && !value.is_null());
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    json!({"type": "function", "function": {"name": name, "description": description.unwrap_or_default(), "parameters": schema}})
}

/// The tools of a request to OpenAI's surfaces.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ToolFields {
    tools: Option<List<Tool>>,
    #[serde(default)]
    #[schemars(schema_with = "choice_schema")]
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
}

/// A tool: chat completions have its function in a field of its own, responses next to the type.
#[derive(Debug, Deserialize, JsonSchema)]
struct Tool {
    #[serde(rename = "type")]
    _type: Option<String>,
    function: Option<Function>,
    name: Option<String>,
    description: Option<String>,
    parameters: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Function {
    name: Option<String>,
    description: Option<String>,
    parameters: Option<Map<String, Value>>,
}

impl Tool {
    /// The function, and the place of its name.
    fn function(self, at: &Fields, nested: bool) -> Result<(&'static str, Function)> {
        if nested {
            return Ok(("function.name", at.require("function", self.function)?));
        }
        let (name, description, parameters) = (self.name, self.description, self.parameters);
        Ok((
            "name",
            Function {
                name,
                description,
                parameters,
            },
        ))
    }
}

/// The type of an element, read before the rest: the other fields of a type that is skipped may hold anything.
#[derive(Debug, Deserialize)]
pub(crate) struct Kind {
    pub(crate) r#type: Option<String>,
}

const CHOICES: [&str; 3] = ["none", "auto", "required"];

fn choice_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"enum": CHOICES}, {"type": "object"}, {"type": "null"}]})
}

impl ToolFields {
    /// The tools that they offer; `nested` is the form of chat completions.
    ///
    /// # Errors
    /// If a function has no name, or the choice is none of those known.
    pub(crate) fn tools(&self, fields: &Fields, nested: bool) -> Result<Tools> {
        Ok(Tools {
            declarations: self.declarations(fields, nested)?,
            choice: self.choice(fields, nested)?,
            parallel: self.parallel_tool_calls.unwrap_or(true),
        })
    }

    /// Types other than functions are run by OpenAI and skipped, because Codex always sends some.
    fn declarations(&self, fields: &Fields, nested: bool) -> Result<Vec<Value>> {
        let mut declarations = Vec::new();
        let tools = self.tools.as_ref().map(|tools| tools.elements(fields, "tools"));
        for at in tools.transpose()?.unwrap_or_default() {
            if at.read::<Kind>()?.r#type.is_some_and(|kind| kind != "function") {
                tracing::debug!("a tool that is no function was skipped");
                continue;
            }
            let tool: Tool = at.read()?;
            let (place, function) = tool.function(&at, nested)?;
            let name = at.require(place, function.name)?;
            declarations.push(declaration(&name, function.description, function.parameters));
        }
        Ok(declarations)
    }

    fn choice(&self, fields: &Fields, nested: bool) -> Result<ToolChoice> {
        let choice = match &self.tool_choice {
            None => return Ok(ToolChoice::Auto),
            Some(Value::String(word)) => {
                return match word.as_str() {
                    "none" => Ok(ToolChoice::None),
                    "auto" => Ok(ToolChoice::Auto),
                    "required" => Ok(ToolChoice::Required),
                    other => fields.refuse("tool_choice", format!("{other:?} is none of {}", CHOICES.join(", "))),
                };
            }
            Some(choice) => Fields::of(choice, fields.path("tool_choice"))?,
        };
        match choice.read::<Kind>()?.r#type.as_deref() {
            Some("function") => {}
            Some(FILE_SEARCH) if !nested => return Ok(ToolChoice::Named(FILE_SEARCH.to_owned())),
            Some("allowed_tools") => return allowed_tools(&choice, nested),
            _ => {
                return choice.refuse(
                    "type",
                    match nested {
                        true => "only a function can be chosen, or allowed_tools",
                        false => "only a function can be chosen, file_search or allowed_tools",
                    },
                )
            }
        }
        let chosen: Tool = choice.read()?;
        let (place, function) = chosen.function(&choice, nested)?;
        Ok(ToolChoice::Named(choice.require(place, function.name)?))
    }
}

/// A choice among some of the tools, which OpenAI has so that the prompt can stay the same. Those that OpenAI runs are
/// skipped, as their declarations are.
fn allowed_tools(choice: &Fields, nested: bool) -> Result<ToolChoice> {
    #[derive(Deserialize)]
    struct Nested {
        allowed_tools: Option<Value>,
    }
    #[derive(Deserialize)]
    struct Allowed {
        mode: Option<String>,
        tools: Option<List<Tool>>,
    }
    let inner = match nested {
        true => Some(choice.require("allowed_tools", choice.read::<Nested>()?.allowed_tools)?),
        false => None,
    };
    let place = choice.path("allowed_tools");
    let fields = inner
        .as_ref()
        .map_or_else(|| Ok(choice.clone()), |inner| Fields::of(inner, place))?;
    let allowed: Allowed = fields.read()?;
    let required = match allowed.mode.as_deref() {
        None | Some("auto") => false,
        Some("required") => true,
        Some(other) => return fields.refuse("mode", format!("{other:?} is none of auto, required")),
    };
    let mut names = Vec::new();
    for at in fields.require("tools", allowed.tools)?.elements(&fields, "tools")? {
        match at.read::<Kind>()?.r#type.as_deref() {
            None | Some("function") => {}
            Some(FILE_SEARCH) if !nested => {
                names.push(FILE_SEARCH.to_owned());
                continue;
            }
            Some(_) => continue,
        }
        let (place, function) = at.read::<Tool>()?.function(&at, nested)?;
        names.push(at.require(place, function.name)?);
    }
    Ok(ToolChoice::Allowed { names, required })
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
            adapter: None,
        };
        Request::new(folder, vec![Message::text(Role::User, "hi")])
    }

    fn tools(body: &Value) -> Result<Tools> {
        let fields = Fields::of(body, "")?;
        fields.read::<ToolFields>()?.tools(&fields, true)
    }

    #[test]
    fn unknown_types_are_skipped_and_every_declaration_is_whole() {
        let body = json!({"tools": [
            {"type": "namespace", "name": "agents", "tools": []},
            {"type": "function", "function": {"name": "add", "strict": true, "parameters": {"$schema": "x", "type": "object"}}},
            {"type": "web_search"}]});
        let expected = json!({"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object", "properties": {}}}});
        assert_eq!(tools(&body).unwrap().declarations, [expected]);
        let nameless = json!({"tools": [{"type": "function", "function": {}}]});
        assert_eq!(
            tools(&nameless).unwrap_err().param.as_deref(),
            Some("tools[0].function.name")
        );
    }

    #[test]
    fn a_choice_hides_tools_or_asks_for_a_call() {
        let two =
            json!([{"type": "function", "function": {"name": "a"}}, {"type": "function", "function": {"name": "b"}}]);
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
        let allowed = |mode: &str, names: &[&str]| {
            let tools: Vec<Value> = names
                .iter()
                .map(|name| json!({"type": "function", "function": {"name": name}}))
                .collect();
            applied(json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}))
        };
        assert_eq!(allowed("auto", &["b"]), Ok(("b".into(), 1, false)));
        assert_eq!(allowed("required", &["a", "b"]), Ok(("a b".into(), 2, true)));
        assert_eq!(
            allowed("auto", &["c"]).unwrap_err().param.as_deref(),
            Some("tool_choice")
        );
        let wrong = json!({"type": "allowed_tools", "allowed_tools": {"mode": "some", "tools": []}});
        let wrong = tools(&json!({"tools": two, "tool_choice": wrong})).unwrap_err();
        assert_eq!(wrong.param.as_deref(), Some("tool_choice.allowed_tools.mode"));
        let flat = json!({"tools": [{"type": "function", "name": "a"}], "tool_choice": {"type": "allowed_tools", "mode": "auto",
            "tools": [{"type": "function", "name": "a"}, {"type": "mcp", "server_label": "s"}]}});
        let fields = Fields::of(&flat, "").unwrap();
        let flat = fields.read::<ToolFields>().unwrap().tools(&fields, false).unwrap();
        let expected = ToolChoice::Allowed {
            names: vec!["a".into()],
            required: false,
        };
        assert_eq!(flat.choice, expected);
        let unknown = applied(json!({"type": "function", "function": {"name": "c"}}));
        assert_eq!(unknown.unwrap_err().param.as_deref(), Some("tool_choice"));
        assert!(tools(&json!({"tool_choice": "some"})).is_err());
        let mut without = request();
        let required = tools(&json!({"tool_choice": "required"})).unwrap();
        assert!(required.apply("tool_choice", &mut without).is_err());
    }
}
