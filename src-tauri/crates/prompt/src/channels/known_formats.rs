//! The formats: one row for each way of marking thoughts, one for each way of marking calls. A model's format is put together from
//! the rows whose markers its tokenizer or its template knows; the readers in `tool_calls` tell by themselves what stands in a call.

use super::channel_format::MarkerKind::{
    self, AnswerClose, AnswerOpen, CallClose, CallHead, CallOpen, Channel, Close, HeaderClose, HeaderOpen, MessageClose, Open, Section,
};

/// Markers that belong together.
pub(super) struct KnownFormat {
    /// What has to be known for the row to apply: any of these for thoughts, all of them for calls.
    pub needed: &'static [&'static str],
    /// What stands between a thought and the answer, if the template does not show it; `None`: the closing marker alone.
    pub terminator: Option<&'static str>,
    pub markers: &'static [(MarkerKind, &'static str)],
    pub label: Option<&'static str>,
    pub ends_thoughts: bool,
    pub headers: bool,
    pub bare_calls: bool,
    /// Whether the values of arguments stand right between their tags.
    pub verbatim: bool,
    /// Whether no other way of marking calls counts beside it.
    pub alone: bool,
}

const ROW: KnownFormat = KnownFormat {
    needed: &[],
    terminator: None,
    markers: &[],
    label: None,
    ends_thoughts: false,
    headers: false,
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
    headers: true,
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
pub(super) const THOUGHTS: [&KnownFormat; 15] = [
    &HUNYUAN_3_THINK,
    &MINIMAX_THINK,
    &APRIEL_THINK,
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

macro_rules! call {
    ($name:ident, $open:literal, $close:literal) => {
        const $name: KnownFormat = KnownFormat {
            needed: &[$open],
            markers: &[(CallOpen, $open), (CallClose, $close)],
            ..ROW
        };
    };
}

call!(TOOL_CALL, "<tool_call>", "</tool_call>");
call!(TOOL_CALLS, "<tool_calls>", "</tool_calls>");
call!(NEMOTRON, "<TOOLCALL>", "</TOOLCALL>");
call!(LONGCAT, "<longcat_tool_call>", "</longcat_tool_call>");
call!(MINIMAX, "<minimax:tool_call>", "</minimax:tool_call>");
call!(LFM2, "<|tool_call_start|>", "<|tool_call_end|>");
call!(APERTUS, "<|tools_prefix|>", "<|tools_suffix|>");
call!(FUNCTION_GEMMA, "<start_function_call>", "<end_function_call>");
call!(MUSE, "<atem:function_calls>", "</atem:function_calls>");
/// Seed's, in Qwen3-Coder's words without its line ends.
const SEED: KnownFormat = KnownFormat {
    needed: &["<seed:tool_call>"],
    markers: &[(CallOpen, "<seed:tool_call>"), (CallClose, "</seed:tool_call>")],
    verbatim: true,
    ..ROW
};

// Of these only the middle is a token, and the templates put them together from pieces. The tags around the calls are forgotten now and then.
const DSML: KnownFormat = KnownFormat {
    needed: &["｜DSML｜"],
    markers: &[
        (CallOpen, "<｜DSML｜function_calls>"),
        (CallClose, "</｜DSML｜function_calls>"),
        (CallOpen, "<｜DSML｜tool_calls>"),
        (CallClose, "</｜DSML｜tool_calls>"),
        (CallHead, "<｜DSML｜invoke"),
    ],
    ends_thoughts: true,
    ..ROW
};
// Granite 3.3 never closes it, Phi 4 mini does.
call!(GRANITE, "<|tool_call|>", "<|/tool_call|>");

/// Qwen3-Coder now and then forgets `<tool_call>`; MiniCPM and Functionary never write it.
const FUNCTION: KnownFormat = KnownFormat {
    needed: &["<function="],
    markers: &[(CallHead, "<function=")],
    ..ROW
};
const FUNCTION_NAME: KnownFormat = KnownFormat {
    needed: &["<function name="],
    markers: &[(CallHead, "<function name=")],
    ..ROW
};

/// Mistral's, which nothing closes.
const MISTRAL: KnownFormat = KnownFormat {
    needed: &["[TOOL_CALLS]"],
    markers: &[(CallOpen, "[TOOL_CALLS]")],
    ..ROW
};

/// Llama 3's tag, which nothing closes and which is often missing.
const LLAMA3: KnownFormat = KnownFormat {
    needed: &["<|python_tag|>"],
    markers: &[(CallOpen, "<|python_tag|>")],
    bare_calls: true,
    ..ROW
};

/// Llama 4's tags, which stand before a call or are missing.
const LLAMA4: KnownFormat = KnownFormat {
    needed: &["<|python_start|>"],
    markers: &[(Section, "<|python_start|>"), (Section, "<|python_end|>")],
    bare_calls: true,
    ..ROW
};

/// GigaChat's, which nothing closes.
const GIGACHAT: KnownFormat = KnownFormat {
    needed: &["<|function_call|>"],
    markers: &[(CallOpen, "<|function_call|>")],
    ..ROW
};

const KIMI_K2: KnownFormat = KnownFormat {
    needed: &["<|tool_call_begin|>"],
    markers: &[
        (Section, "<|tool_calls_section_begin|>"),
        (Section, "<|tool_calls_section_end|>"),
        (CallOpen, "<|tool_call_begin|>"),
        (CallClose, "<|tool_call_end|>"),
    ],
    ends_thoughts: true,
    ..ROW
};

const DEEPSEEK: KnownFormat = KnownFormat {
    needed: &["<｜tool▁call▁begin｜>"],
    markers: &[
        (Section, "<｜tool▁calls▁begin｜>"),
        (Section, "<｜tool▁calls▁end｜>"),
        (CallOpen, "<｜tool▁call▁begin｜>"),
        (CallClose, "<｜tool▁call▁end｜>"),
    ],
    ends_thoughts: true,
    ..ROW
};

/// Stands before each tag of its calls, so that `<tool_call>` alone is text.
const MINIMAX_M3: KnownFormat = KnownFormat {
    needed: &["]<]minimax[>["],
    markers: &[(CallOpen, "]<]minimax[>[<tool_call>"), (CallClose, "]<]minimax[>[</tool_call>")],
    alone: true,
    ..ROW
};

const HUNYUAN_3: KnownFormat = KnownFormat {
    needed: &["<tool_call:opensource>"],
    markers: &[
        (Section, "<tool_calls:opensource>"),
        (Section, "</tool_calls:opensource>"),
        (CallOpen, "<tool_call:opensource>"),
        (CallClose, "</tool_call:opensource>"),
    ],
    ..ROW
};

/// GLM's marks around the words of an answer that count; they say nothing by themselves.
const BOX: KnownFormat = KnownFormat {
    needed: &["<|begin_of_box|>", "<|end_of_box|>"],
    markers: &[(Section, "<|begin_of_box|>"), (Section, "<|end_of_box|>")],
    ..ROW
};

/// Ways of marking calls; all that are known count, unless one stands alone.
pub(super) const CALLS: [&KnownFormat; 23] = [
    &MINIMAX_M3,
    &HUNYUAN_3,
    &TOOL_CALL,
    &TOOL_CALLS,
    &FUNCTION,
    &FUNCTION_NAME,
    &NEMOTRON,
    &SEED,
    &LONGCAT,
    &MINIMAX,
    &LFM2,
    &APERTUS,
    &FUNCTION_GEMMA,
    &MUSE,
    &DSML,
    &GRANITE,
    &MISTRAL,
    &LLAMA3,
    &LLAMA4,
    &GIGACHAT,
    &KIMI_K2,
    &DEEPSEEK,
    &BOX,
];

/// The formats by name, as models put them together.
pub(super) const NAMES: [(&str, &[&KnownFormat]); 28] = [
    ("apertus", &[&APERTUS_THINK, &APERTUS]),
    ("apriel", &[&APRIEL_THINK, &TOOL_CALLS]),
    ("cohere", &[&COHERE]),
    ("deepseek", &[&THINK, &DEEPSEEK]),
    ("deepseek-dsml", &[&THINK, &DSML]),
    ("function-gemma", &[&FUNCTION_GEMMA]),
    ("gemma4", &[&GEMMA4]),
    ("glm", &[&THINK, &TOOL_CALL, &BOX]),
    ("granite", &[&RESPONSE_THINK, &GRANITE]),
    ("harmony", &[&HARMONY]),
    ("hunyuan", &[&ANSWER_THINK, &TOOL_CALLS]),
    ("hunyuan-3", &[&HUNYUAN_3_THINK, &HUNYUAN_3]),
    ("kimi-k2", &[&THINK, &KIMI_K2]),
    ("kimi-k3", &[&KIMI_K3]),
    ("kimi-vl", &[&KIMI_VL_THINK]),
    ("lfm2", &[&THINK, &LFM2]),
    ("llama3", &[&LLAMA3]),
    ("longcat", &[&LONGCAT_THINK, &LONGCAT]),
    ("minicpm", &[&THINK, &FUNCTION_NAME]),
    ("minimax", &[&THINK, &MINIMAX]),
    ("minimax-m3", &[&MINIMAX_THINK, &MINIMAX_M3]),
    ("mistral", &[&MISTRAL_THINK, &MISTRAL]),
    ("nemotron", &[&THINK, &NEMOTRON]),
    ("qwen", &[&THINK, &TOOL_CALL]),
    ("qwen-coder", &[&THINK, &TOOL_CALL, &FUNCTION]),
    ("seed", &[&SEED_THINK, &SEED]),
    ("solar", &[&SOLAR]),
    ("thinking", &[&THINKING, &TOOL_CALLS]),
];
