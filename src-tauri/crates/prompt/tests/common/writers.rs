//! How each format writes calls: what the templates of its models do, as far as one is public.

use serde_json::{Map, Value};

/// A call: the tool and its arguments.
pub type Call = (String, Map<String, Value>);

/// Formats whose texts cannot escape what ends them, so that two different lists of calls may be written in the same
/// characters.
pub const AMBIGUOUS: &[&str] = &[
    "deepseek-dsml",
    "dots",
    "function-gemma",
    "gemma4",
    "glm",
    "hunyuan-3",
    "kimi-k3",
    "longcat",
    "minicpm",
    "minimax",
    "minimax-m3",
    "muse",
    "qwen-coder",
    "seed",
];

/// Calls as a model of this format writes them; `None` if it has no calls.
pub fn write(format: &str, calls: &[Call]) -> Option<String> {
    let each = |one: &dyn Fn(&Call) -> String| Some(calls.iter().map(one).collect());
    let wrapped = |open: &str, close: &str, body: &dyn Fn(&Call) -> String| {
        let one = |call: &Call| format!("{open}{}{close}", body(call));
        Some(calls.iter().map(one).collect())
    };
    match format {
        "apertus" => list("<|tools_prefix|>", "<|tools_suffix|>", calls, &|(name, arguments)| {
            json_text(&serde_json::json!({ name: arguments }))
        }),
        "apriel" | "hunyuan" | "thinking" => list("<tool_calls>", "</tool_calls>", calls, &hermes),
        "cohere" => list("<|START_ACTION|>", "<|END_ACTION|>", calls, &|(name, arguments)| {
            format!(
                "{{\"tool_call_id\": \"0\", \"tool_name\": {}, \"parameters\": {}}}",
                json_text(&name.as_str().into()),
                object(arguments)
            )
        }),
        "command-r" => list("Action:\n```json\n", "\n```", calls, &|(name, arguments)| {
            format!(
                "{{\"tool_name\": {}, \"parameters\": {}}}",
                json_text(&name.as_str().into()),
                object(arguments)
            )
        }),
        "deepseek" => {
            let inner: String = calls
                .iter()
                .map(|(name, arguments)| {
                    format!(
                        "<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
                        object(arguments)
                    )
                })
                .collect();
            Some(format!("<｜tool▁calls▁begin｜>{inner}<｜tool▁calls▁end｜>"))
        }
        "deepseek-dsml" => {
            let inner: String = calls.iter().map(dsml).collect();
            Some(format!("<｜DSML｜function_calls>\n{inner}</｜DSML｜function_calls>"))
        }
        "dots" => {
            let inner: String = calls.iter().map(|call| invoke(call, "")).collect();
            Some(format!("<dots_function_call>\n{inner}</dots_function_call>"))
        }
        "functionary" => {
            let each: Vec<String> = calls
                .iter()
                .map(|(name, arguments)| format!("{name}\n{}", object(arguments)))
                .collect();
            Some(each.join(">>>"))
        }
        "functools" => list("functools", "", calls, &hermes),
        "function-gemma" => wrapped("<start_function_call>", "<end_function_call>", &|call| {
            gemma(call, "<escape>")
        }),
        "gemma4" => wrapped("<|tool_call>", "<tool_call|>", &|call| gemma(call, "<|\"|>")),
        "gigachat" => wrapped("function call<|role_sep|>\n", "<|message_sep|>\n\n", &hermes),
        "glm" => each(&|call| format!("\n<tool_call>{}\n</tool_call>", pairs(call, "", "\n", ">"))),
        "granite-20b" => wrapped("<function_call> ", "\n", &hermes),
        "granite" | "granite-3.2" => list("<|tool_call|>", "", calls, &hermes),
        "harmony" => each(&|(name, arguments)| {
            format!(
                "<|start|>assistant<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{}<|call|>",
                object(arguments)
            )
        }),
        "hunyuan-3" => {
            let one = |call: &Call| {
                format!(
                    "<tool_call:opensource>{}\n</tool_call:opensource>\n",
                    pairs(call, "", "<tool_sep:opensource>\n", ":opensource>")
                )
            };
            let inner: String = calls.iter().map(one).collect();
            Some(format!("<tool_calls:opensource>\n{inner}</tool_calls:opensource>"))
        }
        "internlm2" => wrapped("<|action_start|><|plugin|>\n", "<|action_end|>\n", &hermes),
        "k2-horizon" => {
            let one = |call: &Call| format!("<ifm|tool_call>{}</ifm|tool_call>\n", hermes(call));
            let inner: String = calls.iter().map(one).collect();
            Some(format!("<ifm|tool_calls>\n{inner}</ifm|tool_calls>"))
        }
        "kimi-k2" => {
            let one = |(name, arguments): &Call| {
                format!(
                    "<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
                    object(arguments)
                )
            };
            let inner: String = calls.iter().map(one).collect();
            Some(format!("<|tool_calls_section_begin|>{inner}<|tool_calls_section_end|>"))
        }
        "kimi-k3" => {
            let inner: String = calls.iter().map(kimi_k3).collect();
            Some(format!(
                "<|open|>tools<|sep|>{inner}<|close|>tools<|sep|><|close|>message<|sep|>"
            ))
        }
        "kimi-vl" => None,
        "lfm2" => list("<|tool_call_start|>", "<|tool_call_end|>", calls, &pythonic),
        "llama3" => {
            let each: Vec<String> = calls
                .iter()
                .map(|(name, arguments)| {
                    format!(
                        "{{\"name\": {}, \"parameters\": {}}}",
                        json_text(&name.as_str().into()),
                        object(arguments)
                    )
                })
                .collect();
            Some(each.join("; "))
        }
        "llama4" => list("", "", calls, &pythonic),
        "longcat" => each(&|call| {
            format!(
                "<longcat_tool_call>{}\n</longcat_tool_call>\n",
                pairs(call, "longcat_", "\n", ">")
            )
        }),
        "minicpm" => each(&minicpm),
        "minimax" => {
            let inner: String = calls.iter().map(|call| invoke(call, "")).collect();
            Some(format!("\n<minimax:tool_call>\n{inner}</minimax:tool_call>"))
        }
        "minimax-m3" => {
            let inner: String = calls
                .iter()
                .map(|(name, arguments)| {
                    format!(
                        "{NS}<invoke name=\"{name}\">{}{NS}</invoke>\n",
                        namespaced(&Value::Object(arguments.clone()))
                    )
                })
                .collect();
            Some(format!("{NS}<tool_call>\n{inner}{NS}</tool_call>"))
        }
        "mistral" => wrapped("[TOOL_CALLS]", "", &|(name, arguments)| {
            format!("{name}[ARGS]{}", object(arguments))
        }),
        "muse" => each(&|call| {
            format!(
                "<|start|>assistant to={}<|message|><atem:function_calls>\n{}</atem:function_calls><|eom|>",
                call.0,
                invoke(call, "atem:")
            )
        }),
        "nemotron" => list("<TOOLCALL>", "</TOOLCALL>", calls, &hermes),
        "olmo3" => {
            let each: Vec<String> = calls.iter().map(pythonic).collect();
            Some(format!("<function_calls>\n{}\n</function_calls>", each.join("\n")))
        }
        "qwen" => each(&|call| format!("<tool_call>\n{}\n</tool_call>\n", hermes(call))),
        "qwen-coder" => each(&|call| format!("\n<tool_call>\n{}</tool_call>", function(call, "\n"))),
        "seed" => each(&|call| format!("\n<seed:tool_call>\n{}</seed:tool_call>", function(call, ""))),
        "solar" => {
            let one = |(name, arguments): &Call| {
                format!(
                    "<|tool_call:begin|>0123456789<|tool_call:name|>{name}<|tool_call:args|>{}<|tool_call:end|>",
                    object(arguments)
                )
            };
            let inner: String = calls.iter().map(one).collect();
            Some(format!("<|tool_calls|>{inner}"))
        }
        "xlam" => list("", "", calls, &hermes),
        other => panic!("no writer for {other}"),
    }
}

