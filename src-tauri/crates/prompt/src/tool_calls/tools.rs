//! The tools of a request: their names and the schemas of their arguments.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::schema::typed;

/// The tools a model was offered. Without any list every name may be a tool's.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tools {
    parameters: Option<HashMap<String, Value>>,
}

impl Tools {
    /// From the OpenAI form `{"type":"function","function":{"name",…,"parameters":{"properties":{…}}}}`, or what is in
    /// `function`.
    pub(crate) fn new(tools: &[Value]) -> Self {
        let named = tools.iter().filter_map(|tool| {
            let function = tool.get("function").unwrap_or(tool);
            let name = function.get("name")?.as_str()?;
            let parameters = function.get("parameters").cloned().unwrap_or_default();
            Some((name.to_owned(), parameters))
        });
        Self {
            parameters: Some(named.collect()),
        }
    }

    /// True if tools were offered.
    pub(crate) fn any(&self) -> bool {
        self.parameters.as_ref().is_some_and(|tools| !tools.is_empty())
    }

    /// True if a tool of this name was offered.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.parameters.as_ref().is_some_and(|tools| tools.contains_key(name))
    }

    /// True if there may be a tool of this name.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        self.parameters.is_none() || self.has(name)
    }

    /// The name under which a tool was offered: Muse doubles one that has no namespace.
    pub(crate) fn offered<'a>(&self, name: &'a str) -> &'a str {
        match name.split_once('.') {
            Some((space, same)) if space == same && !self.has(name) && self.has(same) => same,
            _ => name,
        }
    }

    /// The schema of an argument, if there is one.
    pub(crate) fn schema(&self, tool: &str, argument: &str) -> Option<&Value> {
        self.parameters.as_ref()?.get(tool)?.get("properties")?.get(argument)
    }

    /// True if these are all the arguments that a tool needs, as far as its schema says.
    pub(crate) fn suffice(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        let parameters = self.parameters.as_ref().and_then(|tools| tools.get(tool));
        let required = parameters.and_then(|parameters| parameters.get("required")?.as_array());
        let mut names = required.into_iter().flatten().filter_map(Value::as_str);
        names.all(|name| arguments.contains_key(name))
    }

    /// The value of an argument written as plain text, see [`typed`].
    pub(crate) fn value(&self, tool: &str, argument: &str, text: &str) -> Value {
        typed(self.schema(tool, argument), text)
    }
}
