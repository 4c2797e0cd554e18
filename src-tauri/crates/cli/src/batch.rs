//! `ponder bench --batch`: how fast several sequences decode together, beside mlx-lm's BatchGenerator.

use std::path::Path;

use anyhow::{Context, Result};
use engine::MlxEngine;
use protocol::{FolderSource, LocalEngine};
use serde_json::json;

use crate::{output, peer};

/// How many sequences decode at once.
const SIZES: [usize; 5] = [1, 2, 4, 8, 16];

/// What is measured.
pub struct BatchRun<'a> {
    /// Tokens of each prompt.
    pub prompt: usize,
    /// Tokens that each sequence generates.
    pub generate: usize,
    /// How often; medians are printed.
    pub repeat: usize,
    /// The script that measures the peer.
    pub peer: Option<&'a Path>,
    /// Whether JSON is printed.
    pub json: bool,
}

/// Measures ours and the peer by turns and prints a table.
///
/// # Errors
/// When the model cannot be loaded or the peer does not run.
pub async fn run(engine: &MlxEngine, model: &FolderSource, run: &BatchRun<'_>) -> Result<()> {
    let (mut ours, mut peers) = (vec![Vec::new(); SIZES.len()], vec![Vec::new(); SIZES.len()]);
    for _ in 0..run.repeat {
        let measured = engine.bench_batch(model.clone(), SIZES.to_vec(), run.prompt, run.generate)?;
        for (rates, figures) in ours.iter_mut().zip(measured) {
            rates.push(figures.tokens_per_second);
        }
        if let Some(script) = run.peer {
            // The peer has the device for itself.
            engine.unload_all().await?;
            for (rates, rate) in peers.iter_mut().zip(peer(script, model, run)?) {
                rates.push(rate);
            }
        }
    }
    let mut table = format!(
        "{}: prompts of {} tokens, {} generated each, median of {}; tokens/s of all sequences\nsequences      ponder",
        model.reference, run.prompt, run.generate, run.repeat
    );
    table.push_str(if run.peer.is_some() {
        "      mlx-lm   ratio\n"
    } else {
        "\n"
    });
    for ((count, ours), peers) in SIZES.iter().zip(&mut ours).zip(&mut peers) {
        let (ours, peer) = (median(ours).context("nothing was measured")?, median(peers));
        if run.json {
            output::line(&json!({
                "model": model.reference, "sequences": count, "prompt_tokens": run.prompt, "generate": run.generate,
                "tokens_per_second": ours, "peer_tokens_per_second": peer,
            }))?;
        }
        table.push_str(&format!("{count:>9}{ours:>12.1}"));
        if let Some(peer) = peer {
            table.push_str(&format!("{peer:>12.1}{:>8.2}", ours / peer));
        }
        table.push('\n');
    }
    if !run.json {
        output::text(&table)?;
    }
    Ok(())
}

fn median(rates: &mut [f64]) -> Option<f64> {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

fn peer(script: &Path, model: &FolderSource, run: &BatchRun<'_>) -> Result<Vec<f64>> {
    let options = [
        "--prompt-tokens",
        &run.prompt.to_string(),
        "--generate",
        &run.generate.to_string(),
        "--sequences",
    ]
    .map(str::to_owned);
    let arguments: Vec<String> = options.into_iter().chain(SIZES.map(|size| size.to_string())).collect();
    // With the BLAS that ours has: the wheel's own is slower.
    let preload = std::env::var_os("PONDER_ORACLE_PRELOAD");
    peer::measure(script, model, preload.as_deref(), &arguments)
}
