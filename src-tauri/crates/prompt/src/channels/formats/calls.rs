//! The ways of marking calls; the readers in `tool_calls` tell by themselves which form stands in a call.

use super::marker::MarkerKind::{CallClose, CallHead, CallOpen, CallWord, MessageClose, Section};
use super::row::{KnownFormat, ROW};
use super::thoughts::{
    ANSWER_THINK, APERTUS_THINK, APRIEL_THINK, GRANITE_WORDS, HUNYUAN_3_THINK, K2_HORIZON_THINK, LONGCAT_THINK,
    MINIMAX_THINK, MISTRAL_THINK, RESPONSE_THINK, SEED_THINK, THINK, THINKING,
};

/// The ways of marking calls; all that are known count, unless one stands alone.
pub(super) const CALLS: &[KnownFormat] = &[
    // Stands before each tag of its calls, so that `<tool_call>` alone is text.
    KnownFormat {
        formats: &[("minimax-m3", Some(&MINIMAX_THINK))],
        needed: &["]<]minimax[>["],
        markers: &[
            (CallOpen, "]<]minimax[>[<tool_call>"),
            (CallClose, "]<]minimax[>[</tool_call>"),
        ],
        alone: true,
        ..ROW
    },
    KnownFormat {
        formats: &[("hunyuan-3", Some(&HUNYUAN_3_THINK))],
        needed: &["<tool_call:opensource>"],
        markers: &[
            (Section, "<tool_calls:opensource>"),
            (Section, "</tool_calls:opensource>"),
            (CallOpen, "<tool_call:opensource>"),
            (CallClose, "</tool_call:opensource>"),
        ],
        ..ROW
    },
    KnownFormat {
        formats: &[
            ("glm", Some(&THINK)),
            ("qwen", Some(&THINK)),
            ("qwen-coder", Some(&THINK)),
            ("xlam", Some(&THINK)),
        ],
        needed: &["<tool_call>"],
        markers: &[(CallOpen, "<tool_call>"), (CallClose, "</tool_call>")],
        ..ROW
    },
    KnownFormat {
        formats: &[
            ("apriel", Some(&APRIEL_THINK)),
            ("hunyuan", Some(&ANSWER_THINK)),
            ("thinking", Some(&THINKING)),
        ],
        needed: &["<tool_calls>"],
        markers: &[(CallOpen, "<tool_calls>"), (CallClose, "</tool_calls>")],
        ..ROW
    },
    // Qwen3-Coder now and then forgets `<tool_call>`; MiniCPM and Functionary never write it.
    KnownFormat {
        formats: &[("qwen-coder", Some(&THINK))],
        needed: &["<function="],
        markers: &[(CallHead, "<function=")],
        ..ROW
    },
    KnownFormat {
        formats: &[("minicpm", Some(&THINK))],
        needed: &["<function name="],
        markers: &[(CallHead, "<function name=")],
        ..ROW
    },
    KnownFormat {
        formats: &[("nemotron", Some(&THINK))],
        needed: &["<TOOLCALL>"],
        markers: &[(CallOpen, "<TOOLCALL>"), (CallClose, "</TOOLCALL>")],
        ..ROW
    },
    // Seed's, in Qwen3-Coder's words without its line ends.
    KnownFormat {
        formats: &[("seed", Some(&SEED_THINK))],
        needed: &["<seed:tool_call>"],
        markers: &[(CallOpen, "<seed:tool_call>"), (CallClose, "</seed:tool_call>")],
        verbatim: true,
        ..ROW
    },
    KnownFormat {
        formats: &[("longcat", Some(&LONGCAT_THINK))],
        needed: &["<longcat_tool_call>"],
        markers: &[(CallOpen, "<longcat_tool_call>"), (CallClose, "</longcat_tool_call>")],
        ..ROW
    },
    KnownFormat {
        formats: &[("minimax", Some(&THINK))],
        needed: &["<minimax:tool_call>"],
        markers: &[(CallOpen, "<minimax:tool_call>"), (CallClose, "</minimax:tool_call>")],
        ..ROW
    },
    KnownFormat {
        formats: &[("lfm2", Some(&THINK))],
        needed: &["<|tool_call_start|>"],
        markers: &[(CallOpen, "<|tool_call_start|>"), (CallClose, "<|tool_call_end|>")],
        ..ROW
    },
    KnownFormat {
        formats: &[("apertus", Some(&APERTUS_THINK))],
        needed: &["<|tools_prefix|>"],
        markers: &[(CallOpen, "<|tools_prefix|>"), (CallClose, "<|tools_suffix|>")],
        ..ROW
    },
    KnownFormat {
        formats: &[("function-gemma", None)],
        needed: &["<start_function_call>"],
        markers: &[(CallOpen, "<start_function_call>"), (CallClose, "<end_function_call>")],
        ..ROW
    },
    KnownFormat {
        needed: &["<atem:function_calls>"],
        markers: &[
            (CallOpen, "<atem:function_calls>"),
            (CallClose, "</atem:function_calls>"),
        ],
        ..ROW
    },
    // Of these only the middle is a token, and the templates put them together from pieces. The tags around the calls
    // are forgotten now and then.
    KnownFormat {
        formats: &[("deepseek-dsml", Some(&THINK))],
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
    },
    // Granite 3.3 never closes it, Phi 4 mini does.
    KnownFormat {
        formats: &[
            ("granite", Some(&RESPONSE_THINK)),
            ("granite-3.2", Some(&GRANITE_WORDS)),
        ],
        needed: &["<|tool_call|>"],
        markers: &[(CallOpen, "<|tool_call|>"), (CallClose, "<|/tool_call|>")],
        ..ROW
    },
    // Mistral's, which nothing closes.
    KnownFormat {
        formats: &[("mistral", Some(&MISTRAL_THINK)), ("xlam", Some(&THINK))],
        needed: &["[TOOL_CALLS]"],
        markers: &[(CallOpen, "[TOOL_CALLS]")],
        ..ROW
    },
    // Llama 3's tag, which nothing closes and which is often missing.
    KnownFormat {
        formats: &[("llama3", None)],
        needed: &["<|python_tag|>"],
        markers: &[(CallOpen, "<|python_tag|>")],
        bare_calls: true,
        ..ROW
    },
    // Llama 4's tags, which stand before a call or are missing.
    KnownFormat {
        formats: &[("llama4", None)],
        needed: &["<|python_start|>"],
        markers: &[(Section, "<|python_start|>"), (Section, "<|python_end|>")],
        bare_calls: true,
        ..ROW
    },
    // GigaChat's, which nothing closes.
    KnownFormat {
        formats: &[("gigachat", None)],
        needed: &["<|function_call|>"],
        markers: &[(CallOpen, "<|function_call|>")],
        ..ROW
    },
    KnownFormat {
        formats: &[("kimi-k2", Some(&THINK))],
        needed: &["<|tool_call_begin|>"],
        markers: &[
            (Section, "<|tool_calls_section_begin|>"),
            (Section, "<|tool_calls_section_end|>"),
            (CallOpen, "<|tool_call_begin|>"),
            (CallClose, "<|tool_call_end|>"),
        ],
        ends_thoughts: true,
        ..ROW
    },
    KnownFormat {
        formats: &[("deepseek", Some(&THINK))],
        needed: &["<｜tool▁call▁begin｜>"],
        markers: &[
            (Section, "<｜tool▁calls▁begin｜>"),
            (Section, "<｜tool▁calls▁end｜>"),
            (CallOpen, "<｜tool▁call▁begin｜>"),
            (CallClose, "<｜tool▁call▁end｜>"),
        ],
        ends_thoughts: true,
        ..ROW
    },
    // GigaChat 3's, in the header of a message; the same ending closes every message.
    KnownFormat {
        formats: &[("gigachat", None)],
        needed: &["<|role_sep|>", "<|message_sep|>", "function call"],
        markers: &[
            (CallOpen, "function call<|role_sep|>"),
            (MessageClose, "<|message_sep|>"),
        ],
        ..ROW
    },
    // Firefunction's word before a list, and Phi 4 mini's; nothing closes it.
    KnownFormat {
        formats: &[("functools", None)],
        needed: &["functools["],
        markers: &[(CallWord, "functools[")],
        ..ROW
    },
    // Phi 4 mini's template has no word for calls, only for the list of tools.
    KnownFormat {
        needed: &["<|tool|>", "<|/tool|>"],
        markers: &[(CallWord, "functools[")],
        ..ROW
    },
    // Granite 20B's, which nothing closes.
    KnownFormat {
        formats: &[("granite-20b", None)],
        needed: &["<function_call>"],
        markers: &[(CallOpen, "<function_call>")],
        ..ROW
    },
    // Command R+ writes a list of actions as a block of code.
    KnownFormat {
        formats: &[("command-r", None)],
        needed: &["followed by a json-formatted list of actions"],
        markers: &[(CallHead, "Action:\n```json"), (CallHead, "Action: ```json")],
        ..ROW
    },
    // xLAM's lists, which nothing stands around.
    KnownFormat {
        formats: &[("xlam", Some(&THINK))],
        needed: &["in a single JSON array"],
        bare_calls: true,
        ..ROW
    },
    KnownFormat {
        formats: &[("k2-horizon", Some(&K2_HORIZON_THINK))],
        needed: &["<ifm|tool_call>"],
        markers: &[
            (Section, "<ifm|tool_calls>"),
            (Section, "</ifm|tool_calls>"),
            (CallOpen, "<ifm|tool_call>"),
            (CallClose, "</ifm|tool_call>"),
        ],
        ends_thoughts: true,
        ..ROW
    },
    KnownFormat {
        formats: &[("olmo3", Some(&THINK))],
        needed: &["<function_calls>"],
        markers: &[(CallOpen, "<function_calls>"), (CallClose, "</function_calls>")],
        ..ROW
    },
    KnownFormat {
        formats: &[("dots", Some(&THINK))],
        needed: &["<dots_function_call>"],
        markers: &[(CallOpen, "<dots_function_call>"), (CallClose, "</dots_function_call>")],
        ..ROW
    },
    // InternLM 2's, whose template knows no tools; its tokenizer does.
    KnownFormat {
        formats: &[("internlm2", None)],
        needed: &["<|action_start|>", "<|plugin|>", "<|action_end|>"],
        markers: &[(CallOpen, "<|action_start|><|plugin|>"), (CallClose, "<|action_end|>")],
        ..ROW
    },
    // GLM's marks around the words of an answer that count; they say nothing by themselves.
    KnownFormat {
        formats: &[("glm", Some(&THINK))],
        needed: &["<|begin_of_box|>", "<|end_of_box|>"],
        markers: &[(Section, "<|begin_of_box|>"), (Section, "<|end_of_box|>")],
        ..ROW
    },
];
