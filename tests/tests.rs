//! Whole-house tests in one binary, so that Tauri is linked once: the rules of the house, the command line as a person
//! calls it, and the real window driven by WebDriver.

mod command_line;
mod support;
mod tidy;
#[cfg(target_os = "linux")]
mod window;
