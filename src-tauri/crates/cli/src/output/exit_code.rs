//! The exit codes of every command; 0 is success. `docs/cli.md` lists them.

/// The command failed.
pub const FAILED: u8 = 1;
/// The arguments cannot be understood.
pub const MISUSED: u8 = 2;
/// The answer was cut at `--max-tokens` or the end of the context.
pub const CUT: u8 = 3;
/// Ctrl+C, as shells have it.
pub const STOPPED: u8 = 130;
