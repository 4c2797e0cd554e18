//! The guard of a server of tools, for tests: hosts play this role themselves.

use std::process::ExitCode;

fn main() -> ExitCode {
    tools::stdio::take_role().unwrap_or(ExitCode::FAILURE)
}
