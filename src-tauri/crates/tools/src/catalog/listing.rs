//! The answer of a server to `tools/list`, read so that one bad tool hides no other.

use api::CallEffects;
use std::collections::HashSet;

use serde_json::{json, Value};

use crate::catalog::Tool;

/// Tools of a server at most.
const MOST_TOOLS: usize = 512;

/// Bytes of a name at most.
const LONGEST_NAME: usize = 256;

/// Bytes of a description and of a schema at most: together a tool stays below the size of an answer of MCP.
const LONGEST_TEXT: usize = 64 << 10;

/// The list of a server.
#[derive(Debug, Default, PartialEq)]
pub struct Listing {
    /// The tools that can be called.
    pub tools: Vec<Tool>,
    /// Why others cannot, a sentence each.
    pub problems: Vec<String>,
}

/// The tools of one or several pages of answers.
pub fn tools_of(pages: &[Value]) -> Listing {
    let mut listing = Listing::default();
    let mut names = HashSet::new();
    for page in pages {
        let Some(tools) = page.get("tools").and_then(Value::as_array) else {
            listing
                .problems
                .push("The server answered without a list of tools.".to_owned());
            continue;
        };
        for (index, tool) in tools.iter().enumerate() {
            if listing.tools.len() == MOST_TOOLS {
                listing
                    .problems
                    .push(format!("Tools after the first {MOST_TOOLS} were left out."));
                return listing;
            }
            match read(tool, index) {
                Ok(tool) if !names.insert(tool.name.clone()) => {
                    let problem = format!("A second tool named “{}” was left out.", tool.name);
                    listing.problems.push(problem);
                }
                Ok(tool) => listing.tools.push(tool),
                Err(problem) => listing.problems.push(problem),
            }
        }
    }
    listing
}

fn read(tool: &Value, index: usize) -> Result<Tool, String> {
    let text = |name: &str| tool.get(name).and_then(Value::as_str).map(str::to_owned);
    let name = text("name")
        .filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME)
        .ok_or_else(|| format!("Tool {} has no name of at most {LONGEST_NAME} bytes.", index + 1))?;
    let description = text("description").unwrap_or_default();
    let parameters = match tool.get("inputSchema") {
        // A tool without arguments, as many servers list it.
        None | Some(Value::Null) => json!({ "type": "object", "properties": {} }),
        Some(schema) if schema.is_object() => schema.clone(),
        Some(_) => return Err(format!("The tool “{name}” has a schema that is not an object.")),
    };
    if description.len() > LONGEST_TEXT || parameters.to_string().len() > LONGEST_TEXT {
        return Err(format!(
            "The tool “{name}” describes itself in more than {} kB.",
            LONGEST_TEXT >> 10
        ));
    }
    let annotations = tool.get("annotations");
    let hint = |name: &str, default: bool| {
        let said = annotations.and_then(|annotations| annotations.get(name));
        said.and_then(Value::as_bool).unwrap_or(default)
    };
    let unknown = CallEffects::UNKNOWN;
    let title = text("title").or_else(|| {
        let title = annotations.and_then(|annotations| annotations.get("title"));
        title.and_then(Value::as_str).map(str::to_owned)
    });
    Ok(Tool {
        title: title.filter(|title| !title.is_empty() && title.len() <= LONGEST_NAME),
        effects: CallEffects {
            read_only: hint("readOnlyHint", unknown.read_only),
            destructive: hint("destructiveHint", unknown.destructive),
            open_world: hint("openWorldHint", unknown.open_world),
        },
        name,
        description,
        parameters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_tool_hides_no_other() {
        let page = json!({ "tools": [
            { "name": "plain", "description": "Does.", "inputSchema": { "type": "object" } },
            { "description": "nameless", "inputSchema": {} },
            { "name": "no_schema" },
            { "name": "bad_schema", "inputSchema": "object" },
            { "name": 7 },
            "text",
            { "name": "plain", "inputSchema": {} },
            { "name": "long", "description": "x".repeat(LONGEST_TEXT + 1) },
            { "name": "odd", "description": 3, "annotations": { "readOnlyHint": true, "openWorldHint": "no" }, "title": "" },
        ] });
        let Listing { tools, problems } = tools_of(&[page, json!({ "oops": 1 })]);
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["plain", "no_schema", "odd"]);
        assert_eq!(problems.len(), 7, "{problems:#?}");
        assert_eq!(tools[1].effects, CallEffects::UNKNOWN);
        assert!(tools[2].effects.read_only && tools[2].effects.open_world && tools[2].effects.has_side_effects());
        assert_eq!((tools[2].title.as_deref(), tools[2].description.as_str()), (None, ""));
    }

    #[test]
    fn a_flood_of_tools_has_an_end() {
        let tools: Vec<Value> = (0..MOST_TOOLS + 9)
            .map(|index| json!({ "name": format!("tool{index}") }))
            .collect();
        let listing = tools_of(&[json!({ "tools": tools })]);
        assert_eq!((listing.tools.len(), listing.problems.len()), (MOST_TOOLS, 1));
    }
}
