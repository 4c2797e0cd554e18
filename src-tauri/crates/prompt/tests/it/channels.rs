//! Reasoning, answer and calls set apart, in every way a model may write them.

use std::sync::LazyLock;

use crate::speaker::{Answer, Speaker};
use prompt::{Piece, Prompt};
use proptest::prelude::*;
use protocol::NoticeCode;

#[test]
fn gemma_channels_are_told_apart() {
    let gemma = Speaker::gemma();
    for (text, parts) in [
        ("<|channel>thought\nT\n<channel|>A", vec!["T:T", "A:A"]),
        (
            "  <|channel>thought\n\n  T\n\n<channel|>\n\n A \n",
            vec!["T:\n  T", "A:A \n"],
        ),
        ("A", vec!["A:A"]),
        ("\n A", vec!["A:\n A"]),
        (" \n", vec!["A: \n"]),
        ("", vec![]),
        // Text held back as a possible beginning comes out at the end.
        ("1 <", vec!["A:1 <"]),
        // An empty thought is none, with or without its label.
        ("<|channel>thought\n<channel|>A", vec!["A:A"]),
        ("<|channel>thought<channel|>\n\nA", vec!["A:A"]),
        ("<|channel><channel|>A", vec!["A:A"]),
        ("<|channel>thought\n \n<channel|>", vec![]),
        // Blocks alternate.
        (
            "<|channel>thought\nT1<channel|>A1<|channel>thought\nT2<channel|>A2",
            vec!["T:T1", "A:A1", "T:T2", "A:A2"],
        ),
        (
            "<|channel>thought\nT1<channel|> <|channel>thought\nT2<channel|>A",
            vec!["T:T1\n\nT2", "A:A"],
        ),
        (
            "<|channel>thought\nT1<channel|>A1\n<|channel>thought\nT2<channel|>\nA2",
            vec!["T:T1", "A:A1\n", "T:T2", "A:\nA2"],
        ),
        // Without a label it is a thought as well, unless the label is an answer's.
        ("<|channel>thoughtful reply", vec!["T:thoughtful reply"]),
        ("<|channel>final\nA<channel|>B", vec!["A:AB"]),
        ("<|channel>musings\nA<channel|>B", vec!["T:musings\nA", "A:B"]),
        // The opening marker is missing.
        ("thought\nT\n<channel|>A", vec!["T:T", "A:A"]),
        ("thought\n<channel|>A", vec!["A:A"]),
        ("thought<channel|>A", vec!["A:A"]),
        ("thought\nof it", vec!["A:thought\nof it"]),
        ("thought of it\n", vec!["A:thought of it\n"]),
        ("thou", vec!["A:thou"]),
        ("a\nthought\nT<channel|>b", vec!["A:a\nthought\nT<channel|>b"]),
        // Literal among words.
        ("use <|channel> here and more", vec!["A:use <|channel> here and more"]),
        ("a <channel|> b", vec!["A:a <channel|> b"]),
        ("a <|channel>", vec!["A:a <|channel>"]),
        ("a <|channel>thou", vec!["A:a <|channel>thou"]),
        (
            "<|channel>thought\nT <|channel>thought\nU<channel|>A",
            vec!["T:T <|channel>thought\nU", "A:A"],
        ),
        ("<|channel>thought\n<|channel>thought\nT<channel|>A", vec!["T:T", "A:A"]),
        // Whitespace inside is kept.
        (
            "<|channel>thought\na\n\n  b \n<channel|>c\n\n  d",
            vec!["T:a\n\n  b", "A:c\n\n  d"],
        ),
        ("<|channel>thought\n🐱<channel|>🐱", vec!["T:🐱", "A:🐱"]),
    ] {
        assert_eq!(gemma.parts(text), parts, "{text:?}");
    }
}

