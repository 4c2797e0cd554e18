//! The names of pre-tokenizers in GGUF files, and what they stand for in tokenizer.json. Regular expressions are those
//! of the models' own tokenizer.json.

use serde_json::{json, Value};

/// A step of a pre-tokenizer.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Matches become pieces of their own.
    Split(&'static str),
    /// Digits become pieces, one by one.
    Digits,
    /// GPT-2's pieces.
    Gpt2,
}

/// A pre-tokenizer.
#[derive(Debug, Clone, Copy)]
pub struct Pre {
    /// Its names, `tokenizer.ggml.pre`.
    pub names: &'static [&'static str],
    /// The steps, before bytes become characters.
    pub steps: &'static [Step],
    /// True if texts are brought into the form NFC.
    pub composed: bool,
    /// True if a piece that is a token is it, whatever merges say.
    pub whole: bool,
    /// True if every text begins with the token of beginnings unless the file says otherwise.
    pub begins: bool,
}

const GPT2: &[Step] = &[Step::Gpt2];
const DIGITS: &[Step] = &[Step::Digits, Step::Gpt2];

/// Words with contractions, digits by threes.
const CL100K: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
/// The same, digits one by one.
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
/// The same, with the marks of letters.
const QWEN35: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}",
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
/// Words by their capitals, with contractions.
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
/// The same without contractions, digits one by one.
const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const DEEPSEEK_V3: &[Step] = &[
    Step::Split(r"\p{N}{1,3}"),
    Step::Split("[一-龥\u{3040}-ゟ゠-ヿ]+"),
    Step::Split(concat!(
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )),
];

const fn pre(names: &'static [&'static str], steps: &'static [Step]) -> Pre {
    Pre {
        names,
        steps,
        composed: false,
        whole: false,
        begins: false,
    }
}

/// The pre-tokenizers that are known. Tests compare `smollm`, `llama-bpe`, `qwen2`, `gpt-4o` and `deepseek-v3` with the
/// tokenizer.json of a model (`cli/tests/it/import.rs`); the others are as llama.cpp has them.
pub const PRES: &[Pre] = &[
    pre(&["gpt-2", "olmo"], GPT2),
    pre(&["smollm", "starcoder", "command-r"], DIGITS),
    Pre {
        whole: true,
        begins: true,
        ..pre(&["llama-bpe", "llama3", "llama-v3", "falcon3"], &[Step::Split(CL100K)])
    },
    pre(&["chatglm-bpe", "glm4"], &[Step::Split(CL100K)]),
    Pre {
        composed: true,
        ..pre(&["qwen2", "deepseek-r1-qwen"], &[Step::Split(QWEN2)])
    },
    Pre {
        composed: true,
        ..pre(&["qwen35"], &[Step::Split(QWEN35)])
    },
    pre(&["gpt-4o", "llama4"], &[Step::Split(O200K)]),
    Pre {
        whole: true,
        begins: true,
        ..pre(&["tekken"], &[Step::Split(TEKKEN)])
    },
    pre(&["deepseek-v3"], DEEPSEEK_V3),
];

impl Pre {
    /// The pre-tokenizer of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRES.iter().find(|pre| pre.names.contains(&name))
    }

    /// `pre_tokenizer` of tokenizer.json.
    pub fn json(&self) -> Value {
        let bytewise = |pieces: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": pieces});
        let step = |step: &Step| match step {
            Step::Split(pattern) => {
                json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false})
            }
            Step::Digits => json!({"type": "Digits", "individual_digits": true}),
            Step::Gpt2 => bytewise(true),
        };
        let mut steps: Vec<Value> = self.steps.iter().map(step).collect();
        // GPT-2's pieces are made by the step that spells bytes.
        if !matches!(self.steps.last(), Some(Step::Gpt2)) {
            steps.push(bytewise(false));
        }
        json!({"type": "Sequence", "pretokenizers": steps})
    }
}
