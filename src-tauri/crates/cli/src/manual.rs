//! Manual pages and completions of shells, made of what the command itself says about its arguments.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

/// `ponder completions`.
#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// `ponder manual`.
#[derive(Args)]
pub struct ManualArgs {
    /// A folder, which is there already
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Prints what a shell reads to complete `ponder`.
///
/// # Errors
/// When standard output is closed.
pub fn completions(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(), "ponder", &mut script);
    Ok(io::Write::write_all(&mut io::stdout().lock(), &script)?)
}

/// Writes `ponder.1` and a page for each of its commands, such as `ponder-ask.1`.
///
/// # Errors
/// When a page cannot be written.
pub fn pages(args: &ManualArgs) -> Result<()> {
    let mut ponder = shown().disable_help_subcommand(true);
    // Gives the commands what they share, and their names in the manual, which are one word where the shell has two.
    ponder.build();
    page(&args.folder, &ponder, "ponder")?;
    for command in ponder.get_subcommands() {
        page(&args.folder, command, &format!("ponder-{}", command.get_name()))?;
    }
    Ok(())
}

/// `ponder` without the commands that its help does not show, which completions would offer all the same.
fn shown() -> Command {
    let whole = crate::Ponder::command();
    let shown = whole
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned();
    let about = whole.get_about().cloned().unwrap_or_default();
    Command::new("ponder")
        .about(about)
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .subcommands(shown)
}

fn page(folder: &Path, command: &Command, name: &str) -> Result<()> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .manual("Ponder")
        .render(&mut text)?;
    let file = folder.join(format!("{name}.1"));
    std::fs::write(&file, text).with_context(|| format!("{} could not be written", file.display()))
}
