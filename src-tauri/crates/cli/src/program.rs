//! The frame of a command line program: its log, its arguments, its runtime, its exit code.

use std::future::Future;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use tokio::runtime;
use tracing_subscriber::EnvFilter;

use crate::output;

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
    let runtime = match runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return output::fail(&name, &error.into(), json),
    };
    // The failure is printed before the runtime ends, which waits for blocking tasks.
    runtime
        .block_on(run(parsed))
        .unwrap_or_else(|error| output::fail(&name, &error, json))
}

/// Help and version are answers; anything else that cannot be understood is one line, like every error.
fn misused(name: &str, error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    let rendered = error.to_string();
    // Missing arguments stand in lines of their own below the reason; tips and usage come after an empty one.
    let reason = rendered
        .lines()
        .take_while(|line| !line.is_empty())
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ");
    let reason = reason.trim_start_matches("error: ");
    let error = protocol::Error::new(
        protocol::ErrorCode::BadRequest,
        format!("{reason} ({name} --help tells how)"),
    );
    output::fail(
        name,
        &error.into(),
        std::env::args().any(|argument| argument == "--json"),
    )
}
