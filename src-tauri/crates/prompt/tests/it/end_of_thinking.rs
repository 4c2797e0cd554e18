//! The end of a thought for a model: of every format, of every template of public packages, and what shows afterwards.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use prompt::{ChannelParser, ChatProcessor, Event, Piece, Prompt, Splitter, Template};
use serde_json::{json, Map};

/// Formats whose models do not think.
const THOUGHTLESS: [&str; 9] = [
    "command-r",
    "function-gemma",
    "functionary",
    "functools",
    "gigachat",
    "granite-20b",
    "internlm2",
    "llama3",
    "llama4",
];

/// Thoughts, text and notices, each in one.
fn said(pieces: impl IntoIterator<Item = Piece>) -> (String, String, Vec<String>) {
    let mut said = (String::new(), String::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Thinking(text) => said.0.push_str(&text),
            Piece::Text(text) => said.1.push_str(&text),
            Piece::ToolCall { name, .. } => said.2.push(name),
            Piece::Notice(notice) => said.2.push(format!("{:?}", notice.code)),
        }
    }
    said
}

fn pieces(events: Vec<Event>) -> impl Iterator<Item = Piece> {
    events.into_iter().map(|event| event.piece)
}

#[test]
fn every_format_has_a_closing_behind_which_the_answer_follows() {
    let mut table: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for format in Splitter::names() {
        let terminator = Splitter::named(format, true, true).unwrap().end_of_thinking();
        assert_eq!(terminator.is_none(), THOUGHTLESS.contains(&format), "{format}");
        let Some(terminator) = terminator else { continue };
        // Whatever the pieces are, as if the model had written it itself.
        for length in [1, 3, 1000] {
            let mut splitter = Splitter::named(format, true, true).unwrap();
            let text: Vec<char> = format!("a thought{terminator}The answer.").chars().collect();
            let mut events: Vec<Event> = Vec::new();
            for piece in text.chunks(length) {
                events.extend(splitter.push(&piece.iter().collect::<String>()));
            }
            events.extend(splitter.finish());
            assert_eq!(
                said(pieces(events)),
                ("a thought".into(), "The answer.".into(), vec![]),
                "{format}"
            );
        }
        table.entry(terminator).or_default().push(format);
    }
    for (terminator, formats) in table {
        println!("report: terminators: {terminator:?} for {}", formats.join(", "));
    }
}

