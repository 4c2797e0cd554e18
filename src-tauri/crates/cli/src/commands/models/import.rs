use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hub::{FormatChange, GgufImported, GgufModel, Hub, OtherPrograms};
use protocol::{Error, ErrorCode, FolderSource};
use serde_json::{json, Value};
use tokio_util::sync::CancellationToken;

use super::progress::{until_stopped, FileProgress};
use super::size::size;
use crate::{app, output};

/// Examples below the help of `ponder import`.
pub const EXAMPLES: &str = "Examples:
  ponder import
  ponder import ollama:llama3.2:3b
  ponder import ~/Downloads/Qwen3-4B-Q4_K_M.gguf --name Qwen3-4B";

/// `ponder import`.
#[derive(Args)]
pub struct ImportArgs {
    /// Folder, GGUF file or listed model (default: list those of Ollama and LM Studio)
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    /// Name of the new folder, for GGUF files
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Copies a folder with a model into Ponder's own, or makes one of a GGUF file.
///
/// # Errors
/// When it is no model that runs here; nothing new is left then.
pub async fn import(args: ImportArgs) -> Result<ExitCode> {
    let Some(model) = &args.model else {
        list(args.json).await?;
        return Ok(ExitCode::SUCCESS);
    };
    let hub = app::hub().await?;
    let imported = match source(model).await? {
        Source::Folder(folder) => import_folder(&hub, &folder, args.json).await,
        Source::Gguf { path, name } => {
            let name = args.name.as_deref().unwrap_or(&name);
            import_gguf(&hub, model, &path, name, args.json).await
        }
    };
    match imported {
        Err(error) if error.code == ErrorCode::Stopped => {
            output::print_failure("ponder", &error.into(), args.json);
            Ok(output::exit_code::STOPPED.into())
        }
        imported => {
            output::text(&imported?)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

enum Source {
    Folder(PathBuf),
    Gguf { path: PathBuf, name: String },
}

/// The source that a text names: a file or folder that is there, else a model of another program.
async fn source(model: &str) -> Result<Source> {
    let path = PathBuf::from(model);
    if path.is_file() || has_ending(&path) {
        let name = hub::gguf_name(&path);
        return Ok(Source::Gguf { path, name });
    }
    let listed = model.starts_with("ollama:") || model.starts_with("lmstudio:");
    if path.exists() || !listed {
        return Ok(Source::Folder(path));
    }
    let reference = model.to_owned();
    let found = tokio::task::spawn_blocking(move || OtherPrograms::of_this_computer().find(&reference)).await?;
    match found {
        Some(GgufModel {
            problem: Some(reason), ..
        }) => {
            let message = format!("{model} cannot be imported: {reason}");
            Err(Error::new(ErrorCode::ModelUnsupported, message).into())
        }
        Some(GgufModel { path, name, .. }) => Ok(Source::Gguf { path, name }),
        None => {
            let message = format!("there is no {model}. Run 'ponder import' for a list");
            Err(Error::new(ErrorCode::ModelNotFound, message).into())
        }
    }
}

fn has_ending(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("gguf"))
}

async fn import_folder(hub: &Hub, folder: &Path, json: bool) -> protocol::Result<String> {
    let (stop, progress) = (CancellationToken::new(), FileProgress::new(json));
    let imported = until_stopped(&stop, hub.upkeep().import(folder, stop.clone(), progress.tell())).await;
    progress.clear();
    let FolderSource { reference, path, .. } = imported?;
    Ok(match json {
        true => json_line(&json!({"type": "imported", "model": reference, "path": path.display().to_string()})),
        false => format!("Imported {}. Use it with --model {reference:?}\n", folder.display()),
    })
}

fn json_line(value: &Value) -> String {
    format!("{value}\n")
}

async fn import_gguf(hub: &Hub, called: &str, path: &Path, name: &str, json: bool) -> protocol::Result<String> {
    let (stop, progress) = (CancellationToken::new(), FileProgress::new(json));
    let mut tell = progress.tell();
    let mut last = 0;
    // A few times per percent.
    let steps = move |step: api::VerifyProgress| {
        if step.done == step.total || step.done - last > step.total / 200 {
            last = step.done;
            tell(step);
        }
    };
    let imported = until_stopped(&stop, hub.upkeep().import_gguf(path, name, stop.clone(), steps)).await;
    progress.clear();
    Ok(report(called, &imported?, json))
}

fn report(called: &str, imported: &GgufImported, json: bool) -> String {
    let GgufImported {
        model,
        source_bytes,
        bytes,
        formats,
        text_only,
    } = imported;
    if json {
        let format = |change: &FormatChange| {
            json!({"format": change.format, "bits": change.bits, "tensors": change.tensors, "worst": change.worst,
                "mean": change.mean})
        };
        let formats: Vec<Value> = formats.iter().map(format).collect();
        return json_line(&json!({
            "type": "imported", "model": model.reference, "path": model.path.display().to_string(),
            "source_bytes": source_bytes, "bytes": bytes, "formats": formats, "text_only": text_only,
        }));
    }
    let mut text = format!("Imported {called}, {} from {}\n", size(*bytes), size(*source_bytes));
    for change in formats.iter().filter(|change| change.worst > 0.0) {
        let bits = change.bits.map_or("16 bits".to_owned(), |bits| format!("{bits} bits"));
        let tensors = output::plural(change.tensors, "tensor");
        let (mean, worst) = (change.mean * 100.0, change.worst * 100.0);
        let format = change.format;
        text.push_str(&format!(
            "{format} became {bits} ({tensors}): {mean:.3}% off on average, {worst:.3}% at most\n"
        ));
    }
    if *text_only {
        text.push_str("Its vision part was left out\n");
    }
    text + &format!("Use it with --model {:?}\n", model.reference)
}

/// Lists the models of other programs.
async fn list(json: bool) -> Result<()> {
    let models = tokio::task::spawn_blocking(|| OtherPrograms::of_this_computer().models()).await?;
    if json {
        let row = |model: &GgufModel| {
            json!({"reference": model.reference, "path": model.path.display().to_string(), "bytes": model.bytes,
                "problem": model.problem})
        };
        output::line(&json!({"models": models.iter().map(row).collect::<Vec<_>>()}))?;
        return Ok(());
    }
    if models.is_empty() {
        output::text("Ollama and LM Studio have no models on this computer\n")?;
        return Ok(());
    }
    let widths = models.iter().map(|model| model.reference.chars().count());
    let width = widths.max().unwrap_or(0).clamp(10, 60);
    output::text(&format!("{:<width$} {:>8}\n", "MODEL", "SIZE"))?;
    for model in &models {
        output::text(&format!("{:<width$} {:>8}\n", model.reference, size(model.bytes)))?;
        if let Some(problem) = &model.problem {
            output::text(&format!("{:<width$} {:>8}  cannot be imported: {problem}\n", "", ""))?;
        }
    }
    Ok(())
}
