//! The deliberate differences in reading an answer: each rule once, with its reason.

use serde_json::Value;

use crate::{alike, same_calls, Call, Case, Reading};

/// A case, what we read and what the peer reads.
pub struct Comparison<'a> {
    pub case: &'a Case,
    pub ours: &'a Reading,
    pub theirs: &'a Reading,
    /// The markers of the format.
    pub markers: &'a [&'static str],
}

/// A rule and when it explains a difference.
struct Difference {
    reason: &'static str,
    explains: fn(&Comparison) -> bool,
}

/// Why ours differs from theirs; `None` if nothing explains it.
pub fn reason(comparison: &Comparison) -> Option<&'static str> {
    let found = DIFFERENCES.iter().find(|difference| (difference.explains)(comparison));
    found.map(|difference| difference.reason)
}

/// The text without its whitespace.
fn words(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The value with every text trimmed, and with every other value as the text it is written as.
fn untyped(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(untyped).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), untyped(value)))
            .collect(),
        Value::String(text) => match serde_json::from_str::<Value>(text.trim()) {
            Ok(inner) => untyped(&inner),
            Err(_) => Value::from(match text.trim() {
                "True" => "true",
                "False" => "false",
                "None" => "null",
                other => other,
            }),
        },
        other => Value::from(other.to_string().trim_end_matches(".0")),
    }
}

fn loosely(calls: &[Call]) -> Vec<Call> {
    let loose = |call: &Call| Call {
        name: call.name.clone(),
        arguments: untyped(&call.arguments),
    };
    calls.iter().map(loose).collect()
}

