//! The ways of marking calls; the readers in `tool_calls` tell by themselves what stands in a call.

use super::channel_format::MarkerKind::{CallClose, CallHead, CallOpen, CallWord, MessageClose, Section};
use super::known_formats::{KnownFormat, ROW};

macro_rules! call {
    ($name:ident, $open:literal, $close:literal) => {
        pub(super) const $name: KnownFormat = KnownFormat {
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
call!(OLMO3, "<function_calls>", "</function_calls>");
call!(DOTS, "<dots_function_call>", "</dots_function_call>");
call!(ATEM, "<atem:function_calls>", "</atem:function_calls>");
/// InternLM 2's, whose template knows no tools; its tokenizer does.
pub(super) const INTERNLM2: KnownFormat = KnownFormat {
    needed: &["<|action_start|>", "<|plugin|>", "<|action_end|>"],
    markers: &[(CallOpen, "<|action_start|><|plugin|>"), (CallClose, "<|action_end|>")],
    ..ROW
};
/// Seed's, in Qwen3-Coder's words without its line ends.
pub(super) const SEED: KnownFormat = KnownFormat {
    needed: &["<seed:tool_call>"],
    markers: &[(CallOpen, "<seed:tool_call>"), (CallClose, "</seed:tool_call>")],
    verbatim: true,
    ..ROW
};

// Of these only the middle is a token, and the templates put them together from pieces. The tags around the calls are forgotten now and then.
pub(super) const DSML: KnownFormat = KnownFormat {
    needed: &["｜DSML｜"],
    markers: &[
        (CallOpen, "<｜DSML｜function_calls>"),
        (CallClose, "</｜DSML｜function_calls>"),
        (CallOpen, "<｜DSML｜tool_calls>"),
        (CallClose, "</｜DSML｜tool_calls>"),
        // DeepSeek V4.1 puts blanks before its words.
        (CallOpen, "<｜DSML｜ calls>"),
        (CallClose, "</｜DSML｜ calls>"),
        (CallHead, "<｜DSML｜invoke"),
        (CallHead, "<｜DSML｜ invoke"),
    ],
    ends_thoughts: true,
    ..ROW
};
// Granite 3.3 never closes it, Phi 4 mini does.
call!(GRANITE, "<|tool_call|>", "<|/tool_call|>");

/// Qwen3-Coder now and then forgets `<tool_call>`; MiniCPM and Functionary never write it.
pub(super) const FUNCTION: KnownFormat = KnownFormat {
    needed: &["<function="],
    markers: &[(CallHead, "<function=")],
    ..ROW
};
pub(super) const FUNCTION_NAME: KnownFormat = KnownFormat {
    needed: &["<function name="],
    markers: &[(CallHead, "<function name=")],
    ..ROW
};

/// Mistral's, which nothing closes.
pub(super) const MISTRAL: KnownFormat = KnownFormat {
    needed: &["[TOOL_CALLS]"],
    markers: &[(CallOpen, "[TOOL_CALLS]")],
    ..ROW
};

/// Llama 3's tag, which nothing closes and which is often missing.
pub(super) const LLAMA3: KnownFormat = KnownFormat {
    needed: &["<|python_tag|>"],
    markers: &[(CallOpen, "<|python_tag|>")],
    bare_calls: true,
    ..ROW
};

/// Llama 4's tags, which stand before a call or are missing.
pub(super) const LLAMA4: KnownFormat = KnownFormat {
    needed: &["<|python_start|>"],
    markers: &[(Section, "<|python_start|>"), (Section, "<|python_end|>")],
    bare_calls: true,
    ..ROW
};

/// GigaChat's, which nothing closes.
pub(super) const GIGACHAT: KnownFormat = KnownFormat {
    needed: &["<|function_call|>"],
    markers: &[(CallOpen, "<|function_call|>")],
    ..ROW
};

pub(super) const KIMI_K2: KnownFormat = KnownFormat {
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

pub(super) const DEEPSEEK: KnownFormat = KnownFormat {
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
pub(super) const MINIMAX_M3: KnownFormat = KnownFormat {
    needed: &["]<]minimax[>["],
    markers: &[(CallOpen, "]<]minimax[>[<tool_call>"), (CallClose, "]<]minimax[>[</tool_call>")],
    alone: true,
    ..ROW
};

/// Hunyuan 3's before its markers had an ending.
pub(super) const HUNYUAN_3_PREVIEW: KnownFormat = KnownFormat {
    needed: &["<tool_sep>", "<tool_calls>"],
    markers: &[
        (Section, "<tool_calls>"),
        (Section, "</tool_calls>"),
        (CallOpen, "<tool_call>"),
        (CallClose, "</tool_call>"),
    ],
    alone: true,
    ..ROW
};

pub(super) const HUNYUAN_3: KnownFormat = KnownFormat {
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
pub(super) const BOX: KnownFormat = KnownFormat {
    needed: &["<|begin_of_box|>", "<|end_of_box|>"],
    markers: &[(Section, "<|begin_of_box|>"), (Section, "<|end_of_box|>")],
    ..ROW
};

/// GigaChat 3's, in the header of a message; the same ending closes every message.
pub(super) const GIGACHAT_3: KnownFormat = KnownFormat {
    needed: &["<|role_sep|>", "<|message_sep|>", "function call"],
    markers: &[(CallOpen, "function call<|role_sep|>"), (MessageClose, "<|message_sep|>")],
    ..ROW
};

/// Firefunction's word before a list, and Phi 4 mini's; nothing closes it.
pub(super) const FUNCTOOLS: KnownFormat = KnownFormat {
    needed: &["functools["],
    markers: &[(CallWord, "functools[")],
    ..ROW
};
/// Phi 4 mini's template has no word for calls, only for the list of tools.
pub(super) const PHI_4_MINI: KnownFormat = KnownFormat {
    needed: &["<|tool|>", "<|/tool|>"],
    ..FUNCTOOLS
};

/// Granite 20B's, which nothing closes.
pub(super) const GRANITE_20B: KnownFormat = KnownFormat {
    needed: &["<function_call>"],
    markers: &[(CallOpen, "<function_call>")],
    ..ROW
};

/// Command R+ writes a list of actions as a block of code.
pub(super) const COMMAND_R: KnownFormat = KnownFormat {
    needed: &["followed by a json-formatted list of actions"],
    markers: &[(CallHead, "Action:\n```json"), (CallHead, "Action: ```json")],
    ..ROW
};

/// xLAM's lists, which nothing stands around.
pub(super) const XLAM: KnownFormat = KnownFormat {
    needed: &["in a single JSON array"],
    bare_calls: true,
    ..ROW
};

pub(super) const K2_HORIZON: KnownFormat = KnownFormat {
    needed: &["<ifm|tool_call>"],
    markers: &[
        (Section, "<ifm|tool_calls>"),
        (Section, "</ifm|tool_calls>"),
        (CallOpen, "<ifm|tool_call>"),
        (CallClose, "</ifm|tool_call>"),
    ],
    ends_thoughts: true,
    ..ROW
};

pub(super) const STEP3: KnownFormat = KnownFormat {
    needed: &["<｜tool_call_begin｜>"],
    markers: &[
        (Section, "<｜tool_calls_begin｜>"),
        (Section, "<｜tool_calls_end｜>"),
        (CallOpen, "<｜tool_call_begin｜>"),
        (CallClose, "<｜tool_call_end｜>"),
    ],
    ..ROW
};

/// Ways of marking calls; all that are known count, unless one stands alone.
pub(super) const CALLS: [&KnownFormat; 35] = [
    &MINIMAX_M3,
    &HUNYUAN_3,
    &HUNYUAN_3_PREVIEW,
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
    &ATEM,
    &DSML,
    &GRANITE,
    &MISTRAL,
    &LLAMA3,
    &LLAMA4,
    &GIGACHAT,
    &KIMI_K2,
    &DEEPSEEK,
    &GIGACHAT_3,
    &FUNCTOOLS,
    &PHI_4_MINI,
    &GRANITE_20B,
    &COMMAND_R,
    &XLAM,
    &K2_HORIZON,
    &STEP3,
    &OLMO3,
    &DOTS,
    &INTERNLM2,
    &BOX,
];