/// A model with Pebble's tokens, some under other names, and this template.
fn processor(template: &str, renamed: &[(&str, &str)]) -> ChatProcessor {
    let pebble = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model/tokenizer.json");
    let mut tokenizer = fs::read_to_string(pebble).unwrap();
    for (from, to) in renamed {
        tokenizer = tokenizer.replace(&format!("\"{from}\""), &format!("\"{to}\""));
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tokenizer.json"), tokenizer).unwrap();
    fs::write(dir.path().join("chat_template.jinja"), template).unwrap();
    ChatProcessor::open(dir.path()).unwrap()
}

fn gemma() -> ChatProcessor {
    processor("x", &[])
}

fn think() -> ChatProcessor {
    processor("x", &[("<|channel>", "<think>"), ("<channel|>", "</think>")])
}

/// `<think>` in several tokens.
fn spelled_think() -> ChatProcessor {
    processor(
        "<think> </think>",
        &[("<|channel>", "<unused100>"), ("<channel|>", "<unused101>")],
    )
}

fn ids(processor: &ChatProcessor, text: &str) -> Vec<u32> {
    processor.reader(text, false, true).unwrap().1
}

fn parser(processor: &ChatProcessor, thinking_on: bool) -> ChannelParser {
    processor.parser(&Prompt::default(), thinking_on, &[])
}

/// The events of a thought that is ended after `before`, when the model goes on with `after`, and its tokens.
fn ended(
    processor: &ChatProcessor,
    thinking_on: bool,
    before: &[u32],
    after: &str,
) -> ((String, String, Vec<String>), u32) {
    let mut parser = parser(processor, thinking_on);
    let mut found: Vec<Piece> = before.iter().flat_map(|id| parser.push(*id)).collect();
    assert!(parser.is_thinking());
    let tokens = parser.thinking_tokens();
    let terminator = parser
        .end_of_thinking_here(processor.end_of_thinking().unwrap())
        .to_vec();
    parser.end_thinking();
    found.extend(terminator.iter().flat_map(|id| parser.push(*id)));
    assert!(!parser.is_thinking());
    assert_eq!(
        parser.thinking_tokens(),
        tokens,
        "what ends a thought is not one of its tokens"
    );
    found.extend(ids(processor, after).iter().flat_map(|id| parser.push(*id)));
    found.extend(parser.finish());
    (said(found), tokens)
}

#[test]
fn nothing_of_a_second_thought_shows() {
    let shown = |thought: &str, text: &str| (thought.to_owned(), text.to_owned(), Vec::<String>::new());
    for (model, open, close) in [
        (gemma(), "<|channel>thought\n", "<channel|>"),
        (think(), "<think>\n", "</think>"),
        (spelled_think(), "<think>\n", "</think>"),
    ] {
        let before = ids(&model, &format!("{open}12345"));
        for (after, text) in [
            ("67", "67"),
            (&format!("{close}67"), "67"),
            (&format!("{close}\n\n67"), "67"),
            (&format!("6 so{close}67"), "6 so67"),
            (&format!("{open}again{close}\n67"), "67"),
            (&format!("{open}again"), ""),
            (&format!("{open}again{close}\n{open}and again{close}67"), "67"),
        ] {
            assert_eq!(
                ended(&model, true, &before, after),
                (shown("12345", text), 5 + before_words(&model, open)),
                "{after}"
            );
        }
        let (off, _) = ended(&model, false, &before, &format!("{open}again{close}67"));
        assert_eq!(off, ("".into(), "67".into(), vec!["ThoughtWhileOff".into()]));
    }
}

/// Tokens of the thought before its first word: the line end after `<think>`, which is none of a label's.
fn before_words(model: &ChatProcessor, open: &str) -> u32 {
    let mut parser = parser(model, true);
    ids(model, open).iter().for_each(|id| drop(parser.push(*id)));
    parser.thinking_tokens()
}

#[test]
fn a_thought_ends_where_nothing_was_said_in_it() {
    for (model, open) in [
        (gemma(), "<|channel>thought\n"),
        (think(), "<think>"),
        (spelled_think(), "<think>"),
    ] {
        assert_eq!(
            ended(&model, true, &ids(&model, open), "67"),
            (("".into(), "67".into(), vec![]), 0)
        );
        // A label that is still being read is no thought.
        let mut undecided = parser(&gemma(), true);
        ids(&gemma(), "<|channel>thou")
            .iter()
            .for_each(|id| drop(undecided.push(*id)));
        assert!(!undecided.is_thinking());
    }
}

#[test]
fn half_a_character_or_marker_does_not_show() {
    let model = gemma();
    let cat = ids(&model, "<|channel>thought\na 🐱");
    for cut in 1..4 {
        let before = &cat[..cat.len() - cut];
        let ((thought, text, notices), _) = ended(&model, true, before, "67");
        assert!(!thought.contains('\u{fffd}') && thought.starts_with('a'), "{thought:?}");
        assert_eq!((text.as_str(), notices.len()), ("67", 0));
    }
    let spelled = spelled_think();
    let before = ids(&spelled, "<think>12</thi");
    assert_eq!(
        ended(&spelled, true, &before, "67").0,
        ("12".into(), "67".into(), vec![])
    );
}

#[test]
fn a_closing_does_not_repeat_the_line_end_of_the_thought() {
    let model = gemma();
    assert_eq!(model.end_of_thinking().unwrap().text(), "\n<channel|>");
    let closing = |before: &str| {
        let mut parser = parser(&model, true);
        ids(&model, before).iter().for_each(|id| drop(parser.push(*id)));
        model
            .decode(parser.end_of_thinking_here(model.end_of_thinking().unwrap()))
            .unwrap()
    };
    assert_eq!(closing("<|channel>thought\n12"), "\n<channel|>");
    assert_eq!(closing("<|channel>thought\n12\n"), "<channel|>");
    assert_eq!(closing("<|channel>thought\n"), "<channel|>");
}

#[test]
fn an_answer_of_which_only_words_are_known_goes_on_in_its_place() {
    for (model, prompts) in [
        (gemma(), ["", "<|channel>thought\n"]),
        (think(), ["", "<think>\n"]),
        (spelled_think(), ["", "<think>\n"]),
    ] {
        for prompt in prompts {
            let prompt = Prompt {
                text: prompt.into(),
                ids: ids(&model, prompt),
                ..Prompt::default()
            };
            for (thinking, text) in [
                ("12 <think> 3", ""),
                ("12", "3 <channel|> 4"),
                ("", "34"),
                ("12\n", "34"),
                ("", ""),
            ] {
                let begun = model.encode_answer_prefix(&prompt, thinking, text).unwrap();
                let mut parser = model.parser(&prompt, true, &[]);
                let found: Vec<Piece> = begun.iter().flat_map(|id| parser.push(*id)).collect();
                let (thought, answer, _) = said(found);
                if thinking.contains('<') && model.tokenizer().id("<channel|>").is_none() {
                    continue; // Markers that are looked for in the text are found in words, too.
                }
                assert_eq!((thought.trim_end(), answer.as_str()), (thinking.trim_end(), text));
                assert_eq!(
                    parser.is_thinking(),
                    text.is_empty() && !(thinking.is_empty() && prompt.ids.is_empty())
                );
            }
        }
    }
    let thoughtless = processor("x", &[("<|channel>", "<unused100>"), ("<channel|>", "<unused101>")]);
    assert!(thoughtless.encode_answer_prefix(&Prompt::default(), "12", "").is_err());
    assert_eq!(
        thoughtless.encode_answer_prefix(&Prompt::default(), "", "12").unwrap(),
        thoughtless.encode("12").unwrap()
    );
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "jinja") {
            found.push(path);
        }
    }
}

