use std::collections::BTreeMap;

use serde_json::{json, Map};

use super::*;

/// `switch on`, `levels low medium high (medium)`, …; after it the marker, with a `+` if the prompt opens the thought.
fn told(template: &Template) -> String {
    let (control, thought) = capability(template);
    let control = match control {
        ThinkingControl::Switch { default_on } => format!("switch {}", if default_on { "on" } else { "off" }),
        ThinkingControl::Levels { levels, default, off } => {
            let names: Vec<String> = levels.iter().map(|level| format!("{level:?}").to_lowercase()).collect();
            let default = default.map_or("its own".into(), |level| format!("{level:?}").to_lowercase());
            format!(
                "levels {} ({default}){}",
                names.join(" "),
                if off { " or off" } else { "" }
            )
        }
        ThinkingControl::Always => "always".into(),
        ThinkingControl::Never => "never".into(),
        ThinkingControl::ByRequest { default_on } => format!("by request, {}", if default_on { "on" } else { "off" }),
    };
    match thought {
        Some(thought) => format!(
            "{control}, {}{}",
            thought.open,
            if thought.opened_by_prompt { "+" } else { "" }
        ),
        None => control,
    }
}

#[test]
fn capabilities_are_those_of_the_models() {
    let Some(folder) = std::env::var_os("PONDER_TEMPLATES") else {
        println!("skipped: PONDER_TEMPLATES names no folder of templates; `./dev test` does");
        return;
    };
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(std::path::Path::new(&folder).join("llama-cpp-python"))
        .unwrap()
        .flatten()
    {
        let source = std::fs::read_to_string(entry.path()).unwrap();
        let name = entry.path().file_stem().unwrap().to_string_lossy().into_owned();
        found.insert(
            name,
            Template::new(&json!(source), Map::new())
                .map_or_else(|error| error.to_string(), |template| told(&template)),
        );
    }
    println!(
        "report: capability: {} templates of llama.cpp, each as expected",
        found.len()
    );
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(name, told)| (name.as_str(), told.as_str()))
        .collect();
    assert_eq!(found, EXPECTED);
}

