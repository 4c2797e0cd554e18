use anyhow::Result;
use api::LocalModel;
use clap::{Args, Subcommand};
use protocol::{Error, ErrorCode, LocalEngine, ModelKind, ThinkingControl};
use serde_json::json;

use super::size::size;
use crate::app::{self, App};
use crate::commands::endpoints;
use crate::output;

/// `ponder models`.
#[derive(Args)]
pub struct ModelsArgs {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// List models, as without a command
    List,
    /// Take a model out of the memory of the app or the server that runs
    Unload {
        /// The model; without it all of them
        #[arg(value_name = "REF")]
        reference: Option<String>,
    },
}

/// Lists models, or unloads one.
///
/// # Errors
/// When the history cannot be opened, no such model is here, or standard output is closed.
pub async fn run(args: ModelsArgs) -> Result<()> {
    match args.command {
        None | Some(Command::List) => list(args.json).await,
        Some(Command::Unload { reference }) => unload(reference.as_deref()).await,
    }
}

async fn unload(reference: Option<&str>) -> Result<()> {
    let engine = app::shared_engine()?;
    if engine.is_own() {
        let message = "neither the app nor `ponder serve` is running, so no model is in memory";
        return Err(Error::new(ErrorCode::ModelNotFound, message).into());
    }
    match reference {
        Some(reference) => engine.unload(&app::model(Some(reference)).await?.reference).await?,
        None => engine.unload_all().await?,
    }
    Ok(())
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
    output::text(&row("MODEL", "SIZE", "LAST USED", "WHAT IT IS"))?;
    for model in &models {
        let (size, day) = (size(model.bytes), day(model.last_used_at));
        output::text(&row(&model.reference, &size, &day, &facts(model)))?;
        if let Some(problem) = &model.vision_problem {
            let text = format!("its vision part cannot be read, so it takes text alone: {problem}");
            output::text(&format!("{:<width$} {:>8}  {text}\n", "", ""))?;
        }
        if let Some(problem) = &model.problem {
            output::text(&format!("{:<width$} {:>8}  cannot be used: {problem}\n", "", ""))?;
        }
    }
    for endpoint in &endpoints {
        let mark = endpoints::mark(&endpoint.endpoint);
        for model in &endpoint.models {
            let context = model.context.map(|context| format!(" · {context} tokens of context"));
            let text = format!("{mark}{}", context.unwrap_or_default());
            output::text(&row(&model.reference, "", "", &text))?;
        }
        if let Some(problem) = &endpoint.problem {
            let name = format!("endpoint:{}", endpoint.endpoint.name);
            output::text(&row(&name, "", "", &format!("does not answer: {problem}")))?;
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
fn facts(model: &LocalModel) -> String {
    let others = match model.revisions.len() {
        0 | 1 => String::new(),
        count => format!("{} older or newer versions here", count - 1),
    };
    let thinking = match &model.thinking {
        Some(ThinkingControl::Switch { .. }) => "thinking can be switched",
        Some(ThinkingControl::Levels { off: false, .. }) => "thinks in levels",
        Some(ThinkingControl::Levels { off: true, .. }) => "thinks in levels or not",
        Some(ThinkingControl::Always) => "always thinks",
        Some(ThinkingControl::Never) => "does not think",
        Some(ThinkingControl::ByRequest { default_on: true }) => {
            "thinks, unless a system prompt asks for something else"
        }
        Some(ThinkingControl::ByRequest { default_on: false }) => "thinks when a system prompt asks for it",
        None => "",
    };
    let context = model.context.map(|context| format!("{context} tokens of context"));
    let context = context.unwrap_or_default();
    let kind = match model.kind {
        ModelKind::Chat => "",
        ModelKind::Embedding => "makes embeddings",
    };
    let facts: Vec<&str> = [
        kind,
        model.family.as_deref().unwrap_or(""),
        model.quantization.as_deref().unwrap_or(""),
        &context,
        thinking,
        &others,
    ]
    .into_iter()
    .filter(|fact| !fact.is_empty())
    .collect();
    facts.join(" · ")
}
