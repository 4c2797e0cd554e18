use clap::Args;

/// The model of a command.
#[derive(Args, Clone)]
pub struct ModelArg {
    /// Model folder, Hugging Face ID, pebble or endpoint:NAME/MODEL (default: your default model)
    #[arg(long, short, value_name = "MODEL")]
    pub model: Option<String>,
}
