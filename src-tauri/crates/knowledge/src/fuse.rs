//! The rankings by words and by vectors as one. Scores of both are brought to 0 to 1, the least and the most of each
//! ranking, and summed with weights: how far a passage is ahead tells more than its place does.
//!
//! Source: Bruch, Gai and Ingber, *An Analysis of Fusion Functions for Hybrid Retrieval*, ACM TOIS 2023, whose convex
//! combination this is.

use std::collections::HashMap;
use std::hash::Hash;

/// The weight of the ranking by vectors; that of words has the rest.
const VECTORS: f64 = 0.6;

/// The things of both rankings with the sums of their weighted scores, the best first. Rankings are in any order and of
/// any scale; more is better. The last thing of a ranking counts as those that it lacks, so it is asked for more than are
/// wanted, such as fifty for ten. `most` is that number: if words found fewer, nothing else has any of them, and the
/// least is the 0 of BM25. A thing named twice counts by its better score. Of equal sums those of words come first, then
/// the earlier one.
pub fn fuse<T: Clone + Eq + Hash>(words: &[(T, f64)], vectors: &[(T, f32)], most: usize) -> Vec<(T, f64)> {
    let vectors: Vec<(T, f64)> = vectors
        .iter()
        .map(|(thing, score)| (thing.clone(), f64::from(*score)))
        .collect();
    let floor = if words.len() < most { 0.0 } else { f64::INFINITY };
    let mut fused: Vec<(T, f64)> = Vec::new();
    let mut places = HashMap::new();
    for (ranking, floor, weight) in [(words, floor, 1.0 - VECTORS), (&vectors, f64::INFINITY, VECTORS)] {
        for (thing, share) in shares(ranking, floor) {
            let place = *places.entry(thing).or_insert(fused.len());
            match fused.get_mut(place) {
                Some((_, score)) => *score += weight * share,
                None => fused.push((thing.clone(), weight * share)),
            }
        }
    }
    fused.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    fused
}

/// The things of a ranking, each once, with 0 for the least score, or for the floor if that is lower, and 1 for the most;
/// 1 for all if they are the same.
fn shares<T: Eq + Hash>(ranking: &[(T, f64)], floor: f64) -> Vec<(&T, f64)> {
    let scores = ranking.iter().map(|(_, score)| *score);
    let (least, most) = scores.fold((floor, f64::NEG_INFINITY), |(least, most), score| {
        (least.min(score), most.max(score))
    });
    let share = |score: f64| match most > least {
        true => (score - least) / (most - least),
        false => 1.0,
    };
    let mut best: Vec<&(T, f64)> = ranking.iter().collect();
    best.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let mut seen = std::collections::HashSet::new();
    best.retain(|(thing, _)| seen.insert(thing));
    best.into_iter().map(|(thing, score)| (thing, share(*score))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(words: &[(char, f64)], vectors: &[(char, f32)]) -> String {
        fuse(words, vectors, 3).into_iter().map(|(thing, _)| thing).collect()
    }

    #[test]
    fn things_far_ahead_or_in_both_rankings_come_first() {
        let words = [('a', 9.0), ('b', 8.0), ('c', 1.0)];
        let vectors = [('d', 0.9), ('b', 0.8), ('c', 0.7), ('e', 0.4)];
        let fused = fuse(&words, &vectors, 3);
        let b = 0.4 * (7.0 / 8.0) + 0.6 * 0.8;
        assert_eq!(fused[0].0, 'b');
        assert!((fused[0].1 - b).abs() < 1e-6);
        assert_eq!(order(&words, &vectors), "bdace");
    }

    #[test]
    fn the_last_of_few_words_counts_too() {
        let words = [('a', 5.0), ('b', 4.9)];
        assert_eq!(order(&words, &[('c', 0.9), ('b', 0.5), ('d', 0.4)]), "cbad");
    }

    #[test]
    fn one_ranking_alone_keeps_its_order_and_equal_sums_that_of_words() {
        assert_eq!(order(&[('x', 3.0), ('y', 2.0), ('z', 1.0)], &[]), "xyz");
        assert_eq!(order(&[], &[('x', 0.3), ('y', 0.2)]), "xy");
        assert_eq!(order(&[('a', 1.0), ('a', 4.0), ('b', 2.0)], &[]), "ab");
        assert_eq!(order(&[('q', 2.0), ('r', 2.0)], &[]), "qr");
        assert_eq!(order(&[], &[]), "");
    }

    proptest! {
        #[test]
        fn every_thing_comes_once_and_sums_fall(
            words in prop::collection::vec((0_u8..40, 0.0..20.0), 0..30),
            vectors in prop::collection::vec((0_u8..40, -1.0_f32..1.0), 0..30),
        ) {
            let fused = fuse(&words, &vectors, 20);
            let names: std::collections::BTreeSet<u8> = fused.iter().map(|(thing, _)| *thing).collect();
            prop_assert_eq!(names.len(), fused.len());
            let all = words.iter().map(|(thing, _)| *thing).chain(vectors.iter().map(|(thing, _)| *thing));
            prop_assert_eq!(names, all.collect());
            prop_assert!(fused.windows(2).all(|pair| pair[0].1 >= pair[1].1));
            prop_assert!(fused.iter().all(|(_, score)| (0.0..=1.0 + 1e-9).contains(score)));
            prop_assert_eq!(&fused, &fuse(&words, &vectors, 20));
        }
    }
}
