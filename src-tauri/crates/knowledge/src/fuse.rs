//! Several rankings of the same things as one: reciprocal rank fusion, which compares places and no scores, so that
//! rankings of different kinds count alike.
//!
//! Source: Cormack, Clarke and Büttcher, *Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
//! Methods*, SIGIR 2009.

use std::collections::HashMap;
use std::hash::Hash;

/// The constant of the paper. The larger it is, the less the first places count.
const K: f64 = 60.0;

/// The things of all rankings, the best first, each with the sum of 1 / (60 + place). A thing that a ranking names
/// twice counts there by its better place. Of equal sums the better single place comes first, then the earlier ranking.
pub fn fuse<T: Clone + Eq + Hash>(rankings: &[Vec<T>]) -> Vec<(T, f64)> {
    struct Fused {
        score: f64,
        best: usize,
        ranking: usize,
    }
    let mut fused: HashMap<&T, Fused> = HashMap::new();
    for (ranking, things) in rankings.iter().enumerate() {
        let mut seen = std::collections::HashSet::new();
        let places = things.iter().filter(|thing| seen.insert(*thing));
        for (place, thing) in places.enumerate() {
            let entry = fused.entry(thing).or_insert(Fused {
                score: 0.0,
                best: usize::MAX,
                ranking,
            });
            entry.score += 1.0 / (K + 1.0 + place as f64);
            if place < entry.best {
                (entry.best, entry.ranking) = (place, ranking);
            }
        }
    }
    let mut all: Vec<(&T, Fused)> = fused.into_iter().collect();
    // The best place and its ranking name one thing alone, so the order does not hang on that of the map.
    all.sort_by(|(_, a), (_, b)| {
        let score = b.score.total_cmp(&a.score);
        score.then(a.best.cmp(&b.best)).then(a.ranking.cmp(&b.ranking))
    });
    all.into_iter()
        .map(|(thing, fused)| (thing.clone(), fused.score))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(rankings: &[Vec<char>]) -> String {
        fuse(rankings).into_iter().map(|(thing, _)| thing).collect()
    }

    #[test]
    fn things_of_both_rankings_come_before_those_of_one() {
        let fused = fuse(&[vec!['a', 'b', 'c'], vec!['d', 'c', 'b']]);
        assert_eq!(fused[0], ('b', 1.0 / 62.0 + 1.0 / 63.0));
        assert_eq!(fused.iter().map(|(thing, _)| *thing).collect::<String>(), "bcad");
    }

    #[test]
    fn equal_sums_keep_the_order_of_the_rankings() {
        assert_eq!(order(&[vec!['x'], vec!['y'], vec!['z']]), "xyz");
        assert_eq!(order(&[vec!['z', 'q'], vec!['q', 'z']]), "zq");
        assert_eq!(order(&[vec![], vec!['a', 'a', 'b']]), "ab");
        assert_eq!(order(&[]), "");
    }

    proptest! {
        #[test]
        fn every_thing_comes_once_and_sums_fall(
            rankings in prop::collection::vec(prop::collection::vec(0_u8..40, 0..30), 0..5),
        ) {
            let fused = fuse(&rankings);
            let names: std::collections::BTreeSet<u8> = fused.iter().map(|(thing, _)| *thing).collect();
            prop_assert_eq!(names.len(), fused.len());
            prop_assert_eq!(names, rankings.iter().flatten().copied().collect());
            prop_assert!(fused.windows(2).all(|pair| pair[0].1 >= pair[1].1));
            prop_assert_eq!(&fused, &fuse(&rankings));
        }
    }
}
