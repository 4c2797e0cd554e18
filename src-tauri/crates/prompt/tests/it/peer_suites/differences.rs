//! The deliberate differences in reading an answer: each rule once, with its reason and with what ours must be then.

use super::comparison::{alike_beginning, in_order, loosely, untyped, words, Comparison};
use super::{alike, same_calls, Call, Reading};

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
        reason: "a call of a tool that nobody offered is text, with a notice",
        explains: |it| {
            // A name that nobody wrote is a peer's correction.
            let written = |call: &&Call| it.case.source.contains(&call.name);
            let theirs: Vec<Call> = it.theirs.calls.iter().filter(written).cloned().collect();
            let same_calls = same_calls(&loosely(&it.ours.calls), &loosely(&theirs));
            // Their answer is in ours, and so is the call, in the words of the source.
            let answer = it.unmarked(&it.theirs.text);
            let more = it.source_holds(&it.ours.text) && in_order(&answer, &it.unmarked(&it.ours.text));
            let shown = more && answer.len() < it.unmarked(&it.ours.text).len() || it.source_is_told();
            it.noticed("unknown_tool") && it.same_thought() && same_calls && (shown || it.shows_call_instead())
        },
    },
    Difference {
        reason: "words after a call or between calls are the answer's",
        explains: |it| {
            let beyond = it
                .text_beyond()
                .filter(|text| !text.is_empty() && !it.holds_marker(text));
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
        reason:
            "where nothing escapes a text, a broken call after a whole one may be the rest of a text; then none is made",
        explains: |it| {
            let several = it.case.source.matches("<|open|>call ").count() > 1;
            it.broken() && it.format("kimi-k3") && several && it.ours.calls.is_empty() && it.source_is_shown()
        },
    },
    Difference {
        reason: "a call that is cut off is none, and is shown with a notice",
        explains: |it| {
            let (ours, theirs) = (&it.ours.calls, &it.theirs.calls);
            // Only the last one can be cut off, and every other one is made.
            let known = ours.len() + 1 == theirs.len() && alike_beginning(ours, theirs);
            let rest = theirs
                .last()
                .and_then(|call| Some(&it.ours.text[it.ours.text.rfind(&call.name)?..]));
            let shown = rest.is_some_and(|rest| it.case.source.trim_end().ends_with(rest.trim_end()));
            it.broken() && known && shown && it.same_thought() && !it.source_ends_whole()
        },
    },
    Difference {
        reason: "a call whose arguments are no object, or that has none at all, is none",
        explains: |it| {
            let whole = |call: &Call| call.arguments.is_object() && !call.name.contains(char::is_whitespace);
            let mut ours = it.ours.calls.iter().peekable();
            let read = it.theirs.calls.iter().all(|theirs| {
                if whole(theirs) {
                    return ours.next().is_some_and(|ours| {
                        same_calls(
                            &loosely(std::slice::from_ref(ours)),
                            &loosely(std::slice::from_ref(theirs)),
                        )
                    });
                }
                // A call with a name and no arguments is that call without them, and all else is shown.
                let name = theirs.name.split(char::is_whitespace).next().unwrap_or_default();
                let empty = theirs.arguments.is_null() || theirs.name.contains('\n');
                ours.next_if(|ours| empty && ours.name == name).is_some() || it.broken() && it.ours.text.contains(name)
            });
            read && ours.next().is_none() && it.same_thought() && !it.theirs.calls.iter().all(whole)
        },
    },
    Difference {
        reason: "a whole call counts also if the answer ends before what closes it",
        explains: |it| {
            let (ours, theirs) = (&it.ours.calls, &it.theirs.calls);
            let known = theirs.len() < ours.len() && alike_beginning(theirs, ours);
            known && !it.source_ends_whole() && it.same_thought() && words(&it.theirs.text).is_empty()
        },
    },
    Difference {
        reason: "a thought that is not closed is a thought, with a notice",
        explains: |it| {
            it.noticed("thinking_truncated")
                && it.ours.calls.is_empty()
                && it.theirs.calls.is_empty()
                && it.source_is_told()
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
            let kept = [
                "hidden_reasoning",
                "reasoning_suppression",
                "enable_thinking_false",
                "promotes_reasoning",
            ];
            let kept = kept.iter().any(|word| it.case.test.contains(word));
            let joined = it.case.parser == "MiniMaxM2AppendThinkReasoningParser";
            (kept || joined) && it.same_calls() && it.source_is_told()
        },
    },
    Difference {
        reason: "a call in a thought that is closed is quoted there",
        explains: |it| {
            let quoted = it.theirs.calls.iter().all(|call| it.ours.thinking.contains(&call.name));
            let marked = it.holds_marker(&words(&it.ours.thinking)) && !it.noticed("thinking_truncated");
            it.ours.calls.is_empty() && quoted && marked && it.source_closes() && it.source_is_told()
        },
    },
    Difference {
        reason: "a closing marker that nothing was opened for is a word, except right after a thought or a call",
        explains: |it| {
            let closes =
                |marker: &&&str| marker.contains('/') || marker.contains("<|close|>") || **marker == "<channel|>";
            let closings: Vec<&str> = it.markers.iter().filter(closes).copied().collect();
            let without = |text: &str| {
                closings
                    .iter()
                    .fold(words(text), |text, marker| text.replace(&words(marker), ""))
            };
            let stray = |marker: &&str| {
                let mut places = it
                    .case
                    .source
                    .match_indices(*marker)
                    .map(|(at, _)| it.case.source[..at].trim_end());
                // After a thought or a call stands what closed it.
                places.any(|before| !it.markers.iter().any(|marker| before.ends_with(marker)))
            };
            let shown = closings
                .iter()
                .filter(|marker| words(&it.ours.text).contains(&words(marker)));
            let same_words = without(&it.ours.text) == without(&it.theirs.text);
            it.same_calls() && it.same_thought() && same_words && shown.clone().count() > 0 && shown.clone().all(stray)
        },
    },
    Difference {
        reason: "the markers around calls are no words",
        explains: |it| {
            let same_words = words(&it.ours.text) == it.unmarked(&it.theirs.text);
            it.same_calls() && it.same_thought() && same_words && !it.ours.calls.is_empty()
        },
    },
    Difference {
        reason: "markers are written without blanks",
        explains: |it| it.format("kimi-k3") && it.case.source.contains("<|open|> ") && it.ours.text == it.case.source,
    },
    Difference {
        reason: "the first words of a call are text in the middle of a line, and where no call follows",
        explains: |it| {
            let beyond = it
                .text_beyond()
                .filter(|text| it.markers.iter().any(|marker| text.starts_with(&words(marker))));
            let none = it.theirs.calls.is_empty() && it.ours.calls.is_empty() && !it.noticed("unknown_tool");
            none && it.same_thought() && beyond.is_some() && it.source_is_told()
        },
    },
    Difference {
        reason: "their parser for one thing leaves out the other",
        explains: |it| {
            let nothing = |reading: &Reading| reading.text.trim().is_empty();
            let calls = it.case.kind == "reasoning" && nothing(it.theirs) && nothing(it.ours) && it.same_thought();
            let text =
                it.case.kind == "calls" && nothing(it.theirs) && it.theirs.calls.is_empty() && it.ours.calls.is_empty();
            calls && it.calls_are_written() || text && it.source_is_told()
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
        reason:
            "arguments stay where the model wrote them, and names as it wrote them; nothing is mended from the schema",
        explains: |it| {
            let wrapped = |ours: &Call, theirs: &Call| {
                let inner = ["arguments", "input", "properties"]
                    .iter()
                    .find_map(|key| ours.arguments.get(key));
                ours.name == theirs.name
                    && inner.is_some_and(|inner| alike(&untyped(inner), &untyped(&theirs.arguments)))
            };
            let same = |ours: &Call, theirs: &Call| {
                ours.name == theirs.name && alike(&untyped(&ours.arguments), &untyped(&theirs.arguments))
            };
            let (ours, theirs) = (&it.ours.calls, &it.theirs.calls);
            let moved = ours.len() == theirs.len()
                && ours
                    .iter()
                    .zip(theirs)
                    .all(|(ours, theirs)| same(ours, theirs) || wrapped(ours, theirs));
            let mended = it.case.parser == "MiniCPM5XMLToolParser" && it.calls_are_written();
            !ours.is_empty() && it.same_thought() && words(&it.ours.text).is_empty() && (moved || mended)
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
        reason: "a call without markers begins the answer, after a line of prose it is prose",
        explains: |it| {
            it.case
                .format
                .as_deref()
                .is_some_and(|format| format.starts_with("llama"))
                && it.ours.calls.is_empty()
                && !it.case.source.starts_with(['{', '[', '<'])
        },
    },
    Difference {
        reason: "no template asks for these calls",
        explains: |it| {
            let told = format!("{}{}", it.ours.thinking, it.ours.text);
            let llama = it.format("llama3") && told.contains("<function=");
            let paren = it.format("gemma4") && told.contains("<|tool_call>call:") && told.contains('(');
            let words = [
                "[Calling tool:",
                "<tool_call_reasoning>",
                "tool_code",
                "multiply a=12234585",
            ];
            let shown = llama || paren || words.iter().any(|word| told.contains(word));
            // All others are made, and these are shown.
            let made = it.ours.calls.iter().all(|call| it.theirs.calls.contains(call));
            let left = it
                .theirs
                .calls
                .iter()
                .all(|call| it.ours.calls.contains(call) || told.contains(&call.name));
            shown && made && left && it.calls_are_written()
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
            it.broken()
                && it.format("minimax-m3")
                && ["malformed_element", "depth_limit"]
                    .iter()
                    .any(|word| it.case.test.contains(word))
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
        explains: |it| {
            it.format("gemma4")
                && it.theirs.calls.is_empty()
                && it.ours.text == it.case.source
                && it.source_opens_late()
        },
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
        explains: |it| {
            let to_others = it.case.source.contains("to=developer") || it.case.source.starts_with("<|message|>");
            it.format("muse") && to_others && it.same_calls() && it.source_is_told()
        },
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
