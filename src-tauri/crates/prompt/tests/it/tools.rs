//! Calls and results of tools in the chat templates of public packages. `PONDER_TEMPLATES` names the folder.
use std::fs;
use std::path::{Path, PathBuf};

use prompt::{RenderRequest, Template};
use protocol::{Content, Message, Role, ToolCall};
use serde_json::{json, Map, Value};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|ending| ending == "jinja"))
        .collect();
    found.sort();
    found
}

/// The public templates by name; `None` if there are none here.
fn templates() -> Option<Vec<(String, Template)>> {
    let Some(folder) = std::env::var_os("PONDER_TEMPLATES") else {
        println!("skipped: PONDER_TEMPLATES names no folder of templates; `./dev test` does");
        return None;
    };
    let folder = Path::new(&folder);
    let open = |path: PathBuf| {
        let name = path.strip_prefix(folder).unwrap().display().to_string();
        let tokens = ["bos_token", "eos_token", "unk_token", "pad_token"]
            .map(|name| (name.to_owned(), json!(format!("<{name}>"))));
        let template = Template::new(&json!(fs::read_to_string(&path).unwrap()), Map::from_iter(tokens)).ok()?;
        Some((name, template))
    };
    Some(files(folder).into_iter().filter_map(open).collect())
}

fn tools() -> Vec<Value> {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    vec![
        json!({"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": parameters}}),
    ]
}

/// A question, two calls one after the other, and their results.
fn conversation(ids: [&str; 2], results: [Content; 2]) -> Vec<Message> {
    let mut messages = vec![Message::text(Role::User, "How is it in Oslo and in Rome?")];
    for ((id, city), result) in ids.into_iter().zip(["Oslo", "Rome"]).zip(results) {
        let mut call = Message::text(Role::Assistant, "");
        call.tool_calls = vec![ToolCall {
            id: id.into(),
            name: "get_weather".into(),
            arguments: json!({"city": city}),
        }];
        messages.push(call);
        messages.push(Message {
            content: vec![result],
            name: Some("get_weather".into()),
            tool_call_id: Some(id.into()),
            ..Message::text(Role::Tool, "")
        });
    }
    messages
}

fn text(text: &str) -> Content {
    Content::Text { text: text.into() }
}

fn data(word: &str) -> Content {
    Content::Data {
        data: json!({"Quokka": {"Numbat": [12, word]}}),
    }
}

fn render(template: &Template, messages: &[Message]) -> prompt::Result<String> {
    let tools = tools();
    let request = RenderRequest {
        messages,
        tools: &tools,
        thinking: None,
        add_generation_prompt: true,
        images: &[],
    };
    template.render(template.variables(&request))
}

#[test]
fn mistral_templates_accept_every_call_id() {
    let Some(templates) = templates() else { return };
    let strict: Vec<_> = templates
        .iter()
        .filter(|(_, template)| template.source().contains("length != 9"))
        .collect();
    assert_eq!(
        strict.len(),
        6,
        "{:?}",
        strict.iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    let own = [(); 2].map(|()| ToolCall::new(String::new(), Value::Null).id);
    for (name, template) in strict {
        for ids in [
            [&own[0], &own[1]].map(String::as_str),
            ["call_0", "call_1"],
            ["functions.get_weather:0", "chatcmpl-tool-1"],
        ] {
            let rendered = render(template, &conversation(ids, [text("Axolotl"), text("Wombat")]))
                .unwrap_or_else(|error| panic!("{name}, {ids:?}: {error}"));
            for word in ["Axolotl", "Wombat"] {
                assert!(rendered.contains(word), "{name}, {ids:?}: {rendered}");
            }
        }
    }
}

/// Templates that know tools, and those of them that show all of a result that is a text and of one that is an object.
/// The others fail at the call itself: they expect its arguments as text, or variables that only their own programs
/// pass.
const SHOWN: [usize; 3] = [156, 145, 145];

#[test]
fn results_of_tools_are_shown_to_the_model() {
    let Some(templates) = templates() else { return };
    let ids = ["a1B2c3D4e", "b1B2c3D4e"];
    let shows = |template: &Template, results: [Content; 2], words: &[&str]| {
        render(template, &conversation(ids, results))
            .is_ok_and(|text| words.iter().all(|word| text.contains(word)) && !text.contains("'Quokka'"))
    };
    let (mut found, mut missed) = ([0; 3], Vec::new());
    for (name, template) in &templates {
        // A template knows tools if it writes their calls or their results.
        let knows = ["tool_calls", "'tool'", "\"tool\""]
            .iter()
            .any(|word| template.source().contains(word));
        if !knows {
            continue;
        }
        let as_text = shows(template, [text("Axolotl"), text("Wombat")], &["Axolotl", "Wombat"]);
        let as_data = shows(
            template,
            [data("Axolotl"), data("Wombat")],
            &["Quokka", "Numbat", "12", "Axolotl", "Wombat"],
        );
        found[0] += 1;
        found[1] += usize::from(as_text);
        found[2] += usize::from(as_data);
        if !as_text || !as_data {
            let error = render(template, &conversation(ids, [data("Axolotl"), data("Wombat")])).err();
            missed.push(format!("{name}: text {as_text}, object {as_data}, {error:?}"));
        }
    }
    println!(
        "report: templates that know tools: {}; that show a result as text: {}, as an object: {}",
        found[0], found[1], found[2]
    );
    assert_eq!(found, SHOWN, "{missed:#?}");
}
