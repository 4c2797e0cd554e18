//! The names of the shapes.

/// The shapes there are. Those that end in `-small` are in 16 bit floats, have the same parts in a size for a CPU, and
/// are about as deep as the real ones.
pub const NAMES: [&str; 19] = [
    "gemma4-e2b",
    "gemma4-e4b",
    "gemma4-26b-a4b",
    "gemma4-31b",
    "qwen3-4b",
    "qwen3-30b-a3b",
    "qwen3.5-4b",
    "llama-8b",
    "gpt-oss-20b",
    "gemma4-e2b-small",
    "qwen3-4b-small",
    "qwen3-30b-a3b-small",
    "qwen3.5-4b-small",
    "llama-8b-small",
    "gpt-oss-20b-small",
    "gemma4-e4b-vision",
    "qwen3-vl-4b",
    "gemma4-e4b-vision-small",
    "qwen3-vl-4b-small",
];
