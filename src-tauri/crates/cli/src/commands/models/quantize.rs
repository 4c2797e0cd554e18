use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use engine::{MlxEngine, Mode, QuantizeProgress, Quantized, Recipe};
use indicatif::ProgressBar;
use protocol::{CancelFlag, ErrorCode, FolderSource};
use serde_json::{json, Value};
use tokio_util::sync::CancellationToken;

use super::progress::{until_stopped, FileProgress};
use super::reference::absolute;
use super::size::size;
use crate::input::DeviceArg;
use crate::{app, output};

/// Examples below the help of `ponder quantize`.
pub const EXAMPLES: &str = "Examples:
  ponder quantize Qwen/Qwen3-4B
  ponder quantize Qwen/Qwen3-4B --bits 8 --to ./Qwen3-4B-8bit
  ponder quantize ./models/Qwen3-4B --bits 3 --mixed=4 --json";

/// `ponder quantize`.
#[derive(Args)]
pub struct QuantizeArgs {
    /// Hugging Face ID, ID@COMMIT or model folder
    #[arg(value_name = "MODEL")]
    reference: String,
    /// Bits of a weight: 2, 3, 4, 5, 6 or 8 (default: 4)
    #[arg(long, value_name = "N")]
    bits: Option<u32>,
    /// Weights that share a scale: 32, 64 or 128 (default: 64)
    #[arg(long, value_name = "N")]
    group: Option<u32>,
    /// Format of numbers
    #[arg(
        long, value_enum, value_name = "affine|mxfp4|mxfp8|nvfp4", hide_possible_values = true,
        default_value_t = ModeArg::Affine
    )]
    mode: ModeArg,
    /// Give the most sensitive layers more bits
    #[arg(long, value_name = "BITS", num_args = 0..=1, require_equals = true, default_missing_value = "6")]
    mixed: Option<u32>,
    /// New folder (default: a folder beside imported models)
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Leave out the comparison by perplexity
    #[arg(long)]
    no_check: bool,
    #[command(flatten)]
    device: DeviceArg,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// The formats of MLX.
#[derive(Clone, Copy, ValueEnum)]
enum ModeArg {
    /// Integers with a scale and a bias
    Affine,
    /// 4-bit floats in groups of 32
    Mxfp4,
    /// 8-bit floats in groups of 32
    Mxfp8,
    /// 4-bit floats in groups of 16
    Nvfp4,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Affine => Self::Affine,
            ModeArg::Mxfp4 => Self::Mxfp4,
            ModeArg::Mxfp8 => Self::Mxfp8,
            ModeArg::Nvfp4 => Self::Nvfp4,
        }
    }
}

