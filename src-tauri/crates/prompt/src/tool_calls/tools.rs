//! The tools of a request: their names and the schemas of their arguments.

use std::collections::HashMap;

use serde_json::Value;

use super::schema::typed;

/// The tools a model was offered. Without any list every name may be a tool's.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tools {
    properties: Option<HashMap<String, Value>>,
}

impl Tools {
    /// From the OpenAI form `{"type":"function","function":{"name",…,"parameters":{"properties":{…}}}}`, or what is in
    /// `function`.
    pub(crate) fn new(tools: &[Value]) -> Self {
        let named = tools.iter().filter_map(|tool| {
            let function = tool.get("function").unwrap_or(tool);
            let name = function.get("name")?.as_str()?;
            let properties = function.pointer("/parameters/properties").cloned().unwrap_or_default();
            Some((name.to_owned(), properties))
        });
        Self {
            properties: Some(named.collect()),
        }
    }

    /// True if tools were offered.
    pub(crate) fn any(&self) -> bool {
        self.properties.as_ref().is_some_and(|tools| !tools.is_empty())
    }

    /// True if a tool of this name was offered.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.properties.as_ref().is_some_and(|tools| tools.contains_key(name))
    }

    /// True if there may be a tool of this name.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        self.properties.is_none() || self.has(name)
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
        self.properties.as_ref()?.get(tool)?.get(argument)
    }

    /// The value of an argument written as plain text, see [`typed`].
    pub(crate) fn value(&self, tool: &str, argument: &str, text: &str) -> Value {
        typed(self.schema(tool, argument), text)
    }
}
