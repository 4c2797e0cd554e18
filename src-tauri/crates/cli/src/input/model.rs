use clap::Args;

/// The model of a command.
#[derive(Args, Clone)]
pub struct ModelArg {
    /// A folder, a hub id, `pebble` or endpoint:NAME/MODEL; without it the default model
    #[arg(long, short, value_name = "REF")]
    pub model: Option<String>,
}
