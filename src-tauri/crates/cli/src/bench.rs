//! `ponder bench`: a model's speed, beside the peer's if one is given, in one run. On Linux the peer is measured as it is
//! installed and with the BLAS that ours has, because its wheel brings a slow one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use checkpoint::memory::{Backend, Workload};
use checkpoint::ModelConfig;
use clap::Args;
use engine::{BenchFigures, LookupFigures, MlxEngine};
use protocol::{FolderSource, LocalEngine};
use serde::Deserialize;
use serde_json::json;

use crate::app::local_engine_and_model;
use crate::batch::BatchRun;
use crate::gaps::GapsRun;
use crate::vision::VisionRun;
use crate::{batch, gaps, output, peer, vision, ModelArg};

#[derive(Args)]
pub struct BenchArgs {
    #[command(flatten)]
    model: ModelArg,
    /// A model of random weights with the sizes of a real one, instead of a model on this computer
    #[arg(long, value_name = "NAME", conflicts_with = "model", value_parser = clap::builder::PossibleValuesParser::new(random_models::NAMES))]
    shape: Option<String>,
    /// Where shapes are written and found again; some have 20 GB
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir().join("ponder-shapes"))]
    shapes: PathBuf,
    /// Lengths of the prompt in tokens
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "256")]
    prompt_tokens: Vec<usize>,
    /// How many tokens are generated
    #[arg(long, value_name = "N", default_value_t = 256)]
    generate: usize,
    /// How often everything is measured; medians are printed
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeat: usize,
    /// Measure a chat of twelve turns instead: the tokens that each reads, and its first token
    #[arg(long, conflicts_with = "shape")]
    turns: bool,
    /// Measure 1, 2, 4, 8 and 16 sequences that decode together instead
    #[arg(long, conflicts_with = "turns")]
    batch: bool,
    /// Measure how long a chat waits for its next token beside four programs' prompts of so many words instead
    #[arg(long, conflicts_with_all = ["turns", "batch", "peer"])]
    gaps: bool,
    /// Measure a question about a picture instead, and the next one about it
    #[arg(long, conflicts_with_all = ["turns", "batch", "gaps", "lookup"])]
    vision: bool,
    /// The size of the picture
    #[arg(long, value_name = "WxH", default_value = "1920x1080", value_parser = picture_size)]
    picture: (u32, u32),
    /// Measure the drafts of prompt lookup instead: what a pass over one takes, and what that gives if it is right
    #[arg(long, conflicts_with_all = ["turns", "batch"])]
    lookup: bool,
    /// A script that measures mlx-lm and prints the same figures; run with the Python of PONDER_ORACLE_PYTHON
    #[arg(long, value_name = "SCRIPT")]
    peer: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Such as 640x480.
fn picture_size(text: &str) -> std::result::Result<(u32, u32), String> {
    let size = text
        .split_once(['x', '×'])
        .and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    let size = size.filter(|(width, height)| [width, height].iter().all(|side| (1..=8192).contains(*side)));
    size.ok_or_else(|| "it is a width and a height of at most 8192 pixels, such as 640x480".to_owned())
}

/// What one engine did.
#[derive(Debug, Clone, Deserialize, serde::Serialize)]
struct Figures {
    decode_tokens_per_second: f64,
    prefill_tokens_per_second: f64,
    first_token_ms: f64,
    load_ms: f64,
    peak_bytes: f64,
    /// The peak as it is told from the model's config; the peer says none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    predicted_bytes: Option<u64>,
    /// Describing a step, handing it to the device, waiting for it; the peer does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step_ms: Option<[f64; 3]>,
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
            versions: versions.to_owned(),
        }
    }
}

/// What was measured at one length of prompt: ours, the peer as it is installed, and the peer with `PONDER_ORACLE_PRELOAD`.
#[derive(Default)]
struct Runs {
    ours: Vec<Figures>,
    peer: Vec<Figures>,
    preloaded: Vec<Figures>,
}

