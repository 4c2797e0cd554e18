use clap::Args;

use super::number::at_least;
use super::sampling::ThinkingArg;

/// `--system`, `--thinking` and `--thinking-budget`: the way in which a conversation is led, in one message or many.
#[derive(Args, Clone)]
pub struct ConversationArgs {
    /// System prompt
    #[arg(long, short, value_name = "TEXT")]
    pub system: Option<String>,
    /// Turn thinking on or off, or set its effort (default: the model decides)
    #[arg(long, value_name = "on|off|low|medium|high", hide_possible_values = true)]
    pub thinking: Option<ThinkingArg>,
    /// Stop thinking after N tokens and respond
    #[arg(long, value_name = "N", value_parser = at_least(1))]
    pub thinking_budget: Option<u32>,
}
