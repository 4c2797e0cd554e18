//! The rules of every help: short, in the words of the glossary, with examples that the parser takes.

use clap::error::ErrorKind;
use clap::{ArgAction, Command, CommandFactory, Parser};

use super::Ponder;

/// The longest help of a command or an argument, in words.
const MOST_WORDS: usize = 14;

/// Words that no help has.
const BANNED: &str = "hub, fetch, fetches, fetched, gets, takes, holds, stands, lies, goes along, anew, so many, \
as usual, by itself, that one, such as, broke off, in the middle, is there, is here, may go, looked at, seen by, sees, \
for good, put back, tells how, os error";

/// Words for things that have another name now.
const REPLACED: &str = "question, questions, answer, answers, thought, thoughts, thinks, picture, pictures, likeliest, \
choice of words, instructions, keys and values, stop text, stop texts, licence, comfortable, packed, in few bits, makers";

/// Names of values that stand for one thing everywhere.
const OTHER_PLACEHOLDERS: [&str; 7] = ["REF", "REPO", "REFERENCE", "R", "FOLDER", "PATH", "IDS"];

/// Every command that a help shows, with its name as it is called.
fn commands() -> Vec<(String, Command)> {
    let mut program = Ponder::command();
    program.build();
    let (mut all, mut rest) = (Vec::new(), vec![("ponder".to_owned(), program)]);
    while let Some((name, command)) = rest.pop() {
        let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
        let shown = shown.filter(|below| below.get_name() != "help");
        rest.extend(shown.map(|below| (format!("{name} {}", below.get_name()), below.clone())));
        all.push((name, command));
    }
    assert!(all.len() > 25, "the whole tree is walked");
    all
}

/// The words of a text, in small letters and one blank apart.
fn words(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':');
    let words = text.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

fn check_sentence(place: &str, text: &str) {
    assert!(!text.is_empty(), "{place} has no help");
    assert!(!text.ends_with('.'), "{place} ends with a period: {text}");
    assert!(!text.contains(';'), "{place} has a semicolon: {text}");
    let count = text.split_whitespace().count();
    assert!(count <= MOST_WORDS, "{place} has {count} words: {text}");
    let first = text.chars().next().unwrap_or_default();
    assert!(!first.is_lowercase(), "{place} begins with a small letter: {text}");
}

/// The lines below *Examples:*.
fn examples(command: &Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    lines
        .take_while(|line| line.starts_with("  "))
        .map(|line| line.trim().to_owned())
        .collect()
}

/// The words of a shell's line, without quotes.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    assert!(quote.is_none(), "a quote is open: {line}");
    words.extend(word);
    words
}

/// The arguments of `ponder` in a shell's line: without another program before a pipe, variables, redirections and
/// comments.
fn arguments(line: &str) -> Vec<String> {
    let line = line.split(" # ").next().unwrap_or_default();
    let line = line.rsplit(" | ").next().unwrap_or_default();
    let signs = [" > ", " 2> ", " < "];
    let end = signs.iter().filter_map(|sign| line.find(sign)).min();
    let words = split(&line[..end.unwrap_or(line.len())]);
    let words = words
        .into_iter()
        .skip_while(|word| word.contains('=') && !word.starts_with('-'));
    words.collect()
}

fn check_example(place: &str, line: &str) {
    let arguments = arguments(line);
    assert_eq!(arguments.first().map(String::as_str), Some("ponder"), "{place}: {line}");
    match Ponder::try_parse_from(&arguments) {
        Ok(_) => {}
        Err(error) => panic!("{place}: {line}: {error}"),
    }
}

#[test]
fn every_help_is_short() {
    for (name, command) in commands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        check_sentence(&name, &about);
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let place = format!("{name} {}", argument.get_id());
            assert!(argument.get_long_help().is_none(), "{place} has a second paragraph");
            check_sentence(
                &place,
                &argument.get_help().map(ToString::to_string).unwrap_or_default(),
            );
        }
    }
}

