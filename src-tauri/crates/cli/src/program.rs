//! The frame of a command line program: its log, its arguments, its runtime, its exit code.

use std::future::Future;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::{ContextKind, ErrorKind};
use clap::Parser;
use tokio::runtime;
use tracing_subscriber::EnvFilter;

use crate::output;

/// Sentences of the standard library about texts that are no numbers, and ours.
const NO_NUMBERS: [(&str, &str); 2] = [
    ("invalid float literal", "it is not a number"),
    ("invalid digit found in string", "it is not a whole number"),
];

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
        Err(error) => return misused(&name, &error),
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
fn misused(name: &str, error: &clap::Error) -> ExitCode {
    let help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if help || !error.use_stderr() {
        // A closed pipe leaves nobody to tell.
        let _ = output::text(&error.render().to_string());
        return ExitCode::SUCCESS;
    }
    let rendered = error.render().to_string();
    // Missing arguments stand in lines of their own below the reason; tips and usage come after an empty one.
    let lines = rendered.lines().map(str::trim);
    let reason: Vec<&str> = lines.clone().take_while(|line| !line.is_empty()).collect();
    let mut message = reason.join(" ").trim_start_matches("error: ").to_owned();
    for tip in lines.filter_map(|line| line.strip_prefix("tip: ")) {
        message += &format!("; {tip}");
    }
    let word = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    if error.kind() == ErrorKind::UnknownArgument && word.is_some_and(|word| !word.starts_with('-')) {
        message += "; put a text of several words in quotes";
    }
    for (of_parser, for_people) in NO_NUMBERS {
        message = message.replace(of_parser, for_people);
    }
    message += &format!(" ({name} --help tells how)");
    let error = protocol::Error::new(protocol::ErrorCode::BadRequest, message);
    let json = std::env::args_os().any(|argument| argument == "--json");
    output::print_failure(name, &error.into(), json);
    ExitCode::from(output::exit_code::MISUSED)
}
