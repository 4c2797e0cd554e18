use std::process::ExitCode;

use anyhow::Result;
use api::LocalModel;
use clap::{Args, Subcommand};
use protocol::{Error, ErrorCode, LocalEngine, ModelKind, ThinkingControl};
use serde_json::json;

use super::import::{self, ImportArgs};
use super::remove::{self, RemoveArgs};
use super::size::size;
use super::verify::{repair, verify, VerifyArgs, REPAIR_EXAMPLES, VERIFY_EXAMPLES};
use crate::app::{self, App};
use crate::commands::endpoints;
use crate::commands::fit::{self, FitArgs};
use crate::output::{self, without_numbers};

/// Examples below the help of `ponder models`.
pub const EXAMPLES: &str = "Examples:
  ponder models
  ponder models verify mlx-community/Qwen3-4B-4bit
  ponder models unload";

/// `ponder models`.
#[derive(Args)]
pub struct ModelsArgs {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

// Parsed once per process, so the size of its largest variant costs nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Subcommand)]
enum Command {
    /// List models
    List,
    /// Eject a model, or all of them, from memory
    #[command(visible_alias = "eject")]
    Unload {
        /// Model to eject (default: all)
        #[arg(value_name = "MODEL")]
        reference: Option<String>,
    },
    /// Check a model's files against Hugging Face
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Download damaged or missing files again
    #[command(after_help = REPAIR_EXAMPLES)]
    Repair(VerifyArgs),
    /// Remove a model from this computer
    #[command(alias = "rm", after_help = remove::EXAMPLES)]
    Remove(RemoveArgs),
    /// Copy a model into Ponder, also from Ollama and LM Studio
    #[command(after_help = import::EXAMPLES)]
    Import(ImportArgs),
    /// Show how much memory a model needs
    #[command(after_help = fit::EXAMPLES)]
    Fit(FitArgs),
}

/// Lists models, or does what the command says to one.
///
/// # Errors
/// When the command fails, or standard output is closed.
pub async fn run(args: ModelsArgs) -> Result<ExitCode> {
    match args.command {
        None | Some(Command::List) => list(args.json).await,
        Some(Command::Unload { reference }) => unload(reference.as_deref(), args.json).await,
        Some(Command::Verify(args)) => verify(args).await,
        Some(Command::Repair(args)) => repair(args).await,
        Some(Command::Remove(args)) => remove::remove(args).await,
        Some(Command::Import(args)) => return import::import(args).await,
        Some(Command::Fit(args)) => fit::run(args).await,
    }?;
    Ok(ExitCode::SUCCESS)
}

async fn unload(reference: Option<&str>, json: bool) -> Result<()> {
    let engine = app::shared_engine().await?;
    if engine.is_own() {
        let message = "no model is loaded, because neither the app nor 'ponder serve' is running";
        return Err(Error::new(ErrorCode::ModelNotFound, message).into());
    }
    match reference {
        Some(reference) => engine.unload(&app::model(Some(reference)).await?.reference).await?,
        None => engine.unload_all().await?,
    }
    let text = format!("Ejected {}.", reference.unwrap_or("all models"));
    Ok(output::report(json, &json!({"ejected": reference}), &text)?)
}

/// Lists the models on this computer and behind endpoints.
///
/// # Errors
/// When the history cannot be opened or standard output is closed.
async fn list(json: bool) -> Result<()> {
    let app = App::open().await?;
    let (models, endpoints) = (app.models.list(), app.remote.models().await);
    if json {
        output::line(&json!({"models": models, "endpoints": endpoints}))?;
        return Ok(());
    }
    let widths = models.iter().map(|model| model.reference.chars().count());
    let width = widths.max().unwrap_or(0).clamp(10, 60);
    let row = |name: &str, size: &str, day: &str, text: &str| format!("{name:<width$} {size:>8}  {day:<12} {text}\n");
    output::text(&row("MODEL", "SIZE", "LAST USED", "DETAILS"))?;
    for model in &models {
        let (size, day) = (size(model.bytes), day(model.last_used_at));
        output::text(&row(&model.reference, &size, &day, &facts(model)))?;
        if let Some(problem) = &model.vision_problem {
            let text = format!(
                "text only, because its vision files are unusable: {}",
                without_numbers(problem.cause())
            );
            output::text(&format!("{:<width$} {:>8}  {text}\n", "", ""))?;
        }
        if let Some(problem) = &model.problem {
            let problem = without_numbers(&problem.message);
            output::text(&format!("{:<width$} {:>8}  unusable: {problem}\n", "", ""))?;
        }
    }
    for endpoint in &endpoints {
        let mark = endpoints::mark(&endpoint.endpoint);
        for model in &endpoint.models {
            let context = model
                .context
                .map(|context| format!(" · {} context", output::context_length(context)));
            let text = format!("{mark}{}", context.unwrap_or_default());
            output::text(&row(&model.reference, "", "", &text))?;
        }
        if let Some(problem) = &endpoint.problem {
            let name = format!("endpoint:{}", endpoint.endpoint.name);
            let problem = without_numbers(&problem.to_string());
            output::text(&row(&name, "", "", &format!("unavailable: {problem}")))?;
        }
    }
    Ok(())
}

/// The day of a time in milliseconds since 1970, in this computer's time zone.
fn day(at: Option<i64>) -> String {
    let time = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let day = time.map(|time| time.to_zoned(jiff::tz::TimeZone::system()).date().to_string());
    day.unwrap_or_else(|| "never".into())
}

/// The properties of a model in words.
pub fn facts(model: &LocalModel) -> String {
    let others = match model.revisions.len() {
        0 | 1 => String::new(),
        count => output::plural(count as u64 - 1, "other version"),
    };
    let thinking = match &model.thinking {
        Some(ThinkingControl::Switch { .. }) => "thinking on or off",
        Some(ThinkingControl::Levels { off: false, .. }) => "effort levels",
        Some(ThinkingControl::Levels { off: true, .. }) => "effort levels or off",
        Some(ThinkingControl::Always) => "always thinking",
        Some(ThinkingControl::Never) => "no thinking",
        Some(ThinkingControl::ByRequest { default_on: true }) => "thinking unless prompted otherwise",
        Some(ThinkingControl::ByRequest { default_on: false }) => "thinking if prompted",
        None => "",
    };
    let context = model
        .context
        .map(|context| format!("{} context", output::context_length(context)));
    let context = context.unwrap_or_default();
    let kind = match model.kind {
        ModelKind::Chat => "",
        ModelKind::Embedding => "embeddings",
        ModelKind::Reranker => "reranker",
        ModelKind::Draft => "draft",
    };
    // A hyphen for people; the JSON keeps the label that programs know.
    let quantization = model.quantization.as_deref().unwrap_or("").replace(" bit", "-bit");
    let facts: Vec<&str> = [
        kind,
        model.family.as_deref().unwrap_or(""),
        &quantization,
        &context,
        thinking,
        &others,
    ]
    .into_iter()
    .filter(|fact| !fact.is_empty())
    .collect();
    facts.join(" · ")
}
