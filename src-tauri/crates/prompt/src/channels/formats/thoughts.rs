//! The ways of marking thoughts, and the formats that are one piece.

use super::header::Headers;
use super::marker::MarkerKind::{Channel, HeaderClose, HeaderOpen, MessageClose};
use super::row::{KnownFormat, ROW};

/// gpt-oss: `<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…<|return|>`, and calls
/// as `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`.
pub(super) const HARMONY: KnownFormat = KnownFormat {
    formats: &[("harmony", &ROW)],
    needed: &["<|start|>", "<|channel|>", "<|message|>", "<|end|>"],
    terminator: Some("<|end|><|start|>assistant<|channel|>final<|message|>"),
    messages: &[
        (HeaderOpen, "<|start|>"),
        (Channel, "<|channel|>"),
        (HeaderClose, "<|message|>"),
        (MessageClose, "<|end|>"),
        (MessageClose, "<|return|>"),
        (MessageClose, "<|call|>"),
    ],
    headers: Some(Headers::Channels),
    ..ROW
};

/// Muse: ` to=self<|message|>…<|eom|><|start|>assistant to=user<|message|>…<|eot|>`, and calls in messages to a tool.
pub(super) const MUSE: KnownFormat = KnownFormat {
    formats: &[("muse", &ROW)],
    needed: &["<|start|>", "<|message|>", "<|eom|>"],
    terminator: Some("<|eom|><|start|>assistant to=user<|message|>"),
    calls: &[("<atem:function_calls>", "</atem:function_calls>")],
    messages: &[
        (HeaderOpen, "<|start|>"),
        (HeaderClose, "<|message|>"),
        (MessageClose, "<|eom|>"),
        (MessageClose, "<|eot|>"),
    ],
    headers: Some(Headers::Recipients),
    ..ROW
};

/// Functionary 3.2: `all\n…>>>NAME\n{…}`, whose first header the prompt has begun.
pub(super) const FUNCTIONARY: KnownFormat = KnownFormat {
    formats: &[("functionary", &ROW)],
    needed: &[">>>${recipient}"],
    messages: &[(HeaderOpen, ">>>")],
    headers: Some(Headers::Lines),
    ..ROW
};

/// Gemma 4: `<|channel>thought\n…<channel|>` and `<|tool_call>call:NAME{…}<tool_call|>`, every marker a token.
pub(super) const GEMMA4: KnownFormat = KnownFormat {
    formats: &[("gemma4", &ROW)],
    terminator: Some("\n<channel|>"),
    thoughts: &[("<|channel>", "<channel|>")],
    calls: &[("<|tool_call>", "<tool_call|>")],
    label: Some("thought"),
    ends_thoughts: true,
    ..ROW
};

/// The row of thoughts between these markers.
const fn think(thoughts: &'static [(&'static str, &'static str)]) -> KnownFormat {
    KnownFormat { thoughts, ..ROW }
}

/// DeepSeek's, and of most that came after.
pub(super) const THINK: KnownFormat = KnownFormat {
    terminator: Some("\n</think>\n\n"),
    thoughts: &[("<think>", "</think>")],
    ..ROW
};

pub(super) const MISTRAL_THINK: KnownFormat = think(&[("[THINK]", "[/THINK]")]);
pub(super) const SEED_THINK: KnownFormat = think(&[("<seed:think>", "</seed:think>")]);
pub(super) const LONGCAT_THINK: KnownFormat = think(&[("<longcat_think>", "</longcat_think>")]);
pub(super) const THINKING: KnownFormat = think(&[("<thinking>", "</thinking>")]);
/// Kimi VL's, whose models call no tools.
pub(super) const KIMI_VL_THINK: KnownFormat = KnownFormat {
    formats: &[("kimi-vl", &ROW)],
    thoughts: &[("◁think▷", "◁/think▷")],
    ..ROW
};
pub(super) const MINIMAX_THINK: KnownFormat = think(&[("<mm:think>", "</mm:think>")]);
pub(super) const APERTUS_THINK: KnownFormat = think(&[("<|inner_prefix|>", "<|inner_suffix|>")]);

/// Apriel's words; its 1.5 also writes where the answer ends.
pub(super) const APRIEL_THINK: KnownFormat = KnownFormat {
    terminator: Some("\n[BEGIN FINAL RESPONSE]\n"),
    thoughts: &[("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]")],
    sections: &["[END FINAL RESPONSE]"],
    ..ROW
};

/// Granite 3.2's words, which its quantized models shorten.
pub(super) const GRANITE_WORDS: KnownFormat = KnownFormat {
    needed: &["Here is my thought process:"],
    terminator: Some("\n\nHere is my response:\n\n"),
    thoughts: &[
        ("Here is my thought process:", "Here is my response:"),
        ("Here's my thought process:", "Here's my response:"),
    ],
    ..ROW
};

