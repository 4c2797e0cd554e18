//! The ways of marking thoughts, and the formats that are one piece.

use super::header::Headers;
use super::marker::MarkerKind::{
    AnswerClose, AnswerOpen, CallClose, CallOpen, Channel, Close, HeaderClose, HeaderOpen, MessageClose, Open, Section,
};
use super::row::{KnownFormat, ROW};

/// gpt-oss: `<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…<|return|>`, and calls
/// as `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`.
pub(super) const HARMONY: KnownFormat = KnownFormat {
    formats: &[("harmony", None)],
    needed: &["<|start|>", "<|channel|>", "<|message|>", "<|end|>"],
    terminator: Some("<|end|><|start|>assistant<|channel|>final<|message|>"),
    markers: &[
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
    formats: &[("muse", None)],
    needed: &["<|start|>", "<|message|>", "<|eom|>"],
    terminator: Some("<|eom|><|start|>assistant to=user<|message|>"),
    markers: &[
        (HeaderOpen, "<|start|>"),
        (HeaderClose, "<|message|>"),
        (MessageClose, "<|eom|>"),
        (MessageClose, "<|eot|>"),
        (CallOpen, "<atem:function_calls>"),
        (CallClose, "</atem:function_calls>"),
    ],
    headers: Some(Headers::Recipients),
    ..ROW
};

/// Functionary 3.2: `all\n…>>>NAME\n{…}`, whose first header the prompt has begun.
pub(super) const FUNCTIONARY: KnownFormat = KnownFormat {
    formats: &[("functionary", None)],
    needed: &[">>>${recipient}"],
    markers: &[(HeaderOpen, ">>>")],
    headers: Some(Headers::Lines),
    ..ROW
};

/// Gemma 4: `<|channel>thought\n…<channel|>` and `<|tool_call>call:NAME{…}<tool_call|>`, every marker a token.
pub(super) const GEMMA4: KnownFormat = KnownFormat {
    formats: &[("gemma4", None)],
    needed: &["<|channel>", "<channel|>"],
    terminator: Some("\n<channel|>"),
    markers: &[
        (Open, "<|channel>"),
        (Close, "<channel|>"),
        (CallOpen, "<|tool_call>"),
        (CallClose, "<tool_call|>"),
    ],
    label: Some("thought"),
    ends_thoughts: true,
    ..ROW
};

macro_rules! pair {
    ($name:ident, $open:literal, $close:literal) => {
        pub(super) const $name: KnownFormat = KnownFormat {
            needed: &[$open, $close],
            markers: &[(Open, $open), (Close, $close)],
            ..ROW
        };
    };
}

/// DeepSeek's, and of most that came after.
pub(super) const THINK: KnownFormat = KnownFormat {
    needed: &["<think>", "</think>"],
    terminator: Some("\n</think>\n\n"),
    markers: &[(Open, "<think>"), (Close, "</think>")],
    ..ROW
};

pair!(MISTRAL_THINK, "[THINK]", "[/THINK]");
pair!(SEED_THINK, "<seed:think>", "</seed:think>");
pair!(LONGCAT_THINK, "<longcat_think>", "</longcat_think>");
pair!(THINKING, "<thinking>", "</thinking>");
/// Kimi VL's, whose models call no tools.
pub(super) const KIMI_VL_THINK: KnownFormat = KnownFormat {
    formats: &[("kimi-vl", None)],
    needed: &["◁think▷", "◁/think▷"],
    markers: &[(Open, "◁think▷"), (Close, "◁/think▷")],
    ..ROW
};
pair!(MINIMAX_THINK, "<mm:think>", "</mm:think>");
pair!(APERTUS_THINK, "<|inner_prefix|>", "<|inner_suffix|>");

/// Apriel's words; its 1.5 also writes where the answer ends.
pub(super) const APRIEL_THINK: KnownFormat = KnownFormat {
    needed: &["Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"],
    terminator: Some("\n[BEGIN FINAL RESPONSE]\n"),
    markers: &[
        (Open, "Here are my reasoning steps:"),
        (Close, "[BEGIN FINAL RESPONSE]"),
        (Section, "[END FINAL RESPONSE]"),
    ],
    ..ROW
};

/// Granite 3.2's words, which its quantized models shorten.
pub(super) const GRANITE_WORDS: KnownFormat = KnownFormat {
    needed: &["Here is my thought process:"],
    terminator: Some("\n\nHere is my response:\n\n"),
    markers: &[
        (Open, "Here is my thought process:"),
        (Open, "Here's my thought process:"),
        (Close, "Here is my response:"),
        (Close, "Here's my response:"),
    ],
    ..ROW
};

/// K2 Horizon has a pair for each effort.
pub(super) const K2_HORIZON_THINK: KnownFormat = KnownFormat {
    needed: &["<ifm|think>"],
    markers: &[
        (Open, "<ifm|think>"),
        (Close, "</ifm|think>"),
        (Open, "<ifm|think_fast>"),
        (Close, "</ifm|think_fast>"),
        (Open, "<ifm|think_faster>"),
        (Close, "</ifm|think_faster>"),
    ],
    ..ROW
};

/// Granite 3.3 and Hunyuan wrap the answer as well.
pub(super) const RESPONSE_THINK: KnownFormat = KnownFormat {
    // The name alone is what some call a tool's answer.
    needed: &["<response></response>"],
    terminator: Some("</think><response>"),
    markers: &[
        (Open, "<think>"),
        (Close, "</think>"),
        (AnswerOpen, "<response>"),
        (AnswerClose, "</response>"),
    ],
    ..ROW
};
pub(super) const ANSWER_THINK: KnownFormat = KnownFormat {
    needed: &["<answer>\n"],
    terminator: Some("\n</think>\n<answer>\n"),
    markers: &[
        (Open, "<think>"),
        (Close, "</think>"),
        (AnswerOpen, "<answer>"),
        (AnswerClose, "</answer>"),
    ],
    ..ROW
};

/// Cohere's Command R7B and A: thought, action and response, each in tokens of its own.
pub(super) const COHERE: KnownFormat = KnownFormat {
    formats: &[("cohere", None)],
    needed: &["<|START_THINKING|>", "<|START_RESPONSE|>", "<|START_ACTION|>"],
    terminator: Some("<|END_THINKING|><|START_RESPONSE|>"),
    markers: &[
        (Open, "<|START_THINKING|>"),
        (Close, "<|END_THINKING|>"),
        (AnswerOpen, "<|START_RESPONSE|>"),
        (AnswerClose, "<|END_RESPONSE|>"),
        (AnswerOpen, "<|START_TEXT|>"),
        (AnswerClose, "<|END_TEXT|>"),
        (CallOpen, "<|START_ACTION|>"),
        (CallClose, "<|END_ACTION|>"),
    ],
    ends_thoughts: true,
    ..ROW
};

/// Kimi K3's tags, each of three tokens; the last one closes the message around all.
pub(super) const KIMI_K3: KnownFormat = KnownFormat {
    formats: &[("kimi-k3", None)],
    needed: &["<|open|>", "<|sep|>"],
    terminator: Some("<|close|>think<|sep|><|open|>response<|sep|>"),
    markers: &[
        (Open, "<|open|>think<|sep|>"),
        (Close, "<|close|>think<|sep|>"),
        (AnswerOpen, "<|open|>response<|sep|>"),
        (AnswerClose, "<|close|>response<|sep|>"),
        (Section, "<|open|>tools<|sep|>"),
        (Section, "<|close|>tools<|sep|>"),
        (Section, "<|close|>message<|sep|>"),
        (CallOpen, "<|open|>call "),
        (CallClose, "<|close|>call<|sep|>"),
    ],
    ends_thoughts: true,
    ..ROW
};

/// Solar Open: `<|think|>…<|end|><|begin|>assistant<|content|>…<|end|>`.
pub(super) const SOLAR: KnownFormat = KnownFormat {
    formats: &[("solar", None)],
    needed: &["<|tool_call:begin|>"],
    terminator: Some("<|end|><|begin|>assistant<|content|>"),
    markers: &[
        (Open, "<|think|>"),
        (MessageClose, "<|end|>"),
        (Section, "<|begin|>assistant"),
        (Section, "<|content|>"),
        (Section, "<|tool_calls|>"),
        (Section, "<|calls|>"),
        (CallOpen, "<|tool_call:begin|>"),
        (CallClose, "<|tool_call:end|>"),
    ],
    ends_thoughts: true,
    ..ROW
};

/// Hunyuan 3 ends the names of all its markers alike.
pub(super) const HUNYUAN_3_THINK: KnownFormat = KnownFormat {
    needed: &["<think:opensource>"],
    markers: &[(Open, "<think:opensource>"), (Close, "</think:opensource>")],
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
