use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use cli::output;
use protocol::{FolderSource, LocalEngine};
use serde_json::json;

use super::median::median;
use super::numbers::{at_least_one, at_least_two, up_to};
use super::peer;
use super::sampling::SamplingArgs;
use crate::subject::SubjectArgs;

/// The most sequences that decode at once.
const MOST: u64 = 32;

/// `ponder-bench batch`.
#[derive(Args)]
pub struct BatchArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Numbers of sequences that decode at once
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,2,4,8,16", value_parser = up_to(MOST))]
    sequences: Vec<usize>,
    /// Tokens of each prompt; no two sequences have the same
    #[arg(long, value_name = "N", default_value = "256", value_parser = at_least_one())]
    prompt_tokens: usize,
    /// Tokens that each sequence generates
    #[arg(long, value_name = "N", default_value = "256", value_parser = at_least_two())]
    generate: usize,
    /// Repetitions; medians are printed
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least_one())]
    repeat: usize,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// A script that measures mlx-lm's BatchGenerator; run with the Python of PONDER_ORACLE_PYTHON
    #[arg(long, value_name = "SCRIPT")]
    peer: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Measures ours and the peer by turns and prints a table.
///
/// # Errors
/// When the model cannot be loaded or the peer does not run.
pub async fn run(args: BatchArgs) -> Result<()> {
    let (engine, model) = args.subject.open().await?;
    let sizes = &args.sequences;
    let (mut ours, mut peers) = (vec![Vec::new(); sizes.len()], vec![Vec::new(); sizes.len()]);
    for _ in 0..args.repeat {
        let measured = engine.bench_batch(
            model.clone(),
            sizes.clone(),
            (args.prompt_tokens, args.generate),
            args.sampling.sampling(),
        )?;
        for (rates, figures) in ours.iter_mut().zip(measured) {
            rates.push(figures.tokens_per_second);
        }
        if let Some(script) = &args.peer {
            // The peer has the device for itself.
            engine.unload_all().await?;
            for (rates, rate) in peers.iter_mut().zip(measure_peer(script, &model, &args)?) {
                rates.push(rate);
            }
        }
    }
    let mut table = format!(
        "{}: prompts of {} tokens, {} generated each, median of {}; tokens/s of all sequences\nsequences      ponder",
        model.reference, args.prompt_tokens, args.generate, args.repeat
    );
    table.push_str(if args.peer.is_some() {
        "      mlx-lm   ratio\n"
    } else {
        "\n"
    });
    for ((count, ours), peers) in sizes.iter().zip(ours).zip(peers) {
        let (ours, peer) = (median(ours).context("nothing was measured")?, median(peers));
        if args.json {
            output::line(&json!({
                "model": model.reference, "sequences": count, "prompt_tokens": args.prompt_tokens, "generate": args.generate,
                "tokens_per_second": ours, "peer_tokens_per_second": peer,
            }))?;
        }
        table.push_str(&format!("{count:>9}{ours:>12.1}"));
        if let Some(peer) = peer {
            table.push_str(&format!("{peer:>12.1}{:>8.2}", ours / peer));
        }
        table.push('\n');
    }
    if !args.json {
        output::text(&table)?;
    }
    Ok(())
}

fn measure_peer(script: &Path, model: &FolderSource, args: &BatchArgs) -> Result<Vec<f64>> {
    let (prompt, generate) = (args.prompt_tokens.to_string(), args.generate.to_string());
    let options = ["--prompt-tokens", &prompt, "--generate", &generate, "--sequences"];
    let options = options.map(str::to_owned);
    let sizes = args.sequences.iter().map(usize::to_string);
    let arguments: Vec<String> = options.into_iter().chain(sizes).collect();
    peer::measure(script, model, peer::preload().as_deref(), &arguments)
}
