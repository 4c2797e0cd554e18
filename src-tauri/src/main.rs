//! The program of the app.

#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(end) = ponder_shell::take_role() {
        return end;
    }
    // The toolkit panics without a display; a sentence helps more.
    #[cfg(target_os = "linux")]
    if std::env::var_os("DISPLAY").is_none() && std::env::var_os("WAYLAND_DISPLAY").is_none() {
        eprintln!("ponder: there is no display here, so no window can be opened; `ponder chat` talks in the terminal");
        return ExitCode::FAILURE;
    }
    match ponder_shell::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ponder: {error:#}");
            ExitCode::FAILURE
        }
    }
}
