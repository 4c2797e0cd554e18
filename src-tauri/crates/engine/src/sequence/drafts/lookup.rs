//! Prompt lookup decoding (Saxena, 2023): if the last tokens stand in the prompt or in the answer already, what followed
//! them there is drafted.

use std::collections::HashMap;

/// The longest n-gram that is looked up.
const LONGEST: usize = 4;

/// The shortest.
const SHORTEST: usize = 2;

/// For each n-gram, the index of the token after its most recent occurrence.
#[derive(Debug, Default)]
pub struct NgramIndex {
    /// Shorter n-grams are filled up with what is no token.
    followers: HashMap<[u32; LONGEST], usize>,
    /// How many tokens have been taken in.
    length: usize,
}

impl NgramIndex {
    /// Takes in what is new in a text that has grown.
    pub fn extend(&mut self, tokens: &[u32]) {
        for follower in self.length..tokens.len() {
            for n in SHORTEST..=LONGEST.min(follower) {
                self.followers.insert(ngram(&tokens[follower - n..follower]), follower);
            }
        }
        self.length = tokens.len();
    }

    /// A draft for a text that was taken in: the tokens after the most recent occurrence of the longest of its last
    /// n-grams, as if everything from there on repeated itself.
    pub fn draft(&self, tokens: &[u32], count: usize) -> Option<Vec<u32>> {
        let followers = |n: usize| self.followers.get(&ngram(&tokens[tokens.len() - n..]));
        let from = *(SHORTEST..=LONGEST.min(tokens.len())).rev().find_map(followers)?;
        Some(tokens[from..].iter().cycle().take(count).copied().collect())
    }
}

fn ngram(tokens: &[u32]) -> [u32; LONGEST] {
    let mut filled = [u32::MAX; LONGEST];
    filled[..tokens.len()].copy_from_slice(tokens);
    filled
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// [`NgramIndex::draft`] by looking everywhere.
    fn looked_up(tokens: &[u32], count: usize) -> Option<Vec<u32>> {
        for n in (SHORTEST..=LONGEST).rev().filter(|n| *n < tokens.len()) {
            let last = &tokens[tokens.len() - n..];
            let before = (0..tokens.len() - n)
                .rev()
                .find(|start| &tokens[*start..start + n] == last);
            if let Some(start) = before {
                let mut text = tokens.to_vec();
                (0..count).for_each(|index| text.push(text[start + n + index]));
                return Some(text[tokens.len()..].to_vec());
            }
        }
        None
    }

    proptest! {
        #[test]
        fn the_index_finds_what_a_search_finds(
            alphabet in 1u32..8,
            noise in prop::collection::vec(any::<u32>(), 0..120),
            pieces in prop::collection::vec(1usize..30, 0..12),
            count in 1usize..12,
        ) {
            let tokens: Vec<u32> = noise.iter().map(|number| number % alphabet).collect();
            let (mut index, mut length) = (NgramIndex::default(), 0);
            for piece in pieces.into_iter().chain([tokens.len()]) {
                length = (length + piece).min(tokens.len());
                index.extend(&tokens[..length]);
                prop_assert_eq!(index.draft(&tokens[..length], count), looked_up(&tokens[..length], count));
            }
        }
    }

    #[test]
    fn the_longest_match_wins_then_the_last() {
        let mut index = NgramIndex::default();
        let tokens = [1, 2, 3, 7, 9, 2, 3, 8, 5, 1, 2, 3];
        index.extend(&tokens);
        assert_eq!(
            index.draft(&tokens, 3).unwrap(),
            [7, 9, 2],
            "three tokens against the last two"
        );
        let tokens = [2, 3, 7, 5, 2, 3, 8, 6, 2, 3];
        let mut index = NgramIndex::default();
        index.extend(&tokens);
        assert_eq!(index.draft(&tokens, 2).unwrap(), [8, 6]);
        let tokens = [4, 6, 5, 6, 5];
        let mut index = NgramIndex::default();
        index.extend(&tokens);
        assert_eq!(
            index.draft(&tokens, 5).unwrap(),
            [6, 5, 6, 5, 6],
            "a draft goes on with itself"
        );
    }
}
