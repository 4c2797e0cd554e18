//! The frame of a command line program: its log, its arguments, its runtime, its exit code.

use std::future::Future;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::{ContextKind, ErrorKind};
use clap::{ArgAction, Command, Parser};
use tokio::runtime;
use tracing_subscriber::EnvFilter;

use crate::output;

/// Sentences of the standard library about texts that are no numbers, and ours.
const NO_NUMBERS: [(&str, &str); 2] = [
    ("invalid float literal", "it is not a number"),
    ("invalid digit found in string", "it is not a whole number"),
];

/// Value names of texts, which need quotes if they have several words.
const TEXTS: [&str; 3] = ["MESSAGE", "TEXT", "TITLE"];

/// Parses the arguments of this process and runs what they ask for. `json` says of the arguments that failures are
/// printed as JSON too.
pub fn run<P, F>(json: impl FnOnce(&P) -> bool, run: impl FnOnce(P) -> F) -> ExitCode
where
    P: Parser,
    F: Future<Output = Result<ExitCode>>,
{
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_env("PONDER_LOG").unwrap_or_else(|_| "error".into()))
        .with_writer(std::io::stderr)
        .init();
    let name = P::command().get_name().to_owned();
    let parsed = match P::try_parse() {
        Ok(parsed) => parsed,
        Err(error) => return misused(P::command(), &error),
    };
    let json = json(&parsed);
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return output::fail(&name, &error.into(), json),
    };
    // The failure is printed before the runtime ends, which waits for blocking tasks.
    runtime
        .block_on(run(parsed))
        .unwrap_or_else(|error| output::fail(&name, &error, json))
}

/// Help and version are answers, and so is what a command without its arguments shows; anything else that cannot be
/// understood is one line, like every error.
fn misused(mut program: Command, error: &clap::Error) -> ExitCode {
    let help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if help || !error.use_stderr() {
        // A closed pipe leaves nobody to tell.
        let _ = output::text(&error.render().to_string());
        return ExitCode::SUCCESS;
    }
    program.build();
    let given: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let name = program.get_name().to_owned();
    let error = protocol::Error::new(protocol::ErrorCode::BadRequest, explanation(&program, &given, error));
    let json = given.iter().any(|argument| argument == "--json");
    output::print_failure(&name, &error.into(), json);
    ExitCode::from(output::exit_code::MISUSED)
}

/// The reason why arguments cannot be understood, the parser's tips, and the command whose help has its usage.
fn explanation(program: &Command, given: &[String], error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    // Missing arguments stand in lines of their own below the reason; tips and usage come after an empty one.
    let lines = rendered.lines().map(str::trim);
    let reason: Vec<&str> = lines.clone().take_while(|line| !line.is_empty()).collect();
    let mut message = reason.join(" ").trim_start_matches("error: ").to_owned();
    for (of_parser, for_people) in NO_NUMBERS {
        message = message.replace(of_parser, for_people);
    }
    let (command, usage) = asked(program, given);
    for tip in lines.filter_map(|line| line.strip_prefix("tip: ")) {
        message += &match tip.split_once(" exists: ").or_else(|| tip.split_once(" exist: ")) {
            Some((_, similar)) => format!(". Did you mean {similar}?"),
            None => format!(". {}{}", tip[..1].to_uppercase(), &tip[1..]),
        };
    }
    if error.kind() == ErrorKind::UnknownArgument {
        let word = error
            .get(ContextKind::InvalidArg)
            .map(ToString::to_string)
            .unwrap_or_default();
        if let Some(tip) = tip_for_word(command, given, &word) {
            message += &format!(". {tip}");
        }
    }
    let end = if message.ends_with(['?', '.']) { "" } else { "." };
    format!("{message}{end} Run '{usage} --help' for usage.")
}

/// The command that the arguments name, and its name with those of the commands around it.
fn asked<'a>(program: &'a Command, given: &[String]) -> (&'a Command, String) {
    let (mut command, mut usage) = (program, program.get_name().to_owned());
    for word in given.iter().filter(|word| !word.starts_with('-')) {
        let Some(found) = command.find_subcommand(word) else {
            break;
        };
        command = found;
        usage = format!("{usage} {}", found.get_name());
    }
    (command, usage)
}

/// The likely reason for a word that the command does not take.
fn tip_for_word(command: &Command, given: &[String], word: &str) -> Option<String> {
    if word.is_empty() || word.starts_with('-') {
        return None;
    }
    let at = given.iter().position(|argument| argument == word)?;
    let before = at.checked_sub(1).and_then(|at| given[at].strip_prefix("--"));
    let is_flag = |name: &&str| {
        let mut arguments = command.get_arguments();
        arguments
            .any(|argument| argument.get_long() == Some(*name) && matches!(argument.get_action(), ArgAction::SetTrue))
    };
    if let Some(flag) = before.filter(is_flag) {
        return Some(format!("--{flag} takes no value"));
    }
    let is_text = |argument: &clap::Arg| {
        let names = argument.get_value_names().unwrap_or_default();
        names.iter().any(|name| TEXTS.contains(&name.as_str()))
    };
    let takes_text = command.get_positionals().any(is_text);
    takes_text.then(|| "Put a text of several words in quotes".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    fn explained(given: &[&str]) -> String {
        let texts = Command::new("ask")
            .arg(Arg::new("message").value_name("MESSAGE"))
            .arg(Arg::new("temperature").long("temperature"));
        let flag = Arg::new("key").long("key").action(ArgAction::SetTrue);
        let add = Command::new("add").arg(Arg::new("name").required(true)).arg(flag);
        let mut program = Command::new("ponder")
            .subcommand(texts)
            .subcommand(Command::new("endpoints").alias("servers").subcommand(add));
        program.build();
        let error = program
            .clone()
            .try_get_matches_from([&["ponder"][..], given].concat())
            .expect_err("a misuse");
        let given: Vec<String> = given.iter().map(|word| (*word).to_owned()).collect();
        explanation(&program, &given, &error)
    }

    #[test]
    fn a_misuse_names_the_way_out_and_the_help_of_its_command() {
        for (given, expected) in [
            (
                &["asks"][..],
                "unrecognized subcommand 'asks'. Did you mean 'ask'? Run 'ponder --help' for usage.",
            ),
            (
                &["ask", "--temprature", "0"],
                "unexpected argument '--temprature' found. Did you mean '--temperature'? Run 'ponder ask --help' for usage.",
            ),
            (
                &["ask", "what", "is"],
                "unexpected argument 'is' found. Put a text of several words in quotes. Run 'ponder ask --help' for usage.",
            ),
            (
                &["servers", "add", "lab", "--key", "secret"],
                "unexpected argument 'secret' found. --key takes no value. Run 'ponder endpoints add --help' for usage.",
            ),
            (
                &["endpoints", "add", "lab", "more"],
                "unexpected argument 'more' found. Run 'ponder endpoints add --help' for usage.",
            ),
            (
                &["endpoints", "add"],
                "the following required arguments were not provided: <name>. Run 'ponder endpoints add --help' for usage.",
            ),
        ] {
            assert_eq!(explained(given), expected);
        }
    }
}
