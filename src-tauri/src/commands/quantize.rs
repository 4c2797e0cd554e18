//! Quantized copies of models.

use api::{QuantizeChoice, QuantizeFormat, QuantizedModel, VerifyProgress};
use command::command;
use engine::{size_of_copy, Mode, QuantizeProgress, Recipe};
use protocol::{CancelFlag, FolderSource, Result};
use tauri::ipc::Channel;
use tauri::{AppHandle, State};

use super::models_changed;
use crate::app::state::App;

/// The formats that a copy may have, and its size in each. Reads nothing but headers.
#[command(models)]
pub async fn quantize_choices(app: State<'_, App>, reference: String) -> Result<Vec<QuantizeChoice>> {
    let models = app.models.clone();
    let list = move || {
        let source = models.find(&reference)?;
        let choice = |format| {
            let recipe = recipe(format)?;
            let (bytes, bits_per_weight) = size_of_copy(&source.path, &recipe)?;
            let target = models.new_folder(&source.path, &recipe.name())?;
            Ok(QuantizeChoice {
                format,
                bytes,
                bits_per_weight,
                exists: target.exists(),
            })
        };
        QuantizeFormat::ALL.into_iter().map(choice).collect()
    };
    app.run_blocking(list).await
}

/// Writes a quantized copy of a model beside imported ones, and compares how both predict a text if `compare` is set.
/// Rejects with `stopped` if it was stopped; nothing is left of it then.
#[command(models)]
pub async fn quantize_model(
    handle: AppHandle,
    app: State<'_, App>,
    reference: String,
    format: QuantizeFormat,
    compare: bool,
    on_progress: Channel<VerifyProgress>,
) -> Result<QuantizedModel> {
    let models = app.models.clone();
    let (source, target, recipe) = app
        .run_blocking(move || {
            let (source, recipe) = (models.find(&reference)?, recipe(format)?);
            let target = models.new_folder(&source.path, &recipe.name())?;
            Ok((source, target, recipe))
        })
        .await?;
    let stop = app.quantizations.begin(&source.path, &app.stop)?;
    let flag = CancelFlag::default();
    let cancel = tauri::async_runtime::spawn({
        let flag = flag.clone();
        async move {
            stop.cancelled().await;
            flag.cancel();
        }
    });
    let (mlx, path, folder) = (app.mlx.clone(), source.path.clone(), target.clone());
    let written = app.run_blocking(move || mlx.quantize(&path, &folder, recipe, flag, tell(on_progress)));
    let written = written.await;
    cancel.abort();
    app.quantizations.end(&source.path);
    let written = written?;
    models_changed(&handle);
    let copy = FolderSource {
        reference: target.to_string_lossy().into_owned(),
        path: target,
        revision: None,
        adapter: None,
    };
    let mut made = QuantizedModel {
        reference: copy.reference.clone(),
        bytes: written.bytes,
        bits_per_weight: written.bits_per_weight,
        perplexity: None,
        not_compared: None,
    };
    if compare {
        let mlx = app.mlx.clone();
        let measured = app.run_blocking(move || Ok([mlx.sample_perplexity(source)?, mlx.sample_perplexity(copy)?]));
        // The copy is whole, whether both fit into memory or not.
        match measured.await {
            Ok(perplexity) => made.perplexity = Some(perplexity),
            Err(error) => made.not_compared = Some(error),
        }
    }
    Ok(made)
}

/// Stops the writing of a copy.
#[command(models)]
pub async fn stop_quantizing(app: State<'_, App>, reference: String) -> Result<()> {
    let models = app.models.clone();
    let source = app.run_blocking(move || Ok(models.find(&reference)?)).await?;
    app.quantizations.stop(&source.path);
    Ok(())
}

/// Reports progress to a window, a few times per percent. The work goes on if it was closed.
fn tell(on_progress: Channel<VerifyProgress>) -> impl FnMut(QuantizeProgress) {
    let mut last = 0;
    move |progress| {
        if progress.done == progress.total || progress.done - last > progress.total / 200 {
            last = progress.done;
            drop(on_progress.send(VerifyProgress {
                path: progress.tensor,
                done: progress.done,
                total: progress.total,
            }));
        }
    }
}

fn recipe(format: QuantizeFormat) -> Result<Recipe> {
    let (mode, bits, sensitive) = match format {
        QuantizeFormat::EightBits => (Mode::Affine, Some(8), None),
        QuantizeFormat::FourAndSixBits => (Mode::Affine, Some(4), Some(6)),
        QuantizeFormat::FourBits => (Mode::Affine, Some(4), None),
        QuantizeFormat::Mxfp4 => (Mode::Mxfp4, None, None),
    };
    engine::recipe(mode, bits, None, sensitive)
}