fn list(open: &str, close: &str, calls: &[Call], one: &dyn Fn(&Call) -> String) -> Option<String> {
    let each: Vec<String> = calls.iter().map(one).collect();
    Some(format!("{open}[{}]{close}", each.join(", ")))
}

fn json_text(value: &Value) -> String {
    value.to_string()
}

fn object(arguments: &Map<String, Value>) -> String {
    json_text(&Value::Object(arguments.clone()))
}

fn hermes((name, arguments): &Call) -> String {
    format!(
        "{{\"name\": {}, \"arguments\": {}}}",
        json_text(&name.as_str().into()),
        object(arguments)
    )
}

fn pythonic((name, arguments): &Call) -> String {
    let fields: Vec<String> = arguments
        .iter()
        .map(|(key, value)| format!("{key}={}", python(value)))
        .collect();
    format!("{name}({})", fields.join(", "))
}

/// A value as plain text: a string as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| json_text(value), str::to_owned)
}

fn pairs((name, arguments): &Call, prefix: &str, after: &str, ending: &str) -> String {
    let one = |(key, value): (&String, &Value)| {
        format!(
            "<{prefix}arg_key{ending}{key}</{prefix}arg_key{ending}\n<{prefix}arg_value{ending}{}</{prefix}arg_value{ending}",
            plain(value)
        )
    };
    let fields: Vec<String> = arguments.iter().map(one).collect();
    format!("{name}{after}{}", fields.join("\n"))
}