/// Prints what drafts cost and give; of several repetitions the best of each, since others only disturb.
fn lookup(engine: &MlxEngine, model: &FolderSource, args: &BenchArgs) -> Result<()> {
    let prompt = args.prompt_tokens[0];
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

/// Measures ours and the peer by turns, so that a noisy neighbour hits both.
///
/// # Errors
/// When the model cannot be loaded or the peer does not run.
pub async fn run(args: BenchArgs) -> Result<()> {
    if args.turns {
        let (engine, model) = local_engine_and_model(args.model.model.as_deref()).await?;
        return crate::turns::run(&engine, &model, args.peer.as_deref(), args.json).await;
    }
    if args.prompt_tokens.contains(&0) || args.generate < 2 || args.repeat == 0 {
        bail!("a measurement needs at least one prompt token, two generated tokens and one repetition");
    }
    let (engine, model) = match &args.shape {
        Some(shape) => (
            MlxEngine::start(),
            random_models::prepare(shape, &args.shapes).map_err(protocol::Error::from)?,
        ),
        None => local_engine_and_model(args.model.model.as_deref()).await?,
    };
    if args.gaps {
        let run = GapsRun {
            prompt: args.prompt_tokens[0],
            generate: args.generate,
            json: args.json,
        };
        return gaps::run(&engine, &model, &run).await;
    }
    if args.batch {
        let run = BatchRun {
            prompt: args.prompt_tokens[0],
            generate: args.generate,
            repeat: args.repeat,
            peer: args.peer.as_deref(),
            json: args.json,
        };
        return batch::run(&engine, &model, &run).await;
    }
    if args.vision {
        let run = VisionRun {
            picture: args.picture,
            words: args.prompt_tokens[0],
            repeat: args.repeat,
            peer: args.peer.as_deref(),
            json: args.json,
        };
        return vision::run(&engine, &model, &run).await;
    }
    if args.lookup {
        return lookup(&engine, &model, &args);
    }
    let preload = std::env::var_os("PONDER_ORACLE_PRELOAD");
    let versions = format!(
        "ponder {}, mlx {}, {}",
        env!("CARGO_PKG_VERSION"),
        engine.mlx_version()?,
        engine.blas()?
    );
    let mut lengths: Vec<Runs> = args.prompt_tokens.iter().map(|_| Runs::default()).collect();
    for _ in 0..args.repeat {
        let measured = engine.bench(model.clone(), args.prompt_tokens.clone(), args.generate)?;
        let device = engine.loaded().pop().map(|info| info.device).unwrap_or_default();
        for (runs, figures) in lengths.iter_mut().zip(measured) {
            let predicted = predicted(&model, &device, figures.prompt_tokens + args.generate);
            runs.ours.push(Figures::ours(&figures, &versions, predicted));
        }
        if let Some(script) = &args.peer {
            // The peer has the device for itself.
            engine.unload_all().await?;
            for (runs, figures) in lengths.iter_mut().zip(peer(script, &model, &args, None)?) {
                runs.peer.push(figures);
            }
            if preload.is_some() {
                for (runs, figures) in lengths.iter_mut().zip(peer(script, &model, &args, preload.as_deref())?) {
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

/// The most memory that reading so many tokens takes, told from the config and the headers of the weights.
fn predicted(model: &FolderSource, device: &str, tokens: usize) -> Option<u64> {
    let workload = Workload {
        context: u32::try_from(tokens).ok()?,
        kv_bits: None,
        backend: Backend::named(device)?,
        prefix_cached: false,
    };
    let config = ModelConfig::read(&model.path).ok()?;
    Some(
        config
            .estimate_memory(hub::memory_fit::stored_bytes(&model.path).ok()?, &workload)
            .total(),
    )
}

fn peer(script: &Path, model: &FolderSource, args: &BenchArgs, preload: Option<&OsStr>) -> Result<Vec<Figures>> {
    let options = ["--generate", &args.generate.to_string(), "--prompt-tokens"].map(str::to_owned);
    let arguments: Vec<String> = options
        .into_iter()
        .chain(args.prompt_tokens.iter().map(usize::to_string))
        .collect();
    peer::measure(script, model, preload, &arguments)
}

/// What the peer is called as it is installed, and with `PONDER_ORACLE_PRELOAD`.
const PEERS: [&str; 2] = ["mlx-lm", "preloaded"];

/// One of the figures.
type Figure = fn(&Figures) -> f64;

fn median(runs: &[Figures]) -> Option<Figures> {
    let first = runs.first()?;
    let middle = |of: Figure| {
        let mut values: Vec<f64> = runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
    };
    Some(Figures {
        decode_tokens_per_second: middle(|run| run.decode_tokens_per_second),
        prefill_tokens_per_second: middle(|run| run.prefill_tokens_per_second),
        first_token_ms: middle(|run| run.first_token_ms),
        load_ms: middle(|run| run.load_ms),
        peak_bytes: middle(|run| run.peak_bytes),
        predicted_bytes: first.predicted_bytes,
        step_ms: first.step_ms,
        versions: first.versions.clone(),
    })
}

fn report(args: &BenchArgs, length: usize, model: &FolderSource, runs: &Runs) -> Result<()> {
    let ours = median(&runs.ours).context("nothing was measured")?;
    let (peer, preloaded) = (median(&runs.peer), median(&runs.preloaded));
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
