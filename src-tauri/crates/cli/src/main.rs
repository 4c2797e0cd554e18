//! The `ponder` command: everything the window can do, for people, scripts and checks. Exit code 0 only on success;
//! errors are one line on standard error and, with `--json`, an object on standard output.

mod answer_prefix;
mod app;
mod ask;
mod batch;
mod bench;
mod conversation;
mod endpoints;
mod files;
mod fit;
mod gaps;
mod history;
mod inspect;
mod keys;
mod maintenance;
mod manual;
mod messages;
mod models;
mod output;
mod peer;
mod pictures;
mod pull;
mod serve;
mod split;
mod turns;
mod vision;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use protocol::{KvBits, Sampling, Thinking};

#[derive(Parser)]
#[command(
    name = "ponder",
    version,
    about = "Talk to language models on this computer",
    max_term_width = 100
)]
struct Ponder {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Ask one question (or continue a conversation from a file) and print the answer
    Ask(ask::AskArgs),
    /// Talk in the terminal, in the same history as the window
    Chat(conversation::ChatArgs),
    /// Print what the model is given, rendered by its chat template
    Render(inspect::RenderArgs),
    /// Set reasoning, answer and tool calls apart in what a model wrote, from standard input
    Split(split::SplitArgs),
    /// Print the stop tokens and where each comes from
    Stops(inspect::StopsArgs),
    /// Print the logits after the last of some tokens
    Logits(inspect::LogitsArgs),
    /// Measure a model's speed
    Bench(bench::BenchArgs),
    /// List the models on this computer
    Models(models::ModelsArgs),
    /// Fetch a model from the hub
    Pull(pull::PullArgs),
    /// Read all files of a model again and compare them with what the hub has
    Verify(maintenance::VerifyArgs),
    /// Fetch those files of a model again that are wrong or missing
    Repair(maintenance::VerifyArgs),
    /// Remove a model from this computer
    Remove(maintenance::RemoveArgs),
    /// Copy a folder with a model into Ponder's own
    Import(maintenance::ImportArgs),
    /// Say whether a model fits this computer's memory
    Fit(fit::FitArgs),
    /// Add, list and remove endpoints: servers of models, on this computer or another
    Endpoints(endpoints::EndpointsArgs),
    /// List, search and export chats
    History(history::HistoryArgs),
    /// Answer other programs over HTTP, as OpenAI's and Anthropic's servers do
    Serve(serve::ServeArgs),
    /// Print completions for a shell
    Completions(manual::CompletionsArgs),
    /// Write the manual's pages; packages do
    #[command(hide = true)]
    Manual(manual::ManualArgs),
}

/// The model of a command: a folder, a hub id, `pebble` or `endpoint:NAME/MODEL`.
#[derive(Args, Clone)]
pub struct ModelArg {
    /// A folder, a hub id, `pebble` or endpoint:NAME/MODEL; without it the default model
    #[arg(long, value_name = "REF")]
    pub model: Option<String>,
}

/// How tokens are chosen; what is not given follows the model's generation_config.json.
#[derive(Args, Clone)]
pub struct SamplingArgs {
    /// 0 always takes the likeliest token
    #[arg(long, allow_negative_numbers = true)]
    temperature: Option<f32>,
    /// Keep the smallest set of tokens with this much probability
    #[arg(long, allow_negative_numbers = true)]
    top_p: Option<f32>,
    /// Keep the N likeliest tokens
    #[arg(long, value_name = "N")]
    top_k: Option<u32>,
    /// Keep tokens at least this likely relative to the likeliest
    #[arg(long, allow_negative_numbers = true)]
    min_p: Option<f32>,
    /// Make tokens of the last few words less likely; 1 changes nothing
    #[arg(long, allow_negative_numbers = true)]
    repetition_penalty: Option<f32>,
    /// Make the answer repeatable
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl SamplingArgs {
    fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            seed: self.seed,
            ..Sampling::default()
        }
    }
}

/// The Thinking switch on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub enum ThinkingArg {
    /// Think, with the model's own effort
    On,
    /// Do not think
    Off,
    /// Think a little
    Low,
    /// Think
    Medium,
    /// Think hard
    High,
}

impl From<ThinkingArg> for Thinking {
    fn from(arg: ThinkingArg) -> Self {
        match arg {
            ThinkingArg::On => Thinking::On,
            ThinkingArg::Off => Thinking::Off,
            ThinkingArg::Low => Thinking::Low,
            ThinkingArg::Medium => Thinking::Medium,
            ThinkingArg::High => Thinking::High,
        }
    }
}

/// The value of `--kv-bits`.
fn kv_bits(text: &str) -> Result<KvBits, String> {
    let bits: u8 = text.parse().map_err(|_| "it is 4 or 8".to_owned())?;
    KvBits::try_from(bits).map_err(|error| error.message)
}

/// Help and version are answers; anything else that cannot be understood is one line, like every error.
fn misused(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    let rendered = error.to_string();
    // What is missing stands in lines of its own below the reason; tips and usage come after an empty one.
    let reason = rendered
        .lines()
        .take_while(|line| !line.is_empty())
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ");
    let reason = reason.trim_start_matches("error: ");
    let error = protocol::Error::new(
        protocol::ErrorCode::BadRequest,
        format!("{reason} (ponder --help tells how)"),
    );
    output::fail(&error.into(), std::env::args().any(|argument| argument == "--json"))
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_env("PONDER_LOG").unwrap_or_else(|_| "error".into()))
        .with_writer(std::io::stderr)
        .init();
    let command = match Ponder::try_parse() {
        Ok(ponder) => ponder.command,
        Err(error) => return misused(&error),
    };
    let json = match &command {
        Command::Ask(args) => args.json,
        Command::Bench(args) => args.json,
        Command::Models(args) => args.json,
        Command::Pull(args) => args.json,
        Command::Verify(args) | Command::Repair(args) => args.json,
        Command::Remove(args) => args.json,
        Command::Import(args) => args.json,
        Command::Fit(args) => args.json,
        Command::Endpoints(args) => args.json(),
        Command::History(args) => args.json,
        Command::Serve(args) => args.json,
        Command::Split(_) | Command::Stops(_) | Command::Logits(_) => true,
        Command::Chat(_) | Command::Render(_) | Command::Completions(_) | Command::Manual(_) => false,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return output::fail(&error.into(), json),
    };
    let outcome = runtime.block_on(async {
        match command {
            Command::Ask(args) => return ask::run(args).await,
            Command::Chat(args) => conversation::run(args).await,
            Command::Render(args) => inspect::render(args).await,
            Command::Split(args) => split::run(args).await,
            Command::Stops(args) => inspect::stops(args).await,
            Command::Logits(args) => inspect::logits(args).await,
            Command::Bench(args) => bench::run(args).await,
            Command::Models(args) => models::run(args).await,
            Command::Pull(args) => pull::run(args).await,
            Command::Verify(args) => maintenance::verify(args).await,
            Command::Repair(args) => maintenance::repair(args).await,
            Command::Remove(args) => maintenance::remove(args).await,
            Command::Import(args) => maintenance::import(args).await,
            Command::Fit(args) => fit::run(args).await,
            Command::Endpoints(args) => endpoints::run(args).await,
            Command::History(args) => history::run(args).await,
            Command::Serve(args) => serve::run(args).await,
            Command::Completions(args) => manual::completions(&args),
            Command::Manual(args) => manual::pages(&args),
        }
        .map(|()| ExitCode::SUCCESS)
    });
    match outcome {
        Ok(code) => code,
        Err(error) => output::fail(&error, json),
    }
}