/// The closings that templates show, pinned.
#[test]
fn closings_come_from_the_templates() {
    let Some(folder) = std::env::var_os("PONDER_TEMPLATES") else {
        println!("skipped: PONDER_TEMPLATES names no folder of templates; `./dev test` does");
        return;
    };
    let mut paths = Vec::new();
    files(Path::new(&folder), &mut paths);
    let mut table: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
    for path in &paths {
        let source = fs::read_to_string(path).unwrap();
        let Ok(template) = Template::new(&json!(source), Map::new()) else {
            continue;
        };
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        table.entry(template.end_of_thinking()).or_default().push(name);
    }
    for (terminator, names) in &table {
        println!("report: terminators: {terminator:?}: {} templates", names.len());
        println!("  {}", names.join(", "));
    }
    let counts: BTreeMap<Option<&str>, usize> = table
        .iter()
        .map(|(terminator, names)| (terminator.as_deref(), names.len()))
        .collect();
    assert_eq!(counts, BTreeMap::from(CLOSINGS));
}

/// How many templates show each; the first have no thoughts, or take them for something that is asked for.
const CLOSINGS: [(Option<&str>, usize); 20] = [
    (None, 119),
    (Some("\n</think>\n"), 9),
    (Some("\n</think>\n\n"), 45),
    (Some("\n<channel|>"), 9),
    (Some("\n[BEGIN FINAL RESPONSE]\n"), 2),
    (Some("</mm:think>"), 1),
    (Some("</seed:think>\n"), 2),
    (Some("</think>"), 24),
    (Some("</think>\n"), 6),
    (Some("</think>  "), 1),
    (Some("</think><response>"), 1),
    (Some("<channel|>"), 1),
    (Some("<|END_THINKING|><|START_RESPONSE|>"), 6),
    (Some("<|END_THINKING|><|START_TEXT|>"), 1),
    (Some("<|close|>think<|sep|><|open|>response<|sep|>"), 1),
    (Some("<|end|><|begin|>assistant<|content|>"), 1),
    (Some("<|end|><|start|>assistant<|channel|>final<|message|>"), 3),
    (Some("<|eom|><|start|>assistant to=user<|message|>"), 2),
    (Some("<|inner_suffix|>"), 1),
    (Some("[/THINK]"), 1),
];
