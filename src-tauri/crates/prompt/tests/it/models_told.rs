//! Models whose templates are in no public package: how their calls and thoughts are told from what their tokenizers
//! and templates know.

use crate::common::{byte_speaker, written};
use prompt::{Event, Prompt};
use protocol::ThinkingControl;
use serde_json::{json, Value};

/// A model, with the tokens that it has of its own, and its template in the fewest words that have the same marks.
struct Model {
    name: &'static str,
    tokens: &'static [&'static str],
    template: &'static str,
    control: ThinkingControl,
    /// The end of the prompt if it opens a thought.
    opened: &'static str,
    closing: Option<&'static str>,
    wrote: &'static [&'static str],
}

const CHATML: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

const XLAM: &str =
    "{% if tools %}You have access to a set of tools. When using tools, make calls in a single JSON array:\n{{ tools | tojson }}\n{% endif %}\
    {% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content }}<|eot_id|>{% endfor %}\
    {% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}";

const DOTS: &str = "{% if tools %}{{ tools | tojson }}\nCall a tool so:\n<dots_function_call>\n<invoke name=\"NAME\">\n\
    <parameter name=\"KEY\">VALUE</parameter>\n</invoke>\n</dots_function_call>\n{% endif %}\
    {% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}\
    <think>{{ m.reasoning_content }}</think>{% endif %}\
    {{ m.content }}<|end|>{% endfor %}\
    {% if add_generation_prompt %}<|assistant|>{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}";

const PHI_4_MINI: &str = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\
    {% if m.role == 'system' and 'tools' in m and m.tools is not none %}<|tool|>{{ m.tools }}<|/tool|>{% endif %}<|end|>{% endfor %}\
    {% if add_generation_prompt %}<|assistant|>{% endif %}";

const MODELS: &[Model] = &[
    Model {
        name: "InternLM 2",
        tokens: &["<|im_start|>", "<|im_end|>", "<|action_start|>", "<|action_end|>", "<|interpreter|>", "<|plugin|>"],
        template: CHATML,
        control: ThinkingControl::Never,
        opened: "",
        closing: None,
        wrote: &["Sure.<|action_start|><|plugin|>\n{\"name\": \"f\", \"parameters\": {\"a\": 1}}<|action_end|>"],
    },
    Model {
        name: "xLAM",
        tokens: &["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        template: XLAM,
        control: ThinkingControl::Never,
        opened: "",
        closing: None,
        wrote: &["[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]"],
    },
    Model {
        name: "dots",
        tokens: &["<|assistant|>", "<|end|>"],
        template: DOTS,
        control: ThinkingControl::Switch { default_on: true },
        opened: "",
        closing: Some("</think>"),
        wrote: &["Sure.<dots_function_call>\n<invoke name=\"f\">\n<parameter name=\"a\">1</parameter>\n</invoke>\n</dots_function_call>"],
    },
    Model {
        name: "Phi 4 mini",
        tokens: &["<|assistant|>", "<|end|>", "<|tool|>", "<|/tool|>", "<|tool_call|>", "<|/tool_call|>"],
        template: PHI_4_MINI,
        control: ThinkingControl::Never,
        opened: "",
        closing: None,
        wrote: &[
            "functools[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]",
            "Sure.<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]<|/tool_call|>",
        ],
    },
];

/// The tool of all answers; a schema tells what `1` is if the format does not.
fn tools() -> Vec<Value> {
    vec![
        json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}),
    ]
}

#[test]
fn models_without_a_public_template_are_told() {
    for model in MODELS {
        let name = model.name;
        let (processor, library) = byte_speaker(model.tokens, model.template);
        assert_eq!(processor.thinking_control(), model.control, "{name}");
        let markers = processor.thought_markers();
        assert_eq!(markers.is_some(), model.control != ThinkingControl::Never, "{name}");
        assert_eq!(
            markers.is_some_and(|markers| markers.opened_by_prompt),
            !model.opened.is_empty(),
            "{name}"
        );
        let closing = processor.end_of_thinking().map(|terminator| terminator.text());
        assert_eq!(closing, model.closing, "{name}");

        let ids = |text: &str| library.encode_fast(text, false).unwrap().get_ids().to_vec();
        let prompt = Prompt {
            text: model.opened.to_owned(),
            ids: ids(model.opened),
            ..Prompt::default()
        };
        for wrote in model.wrote {
            // A thought and what closes it come before what the model says and calls, if it thinks.
            let thought = match (model.closing, model.opened) {
                (Some(closing), "") => format!("<think>T{closing}"),
                (Some(closing), _) => format!("T{closing}"),
                (None, _) => String::new(),
            };
            let mut parser = processor.parser(&prompt, true, &[]).with_tools(&tools());
            let mut events: Vec<Event> = ids(&format!("{thought}{wrote}"))
                .iter()
                .flat_map(|id| parser.push_event(*id))
                .collect();
            events.extend(parser.finish_events());
            let said = wrote.starts_with("Sure.").then_some("A:Sure.");
            let expected: Vec<&str> = model
                .closing
                .map(|_| "T:T")
                .into_iter()
                .chain(said)
                .chain(["C:f{\"a\":1}"])
                .collect();
            assert_eq!(written(&events), expected, "{name}: {wrote:?}");
        }
    }
}