#[test]
fn a_think_block_opens_before_the_first_words_only() {
    for speaker in [Speaker::think(), Speaker::spelled_think()] {
        for (text, parts) in [
            ("<think>\nT\n</think>\n\nA", vec!["T:T", "A:A"]),
            ("\n<think>T</think>A", vec!["T:T", "A:A"]),
            ("<think>\n\n</think>\n\nA", vec!["A:A"]),
            (
                "Use <think> tags, like <think>x</think>.",
                vec!["A:Use <think> tags, like <think>x</think>."],
            ),
            ("a </think> b", vec!["A:a </think> b"]),
            ("</think>A", vec!["A:</think>A"]),
            ("<think>a <think> b</think>A", vec!["T:a <think> b", "A:A"]),
            ("<think><think>\na</think>A", vec!["T:a", "A:A"]),
            ("<think>a</think><think>b</think>A", vec!["T:a\n\nb", "A:A"]),
            ("1 <", vec!["A:1 <"]),
            ("1 </thin", vec!["A:1 </thin"]),
            ("<thin", vec!["A:<thin"]),
            ("<think>a < b</think>A<think", vec!["T:a < b", "A:A<think"]),
            ("A, no tags", vec!["A:A, no tags"]),
            (
                "Sure.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"Zür\"}}\n</tool_call>\n",
                vec!["A:Sure.\n", "C:f{\"a\":\"Zür\"}"],
            ),
            (
                "<think>I may <tool_call> it</think>A",
                vec!["T:I may <tool_call> it", "A:A"],
            ),
        ] {
            assert_eq!(speaker.parts(text), parts, "{text:?}");
        }
    }
}

#[test]
fn unclosed_thought_is_thinking() {
    let gemma = Speaker::gemma();
    let answer = gemma.answer("", true, &[], &gemma.ids("<|channel>thought\nlong \n"));
    assert_eq!(
        (answer.parts, answer.notices),
        (vec!["T:long \n".into()], vec![NoticeCode::ThinkingTruncated])
    );
    for cut in [
        "<|channel>",
        "<|channel>thought",
        "<|channel>thought\n",
        "<|channel>thought\n \n",
    ] {
        assert_eq!(gemma.answer("", true, &[], &gemma.ids(cut)).parts, [""; 0], "{cut:?}");
        assert_eq!(gemma.answer("", true, &[], &gemma.ids(cut)).notices, [], "{cut:?}");
    }
}

#[test]
fn a_thought_while_off_is_kept_out_and_told_once() {
    for (speaker, text) in [
        (
            Speaker::gemma(),
            "<|channel>thought\na b<channel|>A<|channel>thought\nb<channel|>B",
        ),
        (Speaker::think(), "<think>\na b</think>AB"),
        (Speaker::spelled_think(), "<think>\na b</think>AB"),
    ] {
        let answer = speaker.answer("", false, &[], &speaker.ids(text));
        assert_eq!(
            (answer.parts, answer.notices),
            (vec!["A:AB".into()], vec![NoticeCode::ThoughtWhileOff]),
            "{text}"
        );
        assert!(answer.tokens >= 2);
    }
    let gemma = Speaker::gemma();
    let empty = gemma.answer("", false, &[], &gemma.ids("<|channel>thought\n<channel|>A"));
    assert_eq!((empty.parts, empty.notices), (vec!["A:A".into()], vec![]));
    let unclosed = gemma.answer("", false, &[], &gemma.ids("<|channel>thought\na"));
    assert_eq!(
        (unclosed.parts, unclosed.notices),
        (vec![], vec![NoticeCode::ThoughtWhileOff])
    );
}

#[test]
fn a_thought_that_the_prompt_opened_goes_on() {
    let gemma = Speaker::gemma();
    let go = |speaker: &Speaker, prompt: &str, text: &str| speaker.answer(prompt, true, &[], &speaker.ids(text)).parts;
    for prompt in ["<|turn>model\n<|channel>thought\n", "<|turn>model\n<|channel>"] {
        let text = if prompt.ends_with('\n') {
            "T<channel|>A"
        } else {
            "thought\nT<channel|>A"
        };
        assert_eq!(go(&gemma, prompt, text), ["T:T", "A:A"], "{prompt:?}");
    }
    assert_eq!(
        go(&gemma, "<|channel>thought\n", "<|channel>thought\nT<channel|>A"),
        ["T:T", "A:A"]
    );
    assert_eq!(go(&gemma, "<|channel>thought\n", "T"), ["T:T"]);
    assert_eq!(
        go(&gemma, "<|channel>thought\nfirst half", " second<channel|>A"),
        ["T: second", "A:A"]
    );
    // Empty blocks, and what a model writes after one.
    assert_eq!(go(&gemma, "<|channel>thought\n<channel|>", "\nA"), ["A:A"]);
    assert_eq!(
        go(&gemma, "<|channel>thought\n<channel|>", "<channel|>A<channel|>"),
        ["A:A"]
    );
    assert_eq!(
        go(
            &gemma,
            "<|channel>thought\n<channel|>",
            "<|channel>thought\nT<channel|>A"
        ),
        ["T:T", "A:A"]
    );
    // A thought of an earlier turn is over.
    assert_eq!(go(&gemma, "<|channel>thought\nx<turn|>\n<|turn>model\n", "A"), ["A:A"]);
    for speaker in [Speaker::think(), Speaker::spelled_think()] {
        assert_eq!(
            go(&speaker, "<|turn>model\n<think>\n", "T\n</think>\n\nA"),
            ["T:T", "A:A"]
        );
        assert_eq!(
            go(&speaker, "<|turn>model\n<think>\n", "<think>\nT</think>A"),
            ["T:T", "A:A"]
        );
        assert_eq!(go(&speaker, "<|turn>model\n<think>\n\n</think>\n\n", "A"), ["A:A"]);
        assert_eq!(
            go(&speaker, "<|turn>model\n<think>\n\n</think>\n\n", "</think>\n\nA"),
            ["A:A"]
        );
        assert_eq!(go(&speaker, "<|turn>model\n", "A"), ["A:A"]);
    }
}

