//! `ponder-bench`: measures models, beside other engines if they are there, and shows what a model is given and makes
//! of it. For developers: it is part of no package.

mod image_plans;
mod inspection;
mod measurements;
mod subject;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use inspection::{answers, logits, render, split, stops};
use measurements::{batch, draft, gaps, lookup, perplexity, speed, turns, vision};

#[derive(Parser)]
#[command(
    name = "ponder-bench",
    version,
    about = "Measure and inspect language models",
    max_term_width = 100
)]
struct PonderBench {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure prompt processing, first token, decoding, loading and memory
    Speed(speed::SpeedArgs),
    /// Measure sequences that decode together
    Batch(batch::BatchArgs),
    /// Measure the wait for a chat's next token beside other prompts
    Gaps(gaps::GapsArgs),
    /// Measure the cost and gain of prompt lookup drafts
    Lookup(lookup::LookupArgs),
    /// Measure responses with and without a draft model
    Draft(draft::DraftArgs),
    /// Measure a chat of twelve turns
    Turns(turns::TurnsArgs),
    /// Measure how well a model predicts a text
    Perplexity(perplexity::PerplexityArgs),
    /// Measure two messages about an image
    Vision(vision::VisionArgs),
    /// Print the prompt as rendered by the chat template
    Render(render::RenderArgs),
    /// Separate raw model output into thinking, response and tool calls
    Split(split::SplitArgs),
    /// Print the stop tokens and their sources
    Stops(stops::StopsArgs),
    /// Print logits
    Logits(logits::LogitsArgs),
    /// Print the tokens of responses to many prompts, several at a time
    Answers(answers::AnswersArgs),
}

impl PonderBench {
    fn json(&self) -> bool {
        match &self.command {
            Command::Speed(args) => args.json,
            Command::Batch(args) => args.json,
            Command::Gaps(args) => args.json,
            Command::Lookup(args) => args.json,
            Command::Draft(args) => args.json,
            Command::Turns(args) => args.json,
            Command::Perplexity(args) => args.json,
            Command::Vision(args) => args.json,
            Command::Split(_) | Command::Stops(_) | Command::Logits(_) | Command::Answers(_) => true,
            Command::Render(_) => false,
        }
    }

    async fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Speed(args) => speed::run(args).await,
            Command::Batch(args) => batch::run(args).await,
            Command::Gaps(args) => gaps::run(args).await,
            Command::Lookup(args) => lookup::run(args).await,
            Command::Draft(args) => draft::run(args).await,
            Command::Turns(args) => turns::run(args).await,
            Command::Perplexity(args) => perplexity::run(args).await,
            Command::Vision(args) => vision::run(args).await,
            Command::Render(args) => render::run(args).await,
            Command::Split(args) => split::run(args).await,
            Command::Stops(args) => stops::run(args).await,
            Command::Logits(args) => logits::run(args).await,
            Command::Answers(args) => answers::run(args).await,
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

fn main() -> ExitCode {
    cli::program::run(PonderBench::json, PonderBench::run)
}
