use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use checkpoint::memory::{Backend, Workload};
use checkpoint::ModelConfig;
use clap::Args;
use cli::output;
use engine::BenchFigures;
use protocol::{FolderSource, LocalEngine};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::median::median;
use super::numbers::{at_least_one, at_least_two};
use super::peer;
use super::sampling::SamplingArgs;
use crate::subject::{versions, SubjectArgs};

/// `ponder-bench speed`.
#[derive(Args)]
pub struct SpeedArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Lengths of the prompt in tokens
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "256", value_parser = at_least_one())]
    prompt_tokens: Vec<usize>,
    /// Tokens that are generated
    #[arg(long, value_name = "N", default_value = "256", value_parser = at_least_two())]
    generate: usize,
    /// Repetitions; medians are printed
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least_one())]
    repeat: usize,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// A script that measures mlx-lm and prints the same figures; run with the Python of PONDER_ORACLE_PYTHON
    #[arg(long, value_name = "SCRIPT")]
    peer: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// The figures of one engine.
#[derive(Debug, Clone, Deserialize, Serialize)]
struct Figures {
    decode_tokens_per_second: f64,
    prefill_tokens_per_second: f64,
    first_token_ms: f64,
    load_ms: f64,
    peak_bytes: f64,
    /// The peak as it is predicted from the model's config; the peer predicts none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    predicted_bytes: Option<u64>,
    /// Milliseconds of describing a step, handing it to the device, waiting for it; the peer prints none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step_ms: Option<[f64; 3]>,
    /// True if the steps were recorded ones; the peer says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recorded: Option<bool>,
    #[serde(default)]
    versions: String,
}

impl Figures {
    fn ours(figures: &BenchFigures, versions: &str, predicted_bytes: Option<u64>) -> Self {
        Self {
            decode_tokens_per_second: figures.decode_tokens_per_second,
            prefill_tokens_per_second: figures.prefill_tokens_per_second,
            first_token_ms: figures.first_token_ms,
            load_ms: figures.load_ms,
            peak_bytes: figures.peak_bytes as f64,
            predicted_bytes,
            step_ms: Some(figures.step_ms),
            recorded: Some(figures.recorded),
            versions: versions.to_owned(),
        }
    }
}

/// The figures of one length of prompt: ours, the peer's as it is installed, and with `PONDER_ORACLE_PRELOAD`.
#[derive(Default)]
struct Runs {
    ours: Vec<Figures>,
    peer: Vec<Figures>,
    preloaded: Vec<Figures>,
}

/// Measures ours and the peer by turns. On Linux the peer is measured with its own BLAS and with ours.
///
/// # Errors
/// When the model cannot be loaded or the peer does not run.
pub async fn run(args: SpeedArgs) -> Result<()> {
    let (engine, model) = args.subject.open().await?;
    let (versions, preload) = (versions(&engine)?, peer::preload());
    let mut lengths: Vec<Runs> = args.prompt_tokens.iter().map(|_| Runs::default()).collect();
    for _ in 0..args.repeat {
        let measured = engine.bench(
            model.clone(),
            args.prompt_tokens.clone(),
            args.generate,
            args.sampling.sampling(),
        )?;
        let device = engine.loaded().pop().map(|info| info.device).unwrap_or_default();
        for (runs, figures) in lengths.iter_mut().zip(measured) {
            let predicted = predicted(&model, &device, figures.prompt_tokens + args.generate);
            runs.ours.push(Figures::ours(&figures, &versions, predicted));
        }
        if let Some(script) = &args.peer {
            // The peer has the device for itself.
            engine.unload_all().await?;
            for (runs, figures) in lengths.iter_mut().zip(measure_peer(script, &model, &args, None)?) {
                runs.peer.push(figures);
            }
            if preload.is_some() {
                let measured = measure_peer(script, &model, &args, preload.as_deref())?;
                for (runs, figures) in lengths.iter_mut().zip(measured) {
                    runs.preloaded.push(figures);
                }
            }
        }
    }
    for (length, runs) in args.prompt_tokens.iter().zip(&lengths) {
        report(&args, *length, &model, runs)?;
    }
    Ok(())
}