#[test]
fn gemma_calls_become_calls() {
    let gemma = Speaker::gemma();
    let call = "<|tool_call>call:get_weather{city:<|\"|>Oslo<|\"|>}<tool_call|>";
    assert_eq!(gemma.parts(call), ["C:get_weather{\"city\":\"Oslo\"}"]);
    assert_eq!(
        gemma.parts(&format!("Sure. {call}\n{call}")),
        [
            "A:Sure. ",
            "C:get_weather{\"city\":\"Oslo\"}",
            "C:get_weather{\"city\":\"Oslo\"}"
        ]
    );
    assert_eq!(
        gemma.parts(&format!("<|channel>thought\nT<channel|>{call}")),
        ["T:T", "C:get_weather{\"city\":\"Oslo\"}"]
    );
    // A call ends a thought that was left open, and a stop token may stand for its closing marker.
    assert_eq!(
        gemma.parts(&format!("<|channel>thought\nT\n{call}A")),
        ["T:T", "C:get_weather{\"city\":\"Oslo\"}", "A:A"]
    );
    assert_eq!(gemma.parts("<|tool_call>call:now{}"), ["C:now{}"]);
    assert_eq!(
        gemma.parts(&format!("{call}<|channel>thought\nT<channel|>A")),
        ["C:get_weather{\"city\":\"Oslo\"}", "T:T", "A:A"]
    );
    assert_eq!(gemma.parts("a <tool_call|> b"), ["A:a <tool_call|> b"]);
}

#[test]
fn a_broken_call_becomes_text_and_a_notice() {
    let gemma = Speaker::gemma();
    for text in [
        "<|tool_call>call:get_weather{city:<tool_call|>",
        "<|tool_call>call:get_weather{city:<|\"|>Os",
        "<|tool_call>hello",
    ] {
        let answer = gemma.answer("", true, &[], &gemma.ids(text));
        assert_eq!(
            (answer.parts, answer.notices),
            (vec![format!("A:{text}")], vec![NoticeCode::BrokenToolCall]),
            "{text}"
        );
    }
}

#[test]
fn thinking_tokens_are_those_between_the_markers() {
    let gemma = Speaker::gemma();
    // The label after the marker is none of them.
    let (label, words) = ("thought\n", "12345");
    let count = |text: &str| gemma.answer("", true, &[], &gemma.ids(text)).tokens as usize;
    assert_eq!(count(&format!("<|channel>{label}{words}<channel|>67890")), 5);
    assert_eq!(count(&format!("<|channel>{label}{words}")), 5);
    assert_eq!(count("12345"), 0);
    let spelled = Speaker::spelled_think();
    assert_eq!(
        spelled
            .answer("", true, &[], &spelled.ids("<think>12345</think>67"))
            .tokens,
        5
    );
    assert_eq!(
        spelled
            .answer("<think>\n", true, &[], &spelled.ids("12345</think>67"))
            .tokens,
        5
    );
}

#[test]
fn ids_of_a_call_in_an_open_thought_are_none_of_it() {
    let call = "12345<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
    for speaker in [Speaker::think(), Speaker::spelled_think()] {
        let answer = speaker.answer("<think>\n", true, &[], &speaker.ids(call));
        assert_eq!(
            (answer.parts, answer.tokens),
            (vec!["T:12345".to_owned(), "C:f{}".to_owned()], 5)
        );
        let ids = speaker.ids(&format!("{call}6</think>7"));
        assert!(speaker.answer("<think>\n", true, &[], &ids).tokens > 12);
    }
}