/// By hand from the templates and what their makers say of the models.
const EXPECTED: [(&str, &str); 68] = [
    ("Apertus-8B-Instruct", "switch off, <|inner_prefix|>"),
    ("Apriel-1.6-15b-Thinker-fixed", "always, Here are my reasoning steps:+"),
    ("Bielik-11B-v3.0-Instruct", "switch off, <think>+"),
    ("ByteDance-Seed-OSS", "switch on, <seed:think>"),
    ("Cohere2MoE", "always, <|START_THINKING|>+"),
    ("CohereForAI-c4ai-command-r-plus-tool_use", "never"),
    (
        "CohereForAI-c4ai-command-r7b-12-2024-tool_use",
        "switch off, <|START_THINKING|>",
    ),
    ("GLM-4.6", "switch on, <think>"),
    ("GLM-4.7-Flash", "switch on, <think>+"),
    ("GigaChat3-10B-A1.8B", "never"),
    ("GigaChat3.1-10B-A1.8B", "never"),
    ("HuggingFaceTB-SmolLM3-3B", "switch on, <think>"),
    ("Kimi-K2-Instruct", "never"),
    ("Kimi-K2-Thinking", "always, <think>"),
    ("Kimi-K3", "levels low high (its own) or off, <|open|>think<|sep|>+"),
    ("LFM2-8B-A1B", "never"),
    ("LFM2.5-8B-A1B", "always, <think>"),
    ("LFM2.5-Instruct", "always, <think>"),
    ("MiMo-VL", "never"),
    ("MiniMax-M1", "never"),
    ("MiniMax-M2", "always, <think>+"),
    ("MiniMax-M3", "switch on, <mm:think>+"),
    ("Mistral-Small-3.2-24B-Instruct-2506", "never"),
    ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "switch on, <think>+"),
    ("NVIDIA-Nemotron-Nano-v2", "by request, on, <think>+"),
    ("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "never"),
    ("Qwen-QwQ-32B", "switch off, <think>+"),
    ("Qwen-Qwen2.5-7B-Instruct", "never"),
    ("Qwen-Qwen3-0.6B", "switch on, <think>"),
    ("Qwen3-Coder", "never"),
    ("Qwen3.5-4B", "switch on, <think>+"),
    ("Reka-Edge", "switch off, <think>+"),
    ("Spark2.5", "switch on, <think>+"),
    ("StepFun3.5-Flash", "always, <think>+"),
    ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "always, <think>+"),
    ("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "switch off, <think>+"),
    ("deepseek-ai-DeepSeek-V3.1", "switch off, <think>+"),
    ("deepseek-ai-DeepSeek-V3.2", "switch off, <think>+"),
    ("deepseek-ai-DeepSeek-V4", "switch off, <think>+"),
    (
        "deepseek-ai-DeepSeek-V4-Flash-0731",
        "levels medium high (off) or off, <think>+",
    ),
    ("fireworks-ai-llama-3-firefunction-v2", "never"),
    ("google-gemma-2-2b-it", "never"),
    ("google-gemma-4-31B-it", "switch off, <|channel>thought"),
    ("google-gemma-4-31B-it-interleaved", "switch off, <|channel>thought"),
    ("ibm-granite-granite-3.3-2B-Instruct", "switch off, <think>"),
    ("ibm-granite-granite-4.0", "never"),
    ("ibm-granite-granite-4.1", "never"),
    ("inclusionai-ling-3.0-flash", "switch on, <think>+"),
    ("llama-cpp-deepseek-r1", "always, <think>+"),
    ("llama-cpp-rwkv-world", "switch on, <think>+"),
    ("meetkai-functionary-medium-v3.1", "never"),
    ("meetkai-functionary-medium-v3.2", "never"),
    ("meta-llama-Llama-3.1-8B-Instruct", "never"),
    ("meta-llama-Llama-3.2-3B-Instruct", "never"),
    ("microsoft-Phi-3.5-mini-instruct", "never"),
    ("mistralai-Ministral-3-14B-Reasoning-2512", "by request, on, [THINK]"),
    ("mistralai-Mistral-Nemo-Instruct-2407", "never"),
    ("moonshotai-Kimi-K2", "never"),
    ("muse-glimmer", "levels low medium high (high),  to=self<|message|>"),
    (
        "openai-gpt-oss-120b",
        "levels low medium high (medium), <|channel|>analysis<|message|>",
    ),
    ("openbmb-MiniCPM5-1B", "switch on, <think>+"),
    ("poolside-Laguna-S-2.1", "switch on, <think>+"),
    ("poolside-Laguna-XS-2.1", "switch off, <think>+"),
    ("poolside-Laguna-XS.2", "switch off, <think>+"),
    ("tencent-Hy3", "levels low high (its own), <think:opensource>+"),
    ("unsloth-Apriel-1.5", "always, Here are my reasoning steps:"),
    ("unsloth-mistral-Devstral-Small-2507", "never"),
    ("upstage-Solar-Open-100B", "levels low high (high), <|think|>"),
];

/// Formats whose models' templates are in no package, by what their makers say of the prompt.
#[test]
fn capabilities_without_a_public_template() {
    let granite =
        "{% if thinking %}Write your thoughts after 'Here is my thought process:' and the answer after 'Here is my response:'.{% endif %}\
        {% for message in messages %}{{ message.content }}{% endfor %}";
    let horizon = "{% for message in messages %}{{ message.content }}{% endfor %}{% set effort = reasoning_effort|default('high') %}\
        {% if effort == 'low' %}<ifm|think_faster>{% elif effort == 'medium' %}<ifm|think_fast>{% else %}<ifm|think>{% endif %}";
    let olmo = "{% for message in messages %}{{ message.content }}{% endfor %}<|im_start|>assistant\n<think>";
    for (source, expected) in [
        (granite, "switch off, Here is my thought process:"),
        (horizon, "levels low medium high (high), <ifm|think>+"),
        (olmo, "always, <think>+"),
    ] {
        assert_eq!(told(&Template::new(&json!(source), Map::new()).unwrap()), expected);
    }
}
