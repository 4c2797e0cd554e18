//! GGUF files of other programs: listed, and made into models.

use std::path::PathBuf;

use api::{GgufImport, GgufModel, VerifyProgress};
use command::command;
use hub::OtherPrograms;
use protocol::{Error, Reason, Result};
use tauri::ipc::Channel;
use tauri::{AppHandle, State, WebviewWindow};

use super::models_changed;
use crate::app::state::App;
use crate::windows::question;
use crate::words;

/// The models that Ollama and LM Studio have on this computer.
#[command(models)]
pub async fn gguf_models(app: State<'_, App>) -> Result<Vec<GgufModel>> {
    let models = app.models.clone();
    let list = move || {
        let found = OtherPrograms::of_this_computer().models();
        let listed = found.into_iter().map(|found| GgufModel {
            imported: found.problem.is_none() && models.has_imported(&found.path),
            reference: found.reference,
            name: found.name,
            bytes: found.bytes,
            problem: found.problem,
        });
        Ok(listed.collect())
    };
    app.run_blocking(list).await
}

/// Asks for GGUF files in the system's dialog, and returns their paths, which can be imported.
#[command(models)]
pub async fn choose_gguf_files(window: WebviewWindow, handle: AppHandle) -> Result<Vec<String>> {
    let chosen = question::choose_files(&window, words::current(&handle).add_files).await?;
    Ok(chosen.iter().map(|path| path.to_string_lossy().into_owned()).collect())
}

/// Makes a model of a listed one or of a file. Rejects with `stopped` if it was stopped; nothing is left of it then.
#[command(models)]
pub async fn import_gguf(
    handle: AppHandle,
    app: State<'_, App>,
    reference: String,
    on_progress: Channel<VerifyProgress>,
) -> Result<GgufImport> {
    let (path, name) = app.run_blocking(move || source(&reference)).await?;
    let stop = app.gguf_imports.begin(&path, &app.stop)?;
    let mut last = 0;
    let tell = move |progress: VerifyProgress| {
        // A few times per percent. The import goes on if the window was closed.
        if progress.done == progress.total || progress.done - last > progress.total / 200 {
            last = progress.done;
            drop(on_progress.send(progress));
        }
    };
    let imported = app.hub.upkeep().import_gguf(&path, &name, stop, tell).await;
    app.gguf_imports.end(&path);
    let imported = imported?;
    models_changed(&handle);
    Ok(GgufImport {
        reference: imported.model.reference,
        bytes: imported.bytes,
        loss: imported.formats.iter().map(|change| change.mean).fold(0.0, f64::max),
        text_only: imported.text_only,
    })
}

/// Stops an import.
#[command(models)]
pub async fn stop_gguf_import(app: State<'_, App>, reference: String) -> Result<()> {
    let (path, _) = app.run_blocking(move || source(&reference)).await?;
    app.gguf_imports.stop(&path);
    Ok(())
}

/// The file that a reference names, and a name for its folder.
fn source(reference: &str) -> Result<(PathBuf, String)> {
    let path = PathBuf::from(reference);
    if path.is_absolute() {
        let name = hub::gguf_name(&path);
        return Ok((path, name));
    }
    let found = OtherPrograms::of_this_computer().find(reference);
    let found = found.map(|found| (found.path, found.name));
    found.ok_or_else(|| {
        let message = format!("{reference} is not on this computer any more");
        Error::because(Reason::ModelMissing, message).with("reference", reference)
    })
}