impl Comparison<'_> {
    fn same_calls(&self) -> bool {
        same_calls(&self.ours.calls, &self.theirs.calls)
    }

    fn alike_calls(&self) -> bool {
        same_calls(&loosely(&self.ours.calls), &loosely(&self.theirs.calls))
    }

    fn same_words(&self) -> bool {
        self.same_thought() && words(&self.ours.text) == words(&self.theirs.text)
    }

    fn same_thought(&self) -> bool {
        words(&self.ours.thinking) == words(&self.theirs.thinking)
    }

    fn broken(&self) -> bool {
        self.noticed("broken_tool_call")
    }

    fn noticed(&self, code: &str) -> bool {
        self.ours.notices.iter().any(|notice| notice == code)
    }

    fn format(&self, name: &str) -> bool {
        self.case.format.as_deref() == Some(name)
    }

    /// The rest of ours after theirs, if theirs is its beginning.
    fn text_beyond(&self) -> Option<String> {
        words(&self.ours.text)
            .strip_prefix(&words(&self.theirs.text))
            .map(str::to_owned)
    }

    /// True if all of the source is shown, except markers around the calls.
    fn source_is_shown(&self) -> bool {
        self.unmarked(&self.ours.text) == self.unmarked(&self.case.source)
    }

    fn source_ends_whole(&self) -> bool {
        let source = self.case.source.trim_end();
        self.markers.iter().any(|marker| source.ends_with(marker))
    }

    /// True if a channel without a label opens after words.
    fn source_opens_late(&self) -> bool {
        let late = self.case.source.split_once("<|channel>");
        late.is_some_and(|(words, rest)| !words.trim().is_empty() && !rest.starts_with("thought"))
    }

    /// True if something in the source closes a thought.
    fn source_closes(&self) -> bool {
        self.case.source.contains("</think>")
    }

    /// The text without whitespace and markers.
    fn unmarked(&self, text: &str) -> String {
        let mut text = words(text);
        for marker in self.markers {
            text = text.replace(&words(marker), "");
        }
        text
    }

    fn is_marker(&self, text: &str) -> bool {
        self.markers.iter().any(|marker| words(marker) == text)
    }

    fn holds_marker(&self, text: &str) -> bool {
        self.markers.iter().any(|marker| text.contains(&words(marker)))
    }
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        reason: "whitespace between blocks is dropped, in the middle of them it stays",
        explains: |it| it.same_words() && it.same_calls(),
    },
    Difference {
        reason: "a value is what its schema says or else what it looks like, and blanks at its ends are its own",
        explains: |it| it.same_words() && it.alike_calls(),
    },
    Difference {
        reason: "every call that is written is made, also the same one twice",
        explains: |it| {
            let mut calls = it.ours.calls.clone();
            calls.dedup();
            it.same_words() && same_calls(&calls, &it.theirs.calls)
        },
    },
    Difference {
        reason: "every call that is written is told, also of a tool that nobody offered; who executes it refuses",
        explains: |it| {
            let offered = |call: &&Call| {
                it.case
                    .offered()
                    .iter()
                    .any(|tool| tool.get("function").unwrap_or(tool)["name"] == call.name.as_str())
            };
            let calls: Vec<Call> = it.ours.calls.iter().filter(offered).cloned().collect();
            let fewer = calls.len() < it.ours.calls.len() && same_calls(&calls, &it.theirs.calls);
            let shown = words(&it.theirs.text).is_empty() || it.case.source.contains(it.theirs.text.trim());
            fewer && it.same_thought() && shown
        },
    },
    Difference {
        reason: "words after a call or between calls are the answer's",
        explains: |it| {
            let beyond = it.text_beyond().filter(|text| !text.is_empty() && !it.holds_marker(text));
            it.alike_calls() && !it.ours.calls.is_empty() && it.same_thought() && beyond.is_some()
        },
    },
    Difference {
        reason: "what is no whole call is shown as it was written, with a notice",
        explains: |it| {
            let empty = |call: &Call| call.arguments.as_object().is_some_and(serde_json::Map::is_empty);
            let shown = |call: &&Call| empty(call) && it.ours.text.contains(&call.name);
            let made: Vec<Call> = it.theirs.calls.iter().filter(|call| !shown(call)).cloned().collect();
            let some = !made.is_empty() && same_calls(&made, &it.ours.calls);
            it.broken() && it.same_thought() && (some || it.alike_calls())
        },
    },
    Difference {
        reason: "where nothing escapes a text, a broken call after a whole one may be the rest of a text; then none is made",
        explains: |it| {
            let several = it.case.source.matches("<|open|>call ").count() > 1;
            it.broken() && it.format("kimi-k3") && several && it.ours.calls.is_empty() && it.source_is_shown()
        },
    },
    Difference {
        reason: "a call without its closing tag is none",
        explains: |it| {
            let closed = it.case.source.contains("</｜DSML｜invoke>");
            it.broken() && it.format("deepseek-dsml") && !closed && it.ours.calls.is_empty() && it.source_is_shown()
        },
    },
    Difference {
        reason: "an argument ends at its closing tag; one is missing only before another argument that the tool has, on a line of its own",
        explains: |it| {
            let holds = |call: &Call| call.arguments.to_string().contains("<｜DSML｜parameter name=");
            it.format("deepseek-dsml") && it.ours.calls.len() == it.theirs.calls.len() && it.ours.calls.iter().any(holds)
        },
    },
    Difference {
        reason: "a call that is cut off is none, and is shown with a notice",
        explains: |it| {
            let (ours, theirs) = (&it.ours.calls, &it.theirs.calls);
            let known = ours.len() < theirs.len() && alike_beginning(ours, theirs);
            it.broken() && known && !it.source_ends_whole()
        },
    },
    Difference {
        reason: "a call whose arguments are no object, or that has none at all, is none",
        explains: |it| {
            let whole = |call: &&Call| call.arguments.is_object() && !call.name.contains(char::is_whitespace);
            let calls: Vec<Call> = it.theirs.calls.iter().filter(whole).cloned().collect();
            let named = |call: &Call| call.arguments.is_null() || call.name.contains(['\n', '<']);
            let theirs = &it.theirs.calls;
            calls.len() < theirs.len() && (theirs.iter().any(named) || same_calls(&calls, &it.ours.calls))
        },
    },
    Difference {
        reason: "a whole call counts also if the answer ends before what closes it",
        explains: |it| {
            let (ours, theirs) = (&it.ours.calls, &it.theirs.calls);
            let known = theirs.len() < ours.len() && alike_beginning(theirs, ours);
            known && !it.source_ends_whole() && it.same_thought()
        },
    },
    Difference {
        reason: "a thought that is not closed is a thought, with a notice",
        explains: |it| {
            it.noticed("thinking_truncated") && it.theirs.thinking.is_empty() && it.theirs.text.contains(it.ours.thinking.trim())
        },
    },
    Difference {
        reason: "the call that is the last thing of a thought that is not closed is one",
        explains: |it| {
            it.theirs.calls.is_empty()
                && !it.ours.calls.is_empty()
                && it.theirs.text.contains(it.ours.thinking.trim())
                && !it.source_closes()
        },
    },
    Difference {
        reason: "a thought is never kept from the reader, and never the answer",
        explains: |it| {
            it.case.test.contains("hidden_reasoning")
                || it.case.test.contains("reasoning_suppression")
                || it.case.test.contains("enable_thinking_false")
                || it.case.test.contains("promotes_reasoning")
                || it.case.parser == "MiniMaxM2AppendThinkReasoningParser"
        },
    },
    Difference {
        reason: "a call in a thought that is closed is quoted there",
        explains: |it| {
            let quoted = it.theirs.calls.iter().all(|call| it.ours.thinking.contains(&call.name));
            let promoted = it.case.kind == "reasoning" && it.holds_marker(&words(&it.ours.thinking));
            let thought = !it.theirs.calls.is_empty() && !it.ours.thinking.is_empty();
            it.ours.calls.is_empty() && quoted && (promoted || thought)
        },
    },
    Difference {
        reason: "a closing marker that nothing was opened for is a word, except right after a thought or a call",
        explains: |it| {
            let same_words = it.unmarked(&it.ours.text) == it.unmarked(&it.theirs.text);
            it.same_calls() && it.same_thought() && same_words
        },
    },
    Difference {
        reason: "the first words of a call are text in the middle of a line, and where no call follows",
        explains: |it| {
            let beyond = it
                .text_beyond()
                .filter(|text| it.markers.iter().any(|marker| text.starts_with(&words(marker))));
            it.theirs.calls.is_empty() && it.ours.calls.is_empty() && it.same_thought() && beyond.is_some()
        },
    },
    Difference {
        reason: "their parser for one thing leaves out the other",
        explains: |it| {
            let calls =
                it.case.kind == "reasoning" && it.theirs.text.trim().is_empty() && it.ours.text.trim().is_empty() && it.same_thought();
            let text =
                it.case.kind == "calls" && it.theirs.text.trim().is_empty() && it.theirs.calls.is_empty() && it.ours.calls.is_empty();
            calls || text
        },
    },
    Difference {
        reason: "a stream that its test does not end holds back what may become a marker",
        explains: |it| {
            let held = |ours: &str, theirs: &str| {
                let (ours, theirs) = (words(ours), words(theirs));
                ours.strip_prefix(&theirs).is_some_and(|rest| {
                    let begins = |marker: &&str| words(marker).starts_with(rest);
                    rest.is_empty() || it.markers.iter().any(begins) || it.is_marker(rest)
                })
            };
            let texts = held(&it.ours.text, &it.theirs.text);
            it.case.streamed && it.same_calls() && texts && held(&it.ours.thinking, &it.theirs.thinking)
        },
    },
    Difference {
        reason: "arguments stay where the model wrote them, and names as it wrote them; nothing is mended from the schema",
        explains: |it| {
            let wrapped = |call: &Call| {
                ["arguments", "input", "properties"]
                    .iter()
                    .any(|key| call.arguments.get(key).is_some())
            };
            let mended = it.case.parser == "MiniCPM5XMLToolParser"
                && [
                    "alias",
                    "extra_arg",
                    "required",
                    "zero_arg",
                    "case_sensitive",
                    "duplicate",
                    "schema",
                ]
                .iter()
                .any(|word| it.case.test.contains(word));
            it.ours.calls.iter().any(wrapped) || mended
        },
    },
    Difference {
        reason: "what a detokenizer did not join, and tokens that a model only reserves, are no parser's",
        explains: |it| {
            let written = ["Ġ", "Ċ", "<functionname", "reserved_"]
                .iter()
                .any(|word| it.case.source.contains(word));
            it.case.parser.starts_with("MiniCPM") && (written || it.case.test.contains("NewlineRecovery"))
        },
    },
    Difference {
        reason: "headers of harmony have no line ends",
        explains: |it| {
            let source = &it.case.source;
            it.format("harmony")
                && ["\n<|message|>", "\n<|constrain|>", "<|start|>\n"]
                    .iter()
                    .any(|text| source.contains(text))
        },
    },
    Difference {
        reason: "a call without markers begins the answer, after a line of prose it is prose",
        explains: |it| {
            it.case.format.as_deref().is_some_and(|format| format.starts_with("llama"))
                && it.ours.calls.is_empty()
                && !it.case.source.starts_with(['{', '[', '<'])
        },
    },
    Difference {
        reason: "no template asks for these calls",
        explains: |it| {
            let llama = it.format("llama3") && it.case.source.contains("<function=");
            let words = [
                "[Calling tool:",
                "<tool_call_reasoning>",
                "tool_code",
                "multiply a=12234585",
                "<｜DSML｜toolcalls>",
                "<｜DSML｜tool>",
            ];
            llama || words.iter().any(|word| it.case.source.contains(word))
        },
    },
    Difference {
        reason: "a quotation mark that is not escaped ends a text",
        explains: |it| it.broken() && it.format("lfm2") && it.case.test.contains("nested"),
    },
    Difference {
        reason: "a block of code around the answer is the answer's",
        explains: |it| {
            let text = it.ours.text.trim();
            let inner = text.strip_prefix("```json").and_then(|text| text.strip_suffix("```"));
            it.same_thought() && inner.is_some_and(|inner| words(inner) == words(&it.theirs.text))
        },
    },
    Difference {
        reason: "what the prompt says, and an opening marker that repeats it, is not the thought's",
        explains: |it| {
            let ours = words(&it.ours.thinking);
            let said = words(&it.theirs.thinking)
                .strip_suffix(&ours)
                .is_some_and(|rest| it.is_marker(rest));
            it.case.prompt.is_some() && it.alike_calls() && said && words(&it.ours.text) == words(&it.theirs.text)
        },
    },
    Difference {
        reason: "a template that knows no thoughts has none",
        explains: |it| {
            it.case
                .template
                .as_deref()
                .is_some_and(|template| template.contains("moonshotai-Kimi-K2.jinja"))
                && it.case.opened
        },
    },
    Difference {
        reason: "a call whose elements do not nest, or nest too deep, is none",
        explains: |it| {
            it.broken() && it.format("minimax-m3") && ["malformed_element", "depth_limit"].iter().any(|word| it.case.test.contains(word))
        },
    },
    Difference {
        reason: "elements inside an argument are its fields and `<item>`s a list; markup that is neither is text",
        explains: |it| {
            let m3 = it.format("minimax-m3")
                && ["unknown_tool_keeps_text", "mixed_text"]
                    .iter()
                    .any(|word| it.case.test.contains(word));
            m3 || it.case.source.contains("Union string</mm:think>")
        },
    },
    Difference {
        reason: "nothing that is held back is lost, and no half of a marker shows",
        explains: |it| {
            let (ours, theirs, source) = (words(&it.ours.text), words(&it.theirs.text), words(&it.case.source));
            it.case.streamed
                && it.same_calls()
                && it.same_thought()
                && source.contains(&theirs)
                && (ours.is_empty() || ours == source || theirs.starts_with(&ours))
        },
    },
    Difference {
        reason: "after words only its label shows that a channel is meant",
        explains: |it| it.format("gemma4") && it.theirs.calls.is_empty() && it.ours.text == it.case.source && it.source_opens_late(),
    },
    Difference {
        reason: "a call in a block of code is quoted there",
        explains: |it| {
            it.format("xlam")
                && it.case.source.contains("```json")
                && it.ours.calls.is_empty()
                && words(&it.ours.text) == words(&it.case.source)
        },
    },
    Difference {
        reason: "what Muse writes to a developer is shown, and to nobody is a thought",
        explains: |it| it.format("muse") && (it.case.source.contains("to=developer") || it.case.source.starts_with("<|message|>")),
    },
    Difference {
        reason: "for DSML the marker of a call ends a thought",
        explains: |it| {
            it.format("deepseek-dsml")
                && it.theirs.calls.is_empty()
                && !it.ours.calls.is_empty()
                && it.case.test.contains("orphan_invoke_inside_reasoning")
        },
    },
];

/// True if these calls are a prefix of the others.
fn alike_beginning(first: &[Call], all: &[Call]) -> bool {
    let (first, all) = (loosely(first), loosely(all));
    first
        .iter()
        .zip(&all)
        .all(|(a, b)| a.name == b.name && alike(&a.arguments, &b.arguments))
}