/// K2 Horizon has a pair for each effort.
pub(super) const K2_HORIZON_THINK: KnownFormat = KnownFormat {
    needed: &["<ifm|think>"],
    thoughts: &[
        ("<ifm|think>", "</ifm|think>"),
        ("<ifm|think_fast>", "</ifm|think_fast>"),
        ("<ifm|think_faster>", "</ifm|think_faster>"),
    ],
    ..ROW
};

/// Granite 3.3 and Hunyuan wrap the answer as well.
pub(super) const RESPONSE_THINK: KnownFormat = KnownFormat {
    // The name alone is what some call a tool's answer.
    needed: &["<response></response>"],
    terminator: Some("</think><response>"),
    thoughts: &[("<think>", "</think>")],
    answers: &[("<response>", "</response>")],
    ..ROW
};
pub(super) const ANSWER_THINK: KnownFormat = KnownFormat {
    needed: &["<answer>\n"],
    terminator: Some("\n</think>\n<answer>\n"),
    thoughts: &[("<think>", "</think>")],
    answers: &[("<answer>", "</answer>")],
    ..ROW
};

/// Cohere's Command R7B and A: thought, action and response, each in tokens of its own.
pub(super) const COHERE: KnownFormat = KnownFormat {
    formats: &[("cohere", &ROW)],
    needed: &["<|START_THINKING|>", "<|START_RESPONSE|>", "<|START_ACTION|>"],
    terminator: Some("<|END_THINKING|><|START_RESPONSE|>"),
    thoughts: &[("<|START_THINKING|>", "<|END_THINKING|>")],
    answers: &[
        ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        ("<|START_TEXT|>", "<|END_TEXT|>"),
    ],
    calls: &[("<|START_ACTION|>", "<|END_ACTION|>")],
    ends_thoughts: true,
    ..ROW
};

/// Kimi K3's tags, each of three tokens; the last one closes the message around all.
pub(super) const KIMI_K3: KnownFormat = KnownFormat {
    formats: &[("kimi-k3", &ROW)],
    needed: &["<|open|>", "<|sep|>"],
    terminator: Some("<|close|>think<|sep|><|open|>response<|sep|>"),
    thoughts: &[("<|open|>think<|sep|>", "<|close|>think<|sep|>")],
    answers: &[("<|open|>response<|sep|>", "<|close|>response<|sep|>")],
    calls: &[("<|open|>call ", "<|close|>call<|sep|>")],
    sections: &[
        "<|open|>tools<|sep|>",
        "<|close|>tools<|sep|>",
        "<|close|>message<|sep|>",
    ],
    ends_thoughts: true,
    ..ROW
};

/// Solar Open: `<|think|>…<|end|><|begin|>assistant<|content|>…<|end|>`.
pub(super) const SOLAR: KnownFormat = KnownFormat {
    formats: &[("solar", &ROW)],
    needed: &["<|tool_call:begin|>"],
    terminator: Some("<|end|><|begin|>assistant<|content|>"),
    thoughts: &[("<|think|>", "")],
    calls: &[("<|tool_call:begin|>", "<|tool_call:end|>")],
    sections: &["<|begin|>assistant", "<|content|>", "<|tool_calls|>", "<|calls|>"],
    messages: &[(MessageClose, "<|end|>")],
    ends_thoughts: true,
    ..ROW
};

/// Hunyuan 3 ends the names of all its markers alike.
pub(super) const HUNYUAN_3_THINK: KnownFormat = KnownFormat {
    needed: &["<think:opensource>"],
    thoughts: &[("<think:opensource>", "</think:opensource>")],
    ..ROW
};

/// Ways of marking thoughts; the first that is known counts.
pub(super) const THOUGHTS: &[&KnownFormat] = &[
    &HUNYUAN_3_THINK,
    &K2_HORIZON_THINK,
    &MINIMAX_THINK,
    &APRIEL_THINK,
    &GRANITE_WORDS,
    &COHERE,
    &KIMI_K3,
    &SOLAR,
    &RESPONSE_THINK,
    &ANSWER_THINK,
    &THINK,
    &MISTRAL_THINK,
    &SEED_THINK,
    &LONGCAT_THINK,
    &KIMI_VL_THINK,
    &APERTUS_THINK,
    &THINKING,
];

/// The formats that are one piece, and whose markers only count if they are tokens.
pub(super) const WHOLE: &[&KnownFormat] = &[&HARMONY, &MUSE, &GEMMA4];
