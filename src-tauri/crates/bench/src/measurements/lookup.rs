use anyhow::Result;
use clap::Args;
use cli::output;
use engine::LookupFigures;
use serde_json::json;

use super::numbers::{at_least_one, at_least_two};
use crate::subject::SubjectArgs;

/// `ponder-bench lookup`.
#[derive(Args)]
pub struct LookupArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Tokens of the prompt
    #[arg(long, value_name = "N", default_value = "256", value_parser = at_least_one())]
    prompt_tokens: usize,
    /// Tokens that are generated
    #[arg(long, value_name = "N", default_value = "256", value_parser = at_least_two())]
    generate: usize,
    /// Repetitions; the best of each is printed
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least_one())]
    repeat: usize,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Prints the cost and the gain of drafts; the best of the repetitions, since other work can only slow one down.
///
/// # Errors
/// When the model cannot be loaded.
pub async fn run(args: LookupArgs) -> Result<()> {
    let (engine, model) = args.subject.open().await?;
    let prompt = args.prompt_tokens;
    let runs = (0..args.repeat)
        .map(|_| engine.bench_lookup(model.clone(), prompt, args.generate))
        .collect::<protocol::Result<Vec<_>>>()?;
    let mut table = format!(
        "{}: prompt of {prompt} tokens, {} generated, best of {}; tokens/s\ndraft     without  all right   ratio   steps per pass\n",
        model.reference, args.generate, args.repeat
    );
    for (index, LookupFigures { draft_tokens, .. }) in runs[0].iter().enumerate() {
        let best = |of: fn(&LookupFigures) -> f64| runs.iter().map(|run| of(&run[index])).fold(0.0, f64::max);
        let (without, with) = (best(|figures| figures.without), best(|figures| figures.with));
        let ratio = with / without;
        let steps = (draft_tokens + 1) as f64 / ratio;
        if args.json {
            output::line(&json!({
                "model": model.reference, "draft_tokens": draft_tokens, "prompt_tokens": prompt, "generate": args.generate,
                "without": without, "with": with, "ratio": ratio, "steps_per_pass": steps,
            }))?;
        }
        table.push_str(&format!(
            "{draft_tokens:>5}{without:>12.1}{with:>11.1}{ratio:>8.2}{steps:>17.2}\n"
        ));
    }
    if !args.json {
        output::text(&table)?;
    }
    Ok(())
}