fn function((name, arguments): &Call, around: &str) -> String {
    let one =
        |(key, value): (&String, &Value)| format!("<parameter={key}>{around}{}{around}</parameter>\n", plain(value));
    let fields: String = arguments.iter().map(one).collect();
    format!("<function={name}>\n{fields}</function>\n")
}

fn invoke((name, arguments): &Call, space: &str) -> String {
    let one = |(key, value): (&String, &Value)| {
        format!("<{space}parameter name=\"{key}\">{}</{space}parameter>\n", plain(value))
    };
    let fields: String = arguments.iter().map(one).collect();
    format!("<{space}invoke name=\"{name}\">\n{fields}</{space}invoke>\n")
}

fn dsml((name, arguments): &Call) -> String {
    let one = |(key, value): (&String, &Value)| {
        format!(
            "<｜DSML｜parameter name=\"{key}\" string=\"{}\">{}</｜DSML｜parameter>\n",
            value.is_string(),
            plain(value)
        )
    };
    let fields: String = arguments.iter().map(one).collect();
    format!("<｜DSML｜invoke name=\"{name}\">\n{fields}</｜DSML｜invoke>\n")
}

fn minicpm((name, arguments): &Call) -> String {
    let one = |(key, value): (&String, &Value)| {
        let text = plain(value);
        let data = value.is_string() && text.contains(['<', '&', '\n']);
        let text = if data { format!("<![CDATA[{text}]]>") } else { text };
        format!("<param name=\"{key}\">{text}</param>")
    };
    let fields: String = arguments.iter().map(one).collect();
    format!("<function name=\"{name}\">{fields}</function>")
}

fn kimi_k3((name, arguments): &Call) -> String {
    let attribute = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;");
    let one = |(key, value): (&String, &Value)| {
        let kind = match value {
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "boolean",
            Value::Null => "null",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        format!(
            "<|open|>argument key=\"{}\" type=\"{kind}\"<|sep|>{}<|close|>argument<|sep|>",
            attribute(key),
            plain(value)
        )
    };
    let fields: String = arguments.iter().map(one).collect();
    format!(
        "<|open|>call tool=\"{}\" index=\"1\"<|sep|>{fields}<|close|>call<|sep|>",
        attribute(name)
    )
}

fn gemma((name, arguments): &Call, quote: &str) -> String {
    format!("call:{name}{}", gemma_value(&Value::Object(arguments.clone()), quote))
}

fn gemma_value(value: &Value, quote: &str) -> String {
    match value {
        Value::String(text) => format!("{quote}{text}{quote}"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| gemma_value(item, quote)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let one = |(key, value): (&String, &Value)| format!("{key}:{}", gemma_value(value, quote));
            let fields: Vec<String> = fields.iter().map(one).collect();
            format!("{{{}}}", fields.join(","))
        }
        other => json_text(other),
    }
}

/// Python as `repr` writes it, with JSON's quotation marks.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(python).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let one =
                |(key, value): (&String, &Value)| format!("{}: {}", json_text(&key.as_str().into()), python(value));
            let fields: Vec<String> = fields.iter().map(one).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => json_text(other),
    }
}

/// The marker before each tag of MiniMax M3.
const NS: &str = "]<]minimax[>[";

fn namespaced(value: &Value) -> String {
    match value {
        Value::Array(items) => items
            .iter()
            .map(|item| format!("{NS}<item>{}{NS}</item>", namespaced(item)))
            .collect(),
        Value::Object(fields) => {
            let one = |(key, value): (&String, &Value)| format!("{NS}<{key}>{}{NS}</{key}>", namespaced(value));
            fields.iter().map(one).collect()
        }
        other => plain(other),
    }
}
