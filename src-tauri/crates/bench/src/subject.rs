//! The engine and the model of a command.

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::Args;
use cli::app;
use cli::input::ModelArg;
use engine::{EngineOptions, MlxEngine};
use protocol::{FolderSource, LoadEvent, LocalEngine};

/// The model to measure.
#[derive(Args)]
pub struct SubjectArgs {
    #[command(flatten)]
    model: ModelArg,
    /// Model of random weights in the sizes of a real one
    #[arg(long, value_name = "NAME", conflicts_with = "model", value_parser = PossibleValuesParser::new(random_models::NAMES))]
    shape: Option<String>,
    /// Folder for shapes, some of which have 20 GB
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir().join("ponder-shapes"))]
    shapes: PathBuf,
}

impl SubjectArgs {
    /// An engine of this process, and the model.
    ///
    /// # Errors
    /// When the model is not on this computer, or a shape cannot be written.
    pub async fn open(&self) -> Result<(MlxEngine, FolderSource)> {
        match &self.shape {
            Some(shape) => {
                let model = random_models::prepare(shape, &self.shapes).map_err(protocol::Error::from)?;
                // As the app keeps what it compiles and compares.
                let options = EngineOptions {
                    cache_dir: Some(self.shapes.join("mlx")),
                    ..EngineOptions::default()
                };
                Ok((MlxEngine::with_options(options), model))
            }
            None => open(&self.model).await,
        }
    }
}

/// An engine of this process, and a model of this computer.
///
/// # Errors
/// When the model is not on this computer.
pub async fn open(model: &ModelArg) -> Result<(MlxEngine, FolderSource)> {
    model.device.apply();
    let model = app::model(model.model.as_deref()).await?;
    Ok((app::engine()?, model))
}

/// Loads a model.
///
/// # Errors
/// When it cannot be loaded.
pub async fn load(engine: &MlxEngine, model: &FolderSource) -> Result<()> {
    let mut events = engine.load(model.clone());
    while let Some(event) = events.recv().await {
        if let LoadEvent::Failed(error) = event {
            return Err(error.into());
        }
    }
    Ok(())
}

/// The versions of Ponder, MLX and the BLAS.
///
/// # Errors
/// When the engine does not answer.
pub fn versions(engine: &MlxEngine) -> Result<String> {
    let (ponder, mlx, blas) = (env!("CARGO_PKG_VERSION"), engine.mlx_version()?, engine.blas()?);
    Ok(format!("ponder {ponder}, mlx {mlx}, {blas}"))
}