/// Writes a quantized copy of a model and compares how both predict a text.
///
/// # Errors
/// When the copy cannot be written; nothing of it is left then.
pub async fn quantize(args: QuantizeArgs) -> Result<ExitCode> {
    args.device.apply();
    let recipe = engine::recipe(args.mode.into(), args.bits, args.group, args.mixed)?;
    let source = app::model(Some(&absolute(&args.reference))).await?;
    if source.adapter.is_some() {
        let message = format!(
            "{} is an adapter, which stays beside its model's weights; quantize the model, and use the adapter with the \
             copy as MODEL:ADAPTER",
            source.reference
        );
        return Err(protocol::Error::new(ErrorCode::BadRequest, message).into());
    }
    let target = match &args.to {
        Some(folder) => std::path::absolute(folder)?,
        None => app::models()
            .await
            .new_folder(&source.path, &recipe.name())
            .map_err(protocol::Error::from)?,
    };
    let engine = app::engine()?;
    let written = match write(&args, &engine, &source, &target, recipe).await? {
        Err(error) if error.code == ErrorCode::Stopped => {
            output::print_failure("ponder", &error.into(), args.json);
            return Ok(output::exit_code::STOPPED.into());
        }
        written => written?,
    };
    report(&args, &target, &written)?;
    if !args.no_check {
        check(&args, &engine, source, target).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the copy with a bar; Ctrl+C stops it.
async fn write(
    args: &QuantizeArgs,
    engine: &MlxEngine,
    source: &FolderSource,
    target: &Path,
    recipe: Recipe,
) -> Result<protocol::Result<Quantized>> {
    let progress = FileProgress::new(args.json);
    let (stop, flag) = (CancellationToken::new(), CancelFlag::default());
    let work = {
        let (engine, flag, tell) = (engine.clone(), flag.clone(), steps(progress.tell()));
        let (source, target) = (source.path.clone(), target.to_owned());
        tokio::task::spawn_blocking(move || engine.quantize(&source, &target, recipe, flag, tell))
    };
    let stopped = stop.clone();
    let cancel = tokio::spawn(async move {
        stopped.cancelled().await;
        flag.cancel();
    });
    let written = until_stopped(&stop, work).await;
    cancel.abort();
    progress.clear();
    Ok(written?)
}

/// The progress of a quantization in the form of other work on files, a few times per percent.
fn steps(mut tell: impl FnMut(api::VerifyProgress) + Send + 'static) -> impl FnMut(QuantizeProgress) + Send + 'static {
    let mut last = 0;
    move |step| {
        if step.done == step.total || step.done - last > step.total / 200 {
            last = step.done;
            tell(api::VerifyProgress {
                path: step.tensor,
                done: step.done,
                total: step.total,
            });
        }
    }
}

fn report(args: &QuantizeArgs, target: &Path, written: &Quantized) -> Result<()> {
    let Quantized {
        source_bytes,
        bytes,
        bits_per_weight,
        undivided,
    } = written;
    if args.json {
        output::line(&json!({
            "type": "quantized", "model": target.display().to_string(), "source_bytes": source_bytes, "bytes": bytes,
            "bits_per_weight": bits_per_weight, "undivided": undivided,
        }))?;
        return Ok(());
    }
    let sizes = format!("{} to {}", size(*source_bytes), size(*bytes));
    let mut text = format!(
        "Quantized {} from {sizes}, {bits_per_weight:.2} bits per weight\n",
        args.reference
    );
    if let Some(first) = undivided.first() {
        let count = undivided.len();
        let many = format!("{count} of its matrices, such as {first}");
        text.push_str(&format!(
            "Groups do not divide the rows of {many}; these stay as they are\n"
        ));
    }
    text.push_str(&format!("Use it with --model {:?}\n", target.display().to_string()));
    output::text(&text)?;
    Ok(())
}

/// Compares how the original and the copy predict a text. A model that does not fit into memory is told of, and is no
/// failure: the copy is there.
async fn check(args: &QuantizeArgs, engine: &MlxEngine, source: FolderSource, target: PathBuf) -> Result<()> {
    let copy = FolderSource {
        reference: target.to_string_lossy().into_owned(),
        path: target,
        revision: None,
        adapter: None,
    };
    let spinner = match args.json {
        true => ProgressBar::hidden(),
        false => ProgressBar::new_spinner().with_message("Comparing how both predict a text"),
    };
    let work = {
        let engine = engine.clone();
        tokio::task::spawn_blocking(move || [source, copy].map(|model| engine.sample_perplexity(model)))
    };
    let measured = tokio::select! {
        measured = work => measured?,
        // The copy is whole already.
        _ = tokio::signal::ctrl_c() => {
            spinner.finish_and_clear();
            output::warn("Stopped before the comparison ended. The quantized model is complete");
            return Ok(());
        }
    };
    spinner.finish_and_clear();
    let [original, quantized] = measured;
    for error in [&original, &quantized]
        .into_iter()
        .filter_map(|measured| measured.as_ref().err())
    {
        let reason = error.message.trim_end_matches('.');
        output::warn(&format!(
            "Not compared by perplexity: {reason}. The quantized model is complete"
        ));
    }
    let shown = |measured: &protocol::Result<f64>| measured.as_ref().ok().copied();
    let (original, quantized) = (shown(&original), shown(&quantized));
    if args.json {
        let number = |number: Option<f64>| number.map_or(Value::Null, |number| json!(number));
        output::line(&json!({"type": "perplexity", "original": number(original), "quantized": number(quantized)}))?;
    } else {
        let row = |name: &str, number: Option<f64>| number.map(|number| format!("{name:<22}{number:>10.3}\n"));
        let rows = [
            row("Perplexity, original", original),
            row("Perplexity, quantized", quantized),
        ];
        output::text(&rows.into_iter().flatten().collect::<String>())?;
    }
    Ok(())
}
