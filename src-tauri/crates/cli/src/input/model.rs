use clap::Args;

use super::DeviceArg;

/// The model of a command.
#[derive(Args, Clone)]
pub struct ModelArg {
    /// Model folder, Hugging Face ID, pebble or endpoint:NAME/MODEL (default: your default model)
    #[arg(long, short, value_name = "MODEL")]
    pub model: Option<String>,
    /// The device that computes it.
    #[command(flatten)]
    pub device: DeviceArg,
}
