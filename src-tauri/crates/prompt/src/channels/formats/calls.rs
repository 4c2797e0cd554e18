//! The ways of marking calls; the readers in `tool_calls` tell by themselves which form stands in a call.

use super::marker::MarkerKind::MessageClose;
use super::row::{KnownFormat, ROW};
use super::thoughts::{
    ANSWER_THINK, APERTUS_THINK, APRIEL_THINK, GRANITE_WORDS, HUNYUAN_3_THINK, K2_HORIZON_THINK, LONGCAT_THINK,
    MINIMAX_THINK, MISTRAL_THINK, RESPONSE_THINK, SEED_THINK, THINK, THINKING,
};

/// The row of calls between such markers, in the formats of these names.
const fn calls(
    formats: &'static [(&'static str, &'static KnownFormat)],
    calls: &'static [(&'static str, &'static str)],
) -> KnownFormat {
    KnownFormat { formats, calls, ..ROW }
}

/// The ways of marking calls; all that are known count, unless one stands alone.
#[rustfmt::skip]
pub(super) const CALLS: &[KnownFormat] = &[
    // Stands before each tag of its calls, so that `<tool_call>` alone is text.
    KnownFormat {
        needed: &["]<]minimax[>["], alone: true,
        ..calls(&[("minimax-m3", &MINIMAX_THINK)], &[("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>")])
    },
    KnownFormat {
        sections: &["<tool_calls:opensource>", "</tool_calls:opensource>"],
        ..calls(&[("hunyuan-3", &HUNYUAN_3_THINK)], &[("<tool_call:opensource>", "</tool_call:opensource>")])
    },
    calls(
        &[("glm", &THINK), ("qwen", &THINK), ("qwen-coder", &THINK), ("xlam", &THINK)],
        &[("<tool_call>", "</tool_call>")],
    ),
    calls(
        &[("apriel", &APRIEL_THINK), ("hunyuan", &ANSWER_THINK), ("thinking", &THINKING)],
        &[("<tool_calls>", "</tool_calls>")],
    ),
    // Qwen3-Coder now and then forgets `<tool_call>`; MiniCPM and Functionary never write it.
    KnownFormat { formats: &[("qwen-coder", &THINK)], heads: &["<function="], ..ROW },
    KnownFormat { formats: &[("minicpm", &THINK)], heads: &["<function name="], ..ROW },
    calls(&[("nemotron", &THINK)], &[("<TOOLCALL>", "</TOOLCALL>")]),
    // Seed's, in Qwen3-Coder's words without its line ends.
    KnownFormat { verbatim: true, ..calls(&[("seed", &SEED_THINK)], &[("<seed:tool_call>", "</seed:tool_call>")]) },
    calls(&[("longcat", &LONGCAT_THINK)], &[("<longcat_tool_call>", "</longcat_tool_call>")]),
    calls(&[("minimax", &THINK)], &[("<minimax:tool_call>", "</minimax:tool_call>")]),
    calls(&[("lfm2", &THINK)], &[("<|tool_call_start|>", "<|tool_call_end|>")]),
    calls(&[("apertus", &APERTUS_THINK)], &[("<|tools_prefix|>", "<|tools_suffix|>")]),
    calls(&[("function-gemma", &ROW)], &[("<start_function_call>", "<end_function_call>")]),
    calls(&[], &[("<atem:function_calls>", "</atem:function_calls>")]),
    // Of these only the middle is a token, and the templates put them together from pieces. The tags around the calls
    // are forgotten now and then.
    KnownFormat {
        needed: &["｜DSML｜"],
        heads: &["<｜DSML｜invoke", "<｜DSML｜ invoke"],
        ends_thoughts: true,
        ..calls(&[("deepseek-dsml", &THINK)], &[
            ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
            ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
            // Misspelled now and then.
            ("<｜DSML｜toolcalls>", "</｜DSML｜toolcalls>"),
            ("<｜DSML｜tool>", "</｜DSML｜tool>"),
            // DeepSeek V4.1 puts blanks before its words.
            ("<｜DSML｜ calls>", "</｜DSML｜ calls>"),
        ])
    },
    // Granite 3.3 never closes it, Phi 4 mini does.
    calls(&[("granite", &RESPONSE_THINK), ("granite-3.2", &GRANITE_WORDS)], &[("<|tool_call|>", "<|/tool_call|>")]),
    calls(&[("mistral", &MISTRAL_THINK), ("xlam", &THINK)], &[("[TOOL_CALLS]", "")]),
    // Llama 3's tag is often missing.
    KnownFormat { bare_calls: true, ..calls(&[("llama3", &ROW)], &[("<|python_tag|>", "")]) },
    // Llama 4's tags, which stand before a call or are missing.
    KnownFormat {
        formats: &[("llama4", &ROW)],
        needed: &["<|python_start|>"],
        sections: &["<|python_start|>", "<|python_end|>"],
        bare_calls: true,
        ..ROW
    },
    calls(&[("gigachat", &ROW)], &[("<|function_call|>", "")]),
    KnownFormat {
        sections: &["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"],
        ends_thoughts: true,
        ..calls(&[("kimi-k2", &THINK)], &[("<|tool_call_begin|>", "<|tool_call_end|>")])
    },
    KnownFormat {
        sections: &["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
        ends_thoughts: true,
        ..calls(&[("deepseek", &THINK)], &[("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>")])
    },
    // GigaChat 3's, in the header of a message; the same ending closes every message.
    KnownFormat {
        needed: &["<|role_sep|>", "<|message_sep|>", "function call"],
        messages: &[(MessageClose, "<|message_sep|>")],
        ..calls(&[("gigachat", &ROW)], &[("function call<|role_sep|>", "")])
    },
    // Firefunction's word before a list, and Phi 4 mini's, whose template only has words for the list of tools.
    KnownFormat { formats: &[("functools", &ROW)], words: &["functools["], ..ROW },
    KnownFormat { needed: &["<|tool|>", "<|/tool|>"], words: &["functools["], ..ROW },
    // Granite 20B's.
    calls(&[("granite-20b", &ROW)], &[("<function_call>", "")]),
    // Command R+ writes a list of actions as a block of code.
    KnownFormat {
        formats: &[("command-r", &ROW)],
        needed: &["followed by a json-formatted list of actions"],
        heads: &["Action:\n```json", "Action: ```json"],
        ..ROW
    },
    // xLAM's lists, which nothing stands around.
    KnownFormat { formats: &[("xlam", &THINK)], needed: &["in a single JSON array"], bare_calls: true, ..ROW },
    KnownFormat {
        sections: &["<ifm|tool_calls>", "</ifm|tool_calls>"],
        ends_thoughts: true,
        ..calls(&[("k2-horizon", &K2_HORIZON_THINK)], &[("<ifm|tool_call>", "</ifm|tool_call>")])
    },
    calls(&[("olmo3", &THINK)], &[("<function_calls>", "</function_calls>")]),
    calls(&[("dots", &THINK)], &[("<dots_function_call>", "</dots_function_call>")]),
    // InternLM 2's, whose template knows no tools; its tokenizer does.
    KnownFormat {
        needed: &["<|action_start|>", "<|plugin|>", "<|action_end|>"],
        ..calls(&[("internlm2", &ROW)], &[("<|action_start|><|plugin|>", "<|action_end|>")])
    },
    // GLM's marks around the words of an answer that count; they say nothing by themselves.
    KnownFormat {
        formats: &[("glm", &THINK)],
        needed: &["<|begin_of_box|>", "<|end_of_box|>"],
        frames: &["<|begin_of_box|>", "<|end_of_box|>"],
        ..ROW
    },
];
