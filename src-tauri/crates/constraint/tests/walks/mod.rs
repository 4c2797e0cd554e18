//! Vocabularies, and answers of tokens chosen at random from the masks.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::Path;
use std::time::{Duration, Instant};

use constraint::{AnswerGrammar, Result, Vocabulary};
use prompt::ChatProcessor;

use crate::schemas::Random;

/// The stop token of [`bytes`].
pub const STOP: u32 = 256;

pub fn seed() -> u64 {
    std::env::var("PONDER_SEED").map_or(1, |seed| seed.parse().unwrap())
}

/// The 256 bytes, a stop token, and some tokens of several characters.
pub fn bytes() -> Vec<Vec<u8>> {
    let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    tokens.push(Vec::new());
    tokens.extend([r#"{""#, r#"":"#, r#"", ""#, "}}", " \n", "true", "<|end|>"].map(|token| token.as_bytes().to_vec()));
    tokens
}

/// The vocabulary of [`bytes`], of a model that gives logits for three more.
pub fn vocabulary() -> Vocabulary {
    let tokens = bytes();
    Vocabulary::new(&tokens, &[STOP], tokens.len() + 3).unwrap()
}

/// Pebble's tokens and what ends an answer.
pub fn pebble() -> (Vec<Vec<u8>>, Vec<u32>) {
    let pebble = ChatProcessor::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model")).unwrap();
    (
        pebble.tokenizer().vocabulary(),
        pebble.stops().ids.keys().copied().collect(),
    )
}

/// As many tokens as today's large tokenizers have: these, and words of two to nine letters with and without a blank
/// before them.
pub fn large(mut tokens: Vec<Vec<u8>>, random: &mut Random) -> Vec<Vec<u8>> {
    while tokens.len() < 150_000 {
        let mut word: Vec<u8> = (0..2 + random.below(8))
            .map(|_| b'a' + random.below(26) as u8)
            .collect();
        if random.below(2) == 0 {
            word.insert(0, b' ');
        }
        tokens.push(word);
    }
    tokens
}

/// The result of a walk.
#[derive(Default)]
pub struct Walk {
    /// The generated text.
    pub text: Vec<u8>,
    /// True if a stop token ended it.
    pub ended: bool,
    /// The time that each mask took.
    pub times: Vec<Duration>,
}

/// An answer of a limited number of tokens, chosen at random from the masks.
pub fn walk(grammar: &mut AnswerGrammar, tokens: &[Vec<u8>], random: &mut Random, most: usize) -> Result<Walk> {
    let mut walk = Walk::default();
    for _ in 0..most {
        let start = Instant::now();
        let mask = grammar.mask()?;
        walk.times.push(start.elapsed());
        let allowed: Vec<usize> = (0..mask.len()).filter(|id| mask[*id]).collect();
        let id = allowed[random.below(allowed.len())];
        if tokens[id].is_empty() {
            let written = String::from_utf8_lossy(&walk.text);
            assert!(grammar.is_whole()?, "it may end where it is not whole: {written}");
            walk.ended = true;
            return Ok(walk);
        }
        assert!(grammar.take(id as u32)?, "the mask allows what the grammar refuses");
        walk.text.extend(&tokens[id]);
    }
    Ok(walk)
}