/// The peak memory of a sequence of this length, estimated from the config and the headers of the weights.
fn predicted(model: &FolderSource, device: &str, tokens: usize) -> Option<u64> {
    let workload = Workload {
        context: u32::try_from(tokens).ok()?,
        kv_bits: None,
        backend: Backend::named(device)?,
        prefix_cached: false,
    };
    let config = ModelConfig::read(&model.path).ok()?;
    let stored = hub::memory_fit::stored_bytes(&model.path).ok()?;
    Some(config.estimate_memory(stored, &workload).total())
}

fn measure_peer(
    script: &Path,
    model: &FolderSource,
    args: &SpeedArgs,
    preload: Option<&OsStr>,
) -> Result<Vec<Figures>> {
    let options = ["--generate", &args.generate.to_string(), "--prompt-tokens"].map(str::to_owned);
    let lengths = args.prompt_tokens.iter().map(usize::to_string);
    let arguments: Vec<String> = options.into_iter().chain(lengths).collect();
    peer::measure(script, model, preload, &arguments)
}

/// The names of the peer as it is installed, and with `PONDER_ORACLE_PRELOAD`.
const PEERS: [&str; 2] = ["mlx-lm", "preloaded"];

type Figure = fn(&Figures) -> f64;

fn medians(runs: &[Figures]) -> Option<Figures> {
    let first = runs.first()?;
    let middle = |of: Figure| median(runs.iter().map(of).collect());
    Some(Figures {
        decode_tokens_per_second: middle(|run| run.decode_tokens_per_second)?,
        prefill_tokens_per_second: middle(|run| run.prefill_tokens_per_second)?,
        first_token_ms: middle(|run| run.first_token_ms)?,
        load_ms: middle(|run| run.load_ms)?,
        peak_bytes: middle(|run| run.peak_bytes)?,
        predicted_bytes: first.predicted_bytes,
        step_ms: first.step_ms,
        recorded: first.recorded,
        versions: first.versions.clone(),
    })
}

fn report(args: &SpeedArgs, length: usize, model: &FolderSource, runs: &Runs) -> Result<()> {
    let ours = medians(&runs.ours).context("nothing was measured")?;
    let (peer, preloaded) = (medians(&runs.peer), medians(&runs.preloaded));
    if args.json {
        let ratio = |peer: &Figures| ours.decode_tokens_per_second / peer.decode_tokens_per_second;
        output::line(&json!({
            "model": model.reference, "prompt_tokens": length, "generate": args.generate, "repeat": args.repeat,
            "ours": ours, "peer": peer, "peer_preloaded": preloaded,
            "decode_ratio": peer.as_ref().map(ratio),
        }))?;
        return Ok(());
    }
    let peers: Vec<&Figures> = peer.iter().chain(&preloaded).collect();
    let mut table = format!(
        "{}: prompt {length} tokens, {} generated, median of {}\n  ponder    {}\n",
        model.reference, args.generate, args.repeat, ours.versions
    );
    for (name, peer) in PEERS.iter().zip(&peers) {
        table.push_str(&format!("  {name:<10}{}\n", peer.versions));
    }
    table.push_str(&format!("{:<22}{:>12}", "", "ponder"));
    for (name, _) in PEERS.iter().zip(&peers) {
        table.push_str(&format!("  {name:>12}  {:>6}", "ratio"));
    }
    table.push('\n');
    let rows: [(&str, Figure); 5] = [
        ("decode, tokens/s", |run| run.decode_tokens_per_second),
        ("prefill, tokens/s", |run| run.prefill_tokens_per_second),
        ("first token, ms", |run| run.first_token_ms),
        ("load, ms", |run| run.load_ms),
        ("peak memory, MB", |run| run.peak_bytes / 1e6),
    ];
    for (name, of) in rows {
        table.push_str(&format!("{name:<22}{:>12.1}", of(&ours)));
        for peer in &peers {
            table.push_str(&format!("  {:>12.1}  {:>6.2}", of(peer), of(&ours) / of(peer)));
        }
        table.push('\n');
    }
    if let Some(predicted) = ours.predicted_bytes {
        table.push_str(&format!(
            "{:<22}{:>12.1}, {:+.1} % of the measured peak\n",
            "predicted memory, MB",
            predicted as f64 / 1e6,
            (predicted as f64 / ours.peak_bytes - 1.0) * 100.0
        ));
    }
    if let Some([described, begun, waited]) = ours.step_ms {
        table.push_str(&format!(
            "a step of ours, ms     {described:.2} describing, {begun:.2} handing over, {waited:.2} waiting\n"
        ));
    }
    output::text(&table)?;
    Ok(())
}
