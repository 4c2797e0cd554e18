use anyhow::Result;
use api::LocalModel;
use clap::Args;
use protocol::{ModelKind, ThinkingControl};
use serde_json::json;

use super::size::size;
use crate::app::App;
use crate::commands::endpoints;
use crate::output;

/// `ponder models`.
#[derive(Args)]
pub struct ListArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Lists the models on this computer and behind endpoints.
///
/// # Errors
/// When the history cannot be opened or standard output is closed.
pub async fn list(args: ListArgs) -> Result<()> {
    let app = App::open().await?;
    let (models, endpoints) = (app.models.list(), app.remote.models().await);
    if args.json {
        output::line(&json!({"models": models, "endpoints": endpoints}))?;
        return Ok(());
    }
    let width = models
        .iter()
        .map(|model| model.reference.chars().count())
        .max()
        .unwrap_or(0)
        .clamp(10, 60);
    output::text(&format!(
        "{:<width$} {:>8}  {:<12} {}\n",
        "MODEL", "SIZE", "LAST USED", "WHAT IT IS"
    ))?;
    for model in &models {
        output::text(&row(model, width))?;
    }
    for endpoint in &endpoints {
        let mark = endpoints::mark(&endpoint.endpoint);
        for model in &endpoint.models {
            let context = model
                .context
                .map_or_else(String::new, |context| format!(" · {context} tokens of context"));
            output::text(&format!(
                "{:<width$} {:>8}  {:<12} {mark}{context}\n",
                model.reference, "", ""
            ))?;
        }
        if let Some(problem) = &endpoint.problem {
            let name = format!("endpoint:{}", endpoint.endpoint.name);
            output::text(&format!(
                "{name:<width$} {:>8}  {:<12} does not answer: {problem}\n",
                "", ""
            ))?;
        }
    }
    Ok(())
}

/// The day of a time in milliseconds since 1970, in this computer's time zone.
fn day(at: Option<i64>) -> String {
    let time = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    time.map_or_else(
        || "never".into(),
        |time| time.to_zoned(jiff::tz::TimeZone::system()).date().to_string(),
    )
}

fn row(model: &LocalModel, width: usize) -> String {
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
    let context = model
        .context
        .map(|context| format!("{context} tokens of context"))
        .unwrap_or_default();
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
    let (size, day) = (size(model.bytes), day(model.last_used_at));
    let mut row = format!(
        "{:<width$} {size:>8}  {day:<12} {}\n",
        model.reference,
        facts.join(" · ")
    );
    if let Some(problem) = &model.vision_problem {
        row.push_str(&format!(
            "{:<width$} {:>8}  its vision part cannot be read, so it takes text alone: {problem}\n",
            "", ""
        ));
    }
    if let Some(problem) = &model.problem {
        row.push_str(&format!("{:<width$} {:>8}  cannot be used: {problem}\n", "", ""));
    }
    row
}