#[test]
fn stop_texts_end_what_is_read_on_trial() {
    let gemma = Speaker::gemma();
    let (mut parser, mut answer) = (
        gemma.processor.parser(&Prompt::default(), true, &["END".into()]),
        Answer::default(),
    );
    let ids = gemma.ids("<|tool_call>call:f{a:<|\"|>END<|\"|>}<tool_call|>one EN");
    assert!(ids
        .iter()
        .all(|id| parser.push(*id).is_empty() && !parser.stopped_by_text()));
    let rest = gemma.ids("D two");
    rest.iter()
        .flat_map(|id| parser.push(*id))
        .for_each(|piece| answer.take(piece));
    assert!(parser.stopped_by_text());
    assert_eq!(answer.parts, ["C:f{\"a\":\"END\"}", "A:one "]);
}

#[test]
fn a_broken_call_that_a_stop_text_cuts_is_told_as_one() {
    let gemma = Speaker::gemma();
    let answer = |text: &str| {
        let answer = gemma.answer("", true, &["\n"], &gemma.ids(text));
        (answer.parts, answer.notices)
    };
    let broken = vec![NoticeCode::BrokenToolCall];
    for (text, told) in [
        ("<|tool_call>hello\nyou", "A:<|tool_call>hello"),
        ("<|tool_call>call:f{a:\n<tool_call|>c", "A:<|tool_call>call:f{a:"),
    ] {
        assert_eq!(answer(text), (vec![told.to_owned()], broken.clone()), "{text}");
    }
    // Of a call after the stop text nothing is told.
    assert_eq!(answer("a\n<|tool_call>call:f{a:"), (vec!["A:a".to_owned()], Vec::new()));
}

#[test]
fn stop_texts_cut_the_answer_alone() {
    let gemma = Speaker::gemma();
    let answer = gemma.answer(
        "",
        true,
        &["END", "STOP"],
        &gemma.ids("<|channel>thought\na END b<channel|>one STOP two END"),
    );
    assert_eq!(
        (answer.parts, answer.stopped),
        (vec!["T:a END b".into(), "A:one ".into()], true)
    );
    assert_eq!(
        gemma.answer("", true, &["END"], &gemma.ids("one EN")).parts,
        ["A:one EN"]
    );
    // A stop text does not reach across a block, and whitespace may be one.
    let ids = gemma.ids("E<|channel>thought\nx<channel|>ND");
    assert_eq!(gemma.answer("", true, &["END"], &ids).parts, ["A:E", "T:x", "A:ND"]);
    assert_eq!(gemma.answer("", true, &["\n\n"], &gemma.ids("a\n\nb")).parts, ["A:a"]);
}

#[test]
fn half_a_character_before_a_marker_is_replaced() {
    let gemma = Speaker::gemma();
    let cat = gemma.ids("🐱");
    let mut ids = gemma.ids("<|channel>thought\n");
    ids.extend(&cat[..2]);
    ids.extend(gemma.ids("<channel|>A"));
    ids.extend(&cat[..3]);
    assert_eq!(gemma.answer("", true, &[], &ids).parts, ["T:\u{FFFD}", "A:A\u{FFFD}"]);
}

/// Any sequence of markers and texts that a model may write.
fn script() -> impl Strategy<Value = String> {
    let words = [
        "<|channel>",
        "<|channel>thought\n",
        "<channel|>",
        "<|tool_call>",
        "<tool_call|>",
        "call:f{a:1}",
        "call:f{",
        "thought",
        "\n",
        "tho",
        "ught",
    ];
    let texts = [" ", "\n\n", "a", "b c", "<", "🐱", "12", "x\n", "▁"];
    prop::collection::vec(prop::sample::select([words.as_slice(), &texts].concat()), 0..16)
        .prop_map(|words| words.concat())
}

/// A turn built from its parts, whose reading is known: thought, answer, call.
fn turn() -> impl Strategy<Value = (String, String, bool)> {
    let words = |least: usize| {
        prop::collection::vec(
            prop::sample::select(vec!["a", "b\n", " c", "🐱", "<", "\n\n", "thought"]),
            least..6,
        )
    };
    (words(0), words(0), any::<bool>()).prop_map(|(thought, answer, call)| (thought.concat(), answer.concat(), call))
}

