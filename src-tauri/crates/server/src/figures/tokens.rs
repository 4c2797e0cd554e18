//! Tokens of answers, as clients count them.

/// Token counts of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// All tokens of the prompt.
    pub(crate) prompt: u32,
    /// The part of the prompt that was in the prefix cache.
    pub(crate) cached: u32,
    /// All generated tokens, including the thinking.
    pub(crate) completion: u32,
    /// The part of them that was thinking.
    pub(crate) reasoning: u32,
}

impl Tokens {
    /// The sum over answers to different prompts.
    pub(crate) fn beside(self, other: Self) -> Self {
        Self {
            prompt: self.prompt + other.prompt,
            cached: self.cached + other.cached,
            completion: self.completion + other.completion,
            reasoning: self.reasoning + other.reasoning,
        }
    }

    /// The sum over several answers to one prompt, which is prefilled once.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            prompt: self.prompt.max(other.prompt),
            cached: self.cached.max(other.cached),
            completion: self.completion + other.completion,
            reasoning: self.reasoning + other.reasoning,
        }
    }
}