#[test]
fn every_help_speaks_the_words_of_the_glossary() {
    for (name, mut command) in commands() {
        let help = command.render_long_help().to_string();
        let spaced = format!(" {} ", words(&help));
        for banned in BANNED.split(", ").chain(REPLACED.split(", ")) {
            assert!(
                !spaced.contains(&format!(" {banned} ")),
                "{name} says {banned}:\n{help}"
            );
        }
        for argument in command.get_arguments() {
            let of_flag = matches!(
                argument.get_action(),
                ArgAction::SetTrue | ArgAction::Help | ArgAction::Version
            );
            for value in argument
                .get_value_names()
                .unwrap_or_default()
                .iter()
                .filter(|_| !of_flag)
            {
                assert!(!OTHER_PLACEHOLDERS.contains(&value.as_str()), "{name} {value}");
            }
            if argument.get_id() == "json" {
                let text = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let of_json = ["Print one JSON object", "Print one JSON object per line"];
                assert!(of_json.contains(&text.as_str()), "{name}: {text}");
            }
        }
    }
}

#[test]
fn every_example_is_taken_by_the_parser() {
    for (name, command) in commands() {
        let examples = examples(&command);
        // Commands inside a group are shown by the examples of the group.
        let is_command = name.split(' ').count() <= 2;
        assert!(!is_command || (2..=3).contains(&examples.len()), "{name}: {examples:?}");
        let last = name.split(' ').next_back().unwrap_or_default();
        assert!(
            examples.is_empty() || examples.iter().any(|example| example.contains(last)),
            "{name}: {examples:?}"
        );
        for example in examples {
            check_example(&name, &example);
        }
    }
}

#[test]
fn every_line_of_the_manual_is_taken_by_the_parser() {
    let manual = include_str!("../../../../../docs/cli.md");
    let block = manual.split("```").nth(1).expect("a block of commands");
    let lines: Vec<&str> = block.lines().filter(|line| line.contains("ponder ")).collect();
    assert!(lines.len() > 15, "{lines:?}");
    for line in lines {
        check_example("docs/cli.md", line);
    }
}

#[test]
fn short_options_and_old_names_stay() {
    for line in [
        "ponder ask -m pebble -s Short -f a.txt -i b.png -o c.md Hi",
        "ponder chat -m pebble -s Short --context 4096 --max-tokens 9 --kv-bits 8 --stop x",
        "ponder ask --context 4096 --image-detail normal Hi",
        "ponder ask --context-length 4096 --image-detail standard Hi",
        "ponder fit pebble --context 4096",
        "ponder serve -m pebble",
        "ponder list",
        "ponder rm -y pebble",
        "ponder chats search tea --json",
        "ponder models eject --json",
        "ponder models verify pebble --json",
        "ponder models repair pebble",
        "ponder models remove --yes pebble",
        "ponder models import models/pebble",
        "ponder models fit pebble --context-length 4096",
    ] {
        check_example("a session", line);
    }
}

#[test]
fn a_chat_that_is_continued_refuses_every_option_that_it_would_ignore() {
    let (_, chat) = commands()
        .into_iter()
        .find(|(name, _)| name == "ponder chat")
        .expect("the command");
    let options = chat
        .get_arguments()
        .filter_map(|argument| Some((argument, argument.get_long()?)));
    let obeyed = ["chat", "device", "help"];
    let options: Vec<_> = options.filter(|(_, name)| !obeyed.contains(name)).collect();
    assert!(options.len() > 15);
    for (argument, name) in options {
        let values = argument.get_possible_values();
        let value = values
            .first()
            .map_or("8".to_owned(), |value| value.get_name().to_owned());
        let value = if name.ends_with("_p") || name.ends_with("-p") {
            "1".to_owned()
        } else {
            value
        };
        let value = if name == "context-length" {
            "4096".to_owned()
        } else {
            value
        };
        let line = ["ponder", "chat", "--chat", "ID", &format!("--{name}"), &value];
        let refused = Ponder::try_parse_from(line).err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::ArgumentConflict), "--{name} {value}");
    }
}