/// The same text in the smallest tokens that spell it, so that markers stay whole and all else is cut.
fn in_small_tokens(speaker: &Speaker, text: &str) -> Vec<u32> {
    let ids = speaker.ids(text).into_iter();
    ids.flat_map(|id| {
        let spelled = speaker.processor.decode(&[id]).unwrap();
        if speaker.processor.tokenizer().is_control(id) || spelled.chars().count() < 2 || spelled.contains('\u{FFFD}') {
            return vec![id];
        }
        spelled.chars().flat_map(|c| speaker.ids(&c.to_string())).collect()
    })
    .collect()
}

/// The characters that have to come out again, in this order: all but markers, blanks and the letters of the label.
fn content(text: &str) -> String {
    let markers = ["<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>"];
    let text = markers
        .iter()
        .fold(text.to_owned(), |text, marker| text.replace(marker, ""));
    text.chars()
        .filter(|c| !c.is_whitespace() && !"thoug▁".contains(*c))
        .collect()
}

proptest! {
    #[test]
    fn the_reading_does_not_depend_on_the_tokens(text in script(), thinking_on in any::<bool>()) {
        for speaker in [&*GEMMA, &*THINK, &*SPELLED] {
            let text = speaker.translate(&text);
            let whole = speaker.answer("", thinking_on, &[], &speaker.ids(&text));
            let small = speaker.answer("", thinking_on, &[], &in_small_tokens(speaker, &text));
            prop_assert_eq!((whole.parts, whole.notices), (small.parts, small.notices), "{}", text);
        }
    }

    #[test]
    fn nothing_is_lost_doubled_or_moved(text in script()) {
        let parts = GEMMA.parts(&text);
        let said: String = parts.iter().map(|part| if part.starts_with("C:") { "call:f{a:1}" } else { &part[2..] }).collect();
        prop_assert_eq!(content(&said), content(&text), "{:?} from {:?}", parts, text);
    }

    #[test]
    fn what_a_turn_is_made_of_is_what_is_read(turns in prop::collection::vec(turn(), 0..4)) {
        let (mut text, mut expected, mut spoken, mut thought_last) = (String::new(), Answer::default(), false, false);
        for (thought, answer, call) in &turns {
            text.push_str(&format!("<|channel>thought\n{thought}<channel|>{answer}"));
            if !thought.trim().is_empty() {
                // The words of two thoughts do not run together.
                let apart = if thought_last { "\n\n" } else { "" };
                expected.take(Piece::Thinking(format!("{apart}{}", thought.trim_end())));
                thought_last = true;
            }
            thought_last &= answer.trim().is_empty() && !call;
            // Leading whitespace belongs to the boundary until something was said, trailing to the answer.
            if !answer.trim().is_empty() {
                expected.take(Piece::Text(if spoken { answer.clone() } else { answer.trim_start().into() }));
                spoken = true;
            }
            if *call {
                text.push_str("<|tool_call>call:f{a:1}<tool_call|>");
                expected.take(Piece::ToolCall { name: "f".into(), arguments: serde_json::json!({"a": 1}) });
            }
        }
        prop_assert_eq!(GEMMA.parts(&text), expected.parts, "{:?}", text);
    }

    #[test]
    fn thinking_off_hides_thoughts_and_nothing_else(text in script()) {
        let (on, off) = (GEMMA.answer("", true, &[], &GEMMA.ids(&text)), GEMMA.answer("", false, &[], &GEMMA.ids(&text)));
        let mut visible = Answer::default();
        for part in on.parts.iter().filter(|part| !part.starts_with("T:")) {
            match part.strip_prefix("A:") {
                Some(text) => visible.take(Piece::Text(text.into())),
                None => visible.parts.push(part.clone()),
            }
        }
        prop_assert_eq!(&visible.parts, &off.parts, "{:?}", text);
        let thought = on.parts.iter().any(|part| part.starts_with("T:"));
        let notices = off.notices.iter().filter(|code| **code == NoticeCode::ThoughtWhileOff);
        prop_assert_eq!(notices.count(), usize::from(thought));
        prop_assert_eq!(on.tokens, off.tokens);
    }
}

static GEMMA: LazyLock<Speaker> = LazyLock::new(Speaker::gemma);
static THINK: LazyLock<Speaker> = LazyLock::new(Speaker::think);
static SPELLED: LazyLock<Speaker> = LazyLock::new(Speaker::spelled_think);
