//! The formats: one row for each way of marking thoughts; those of calls are in `known_calls`. A model's format is put together from
//! the rows whose markers its tokenizer or its template knows; the readers in `tool_calls` tell by themselves what stands in a call.

use super::channel_format::MarkerKind::{
    self, AnswerClose, AnswerOpen, CallClose, CallOpen, Channel, Close, HeaderClose, HeaderOpen, MessageClose, Open, Section,
};
use super::header::Headers;
use super::known_calls::*;

/// Markers that belong together.
pub(super) struct KnownFormat {
    /// What has to be known for the row to apply: any of these for thoughts, all of them for calls.
    pub needed: &'static [&'static str],
    /// What stands between a thought and the answer, if the template does not show it; `None`: the closing marker alone.
    pub terminator: Option<&'static str>,
    pub markers: &'static [(MarkerKind, &'static str)],
    pub label: Option<&'static str>,
    pub ends_thoughts: bool,
    pub headers: Option<Headers>,
    pub bare_calls: bool,
    /// Whether the values of arguments stand right between their tags.
    pub verbatim: bool,
    /// Whether no other way of marking calls counts beside it.
    pub alone: bool,
}

pub(super) const ROW: KnownFormat = KnownFormat {
    needed: &[],
    terminator: None,
    markers: &[],
    label: None,
    ends_thoughts: false,
    headers: None,
    bare_calls: false,
    verbatim: false,
    alone: false,
};

/// gpt-oss: `<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…<|return|>`, and calls as
/// `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`.
pub(super) const HARMONY: KnownFormat = KnownFormat {
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
    needed: &[">>>${recipient}"],
    markers: &[(HeaderOpen, ">>>")],
    headers: Some(Headers::Lines),
    ..ROW
};

/// Gemma 4: `<|channel>thought\n…<channel|>` and `<|tool_call>call:NAME{…}<tool_call|>`, every marker a token.
pub(super) const GEMMA4: KnownFormat = KnownFormat {
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
        const $name: KnownFormat = KnownFormat {
            needed: &[$open, $close],
            markers: &[(Open, $open), (Close, $close)],
            ..ROW
        };
    };
}

/// DeepSeek's, and of most that came after.
const THINK: KnownFormat = KnownFormat {
    needed: &["<think>", "</think>"],
    terminator: Some("\n</think>\n\n"),
    markers: &[(Open, "<think>"), (Close, "</think>")],
    ..ROW
};

pair!(MISTRAL_THINK, "[THINK]", "[/THINK]");
pair!(SEED_THINK, "<seed:think>", "</seed:think>");
pair!(LONGCAT_THINK, "<longcat_think>", "</longcat_think>");
pair!(THINKING, "<thinking>", "</thinking>");
pair!(KIMI_VL_THINK, "◁think▷", "◁/think▷");
pair!(MINIMAX_THINK, "<mm:think>", "</mm:think>");
pair!(APERTUS_THINK, "<|inner_prefix|>", "<|inner_suffix|>");

/// Apriel's words; its 1.5 also writes where the answer ends.
const APRIEL_THINK: KnownFormat = KnownFormat {
    needed: &["Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"],
    terminator: Some("\n[BEGIN FINAL RESPONSE]\n"),
    markers: &[
        (Open, "Here are my reasoning steps:"),
        (Close, "[BEGIN FINAL RESPONSE]"),
        (Section, "[END FINAL RESPONSE]"),
    ],
    ..ROW
};

/// Granite 3.2's words, which its quantised models shorten.
const GRANITE_WORDS: KnownFormat = KnownFormat {
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
const K2_HORIZON_THINK: KnownFormat = KnownFormat {
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
const RESPONSE_THINK: KnownFormat = KnownFormat {
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
const ANSWER_THINK: KnownFormat = KnownFormat {
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
const COHERE: KnownFormat = KnownFormat {
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
const KIMI_K3: KnownFormat = KnownFormat {
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
const SOLAR: KnownFormat = KnownFormat {
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
const HUNYUAN_3_THINK: KnownFormat = KnownFormat {
    needed: &["<think:opensource>"],
    markers: &[(Open, "<think:opensource>"), (Close, "</think:opensource>")],
    ..ROW
};

/// Ways of marking thoughts; the first that is known counts.
pub(super) const THOUGHTS: [&KnownFormat; 17] = [
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

/// The formats by name, as models put them together.
pub(super) const NAMES: [(&str, &[&KnownFormat]); 43] = [
    ("apertus", &[&APERTUS_THINK, &APERTUS]),
    ("apriel", &[&APRIEL_THINK, &TOOL_CALLS]),
    ("cohere", &[&COHERE]),
    ("command-r", &[&COMMAND_R]),
    ("deepseek", &[&THINK, &DEEPSEEK]),
    ("deepseek-dsml", &[&THINK, &DSML]),
    ("dots", &[&THINK, &DOTS]),
    ("function-gemma", &[&FUNCTION_GEMMA]),
    ("functionary", &[&FUNCTIONARY]),
    ("functools", &[&FUNCTOOLS]),
    ("gemma4", &[&GEMMA4]),
    ("gigachat", &[&GIGACHAT, &GIGACHAT_3]),
    ("glm", &[&THINK, &TOOL_CALL, &BOX]),
    ("granite", &[&RESPONSE_THINK, &GRANITE]),
    ("granite-20b", &[&GRANITE_20B]),
    ("granite-3.2", &[&GRANITE_WORDS, &GRANITE]),
    ("harmony", &[&HARMONY]),
    ("hunyuan", &[&ANSWER_THINK, &TOOL_CALLS]),
    ("hunyuan-3", &[&HUNYUAN_3_THINK, &HUNYUAN_3]),
    ("hunyuan-3-preview", &[&THINK, &HUNYUAN_3_PREVIEW]),
    ("internlm2", &[&INTERNLM2]),
    ("k2-horizon", &[&K2_HORIZON_THINK, &K2_HORIZON]),
    ("kimi-k2", &[&THINK, &KIMI_K2]),
    ("kimi-k3", &[&KIMI_K3]),
    ("kimi-vl", &[&KIMI_VL_THINK]),
    ("lfm2", &[&THINK, &LFM2]),
    ("llama3", &[&LLAMA3]),
    ("llama4", &[&LLAMA4]),
    ("longcat", &[&LONGCAT_THINK, &LONGCAT]),
    ("minicpm", &[&THINK, &FUNCTION_NAME]),
    ("minimax", &[&THINK, &MINIMAX]),
    ("minimax-m3", &[&MINIMAX_THINK, &MINIMAX_M3]),
    ("mistral", &[&MISTRAL_THINK, &MISTRAL]),
    ("muse", &[&MUSE]),
    ("nemotron", &[&THINK, &NEMOTRON]),
    ("olmo3", &[&THINK, &OLMO3]),
    ("qwen", &[&THINK, &TOOL_CALL]),
    ("qwen-coder", &[&THINK, &TOOL_CALL, &FUNCTION]),
    ("seed", &[&SEED_THINK, &SEED]),
    ("solar", &[&SOLAR]),
    ("step3", &[&THINK, &STEP3]),
    ("thinking", &[&THINKING, &TOOL_CALLS]),
    ("xlam", &[&THINK, &XLAM, &TOOL_CALL, &MISTRAL]),
];
