use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;

/// Examples below the help of `ponder completions`.
pub const EXAMPLES: &str = "Examples:
  ponder completions bash > ~/.local/share/bash-completion/completions/ponder
  ponder completions fish > ~/.config/fish/completions/ponder.fish";

/// `ponder completions`.
#[derive(Args)]
pub struct CompletionsArgs {
    /// Shell to complete commands for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// `ponder manual`.
#[derive(Args)]
pub struct ManualArgs {
    /// Existing folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the completions of `ponder` for a shell.
///
/// # Errors
/// When standard output is closed.
pub fn completions(args: &CompletionsArgs, ponder: &Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(ponder), "ponder", &mut script);
    Ok(io::Write::write_all(&mut io::stdout().lock(), &script)?)
}

/// Writes `ponder.1` and a page for each of its commands, such as `ponder-ask.1`.
///
/// # Errors
/// When a page cannot be written.
pub fn pages(args: &ManualArgs, ponder: &Command) -> Result<()> {
    let mut ponder = shown(ponder).disable_help_subcommand(true);
    // Gives the commands their shared options and their names in the manual, one word where the shell has two.
    ponder.build();
    page(&args.folder, &ponder, "ponder")?;
    for command in ponder.get_subcommands() {
        page(&args.folder, command, &format!("ponder-{}", command.get_name()))?;
    }
    Ok(())
}

/// `ponder` without the commands that its help does not show, which completions would offer all the same.
fn shown(whole: &Command) -> Command {
    let shown = whole
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned();
    let about = whole.get_about().cloned().unwrap_or_default();
    let examples = whole.get_after_help().cloned().unwrap_or_default();
    Command::new("ponder")
        .about(about)
        .after_help(examples)
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
    std::fs::write(&file, text).with_context(|| format!("{} cannot be written", file.display()))
}
