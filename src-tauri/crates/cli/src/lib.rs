//! The `ponder` command: everything the window can do, for people, scripts and checks. It exits with 0 only on success;
//! an error is one line on standard error and, with `--json`, an object on standard output.
//!
//! The binary `ponder` is [`run`]. The other modules are public for `ponder-bench`, which takes the same arguments and
//! opens the same models.

pub mod app;
mod commands;
pub mod input;
pub mod output;
pub mod program;

use std::process::ExitCode;

use engine::MlxEngine;

/// Runs `ponder` with the arguments of this process.
pub fn run() -> ExitCode {
    let sandboxed = || sandbox::take_role(&[&documents::TASKS, &media::TASKS, &prompt::TASKS, &tools::bundle::TASKS]);
    if let Some(end) = tools::stdio::take_role().or_else(sandboxed) {
        return end;
    }
    // Before any thread starts.
    MlxEngine::prepare_process(None);
    program::run(commands::Ponder::json, commands::Ponder::run)
}
