//! Tests of the search: exact where all vectors are compared, near to it where bits choose.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{decode, encode, Codes, Error, Id};

/// Numbers between -1 and 1, the same for a seed everywhere.
fn noise(seed: u64) -> impl Iterator<Item = f32> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    })
}

/// `count` vectors around a few hundred centers, which share a direction.
fn passages(count: usize, dimensions: usize) -> Vec<Vec<f32>> {
    let centers: Vec<Vec<f32>> = (0..200).map(|at| noise(at).take(dimensions).collect()).collect();
    let mut noise = noise(1 << 40);
    let mut passage = |at: usize| {
        let numbers = centers[at * at % 200].iter().zip(&mut noise);
        numbers.map(|(center, noise)| 0.7 + center + 0.8 * noise).collect()
    };
    (0..count).map(&mut passage).collect()
}

fn filled(vectors: &[Vec<f32>]) -> Codes {
    let mut codes = Codes::new(vectors[0].len());
    for (id, vector) in (0..).zip(vectors) {
        codes.append(id, vector).unwrap();
    }
    codes
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |one: &[f32], other: &[f32]| -> f64 {
        one.iter()
            .zip(other)
            .map(|(one, other)| f64::from(*one) * f64::from(*other))
            .sum()
    };
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

/// Cosines of all stored vectors that `filter` lets through, best first.
fn exact(codes: &Codes, query: &[f32], filter: impl Fn(Id) -> bool) -> Vec<(Id, f64)> {
    let stored = codes.blobs().filter(|(id, _)| filter(*id));
    let mut all: Vec<(Id, f64)> = stored
        .map(|(id, blob)| (id, cosine(query, &decode(&blob, codes.dimensions()).unwrap())))
        .collect();
    all.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    all
}

/// Share of the ten nearest that are found.
fn recall(codes: &Codes, queries: &[Vec<f32>]) -> f64 {
    let mut found = 0;
    for query in queries {
        let near = codes.nearest(query, 10, |_| true).unwrap();
        let right = exact(codes, query, |_| true);
        found += right[..10]
            .iter()
            .filter(|(id, _)| near.iter().any(|(near, _)| near == id))
            .count();
    }
    found as f64 / (10 * queries.len()) as f64
}

fn ids(found: &[(Id, f32)]) -> Vec<Id> {
    found.iter().map(|(id, _)| *id).collect()
}

/// A vector that has a direction. Seeds make large, tiny and few different numbers too, and equal ones equal vectors.
fn vector(dimensions: usize, seed: u64) -> Vec<f32> {
    let made = |number: f32| match seed % 4 {
        0 => (number * 2.0).round(),
        1 => number * 3e37,
        2 => number * 1e-37,
        _ => number,
    };
    let mut vector: Vec<f32> = noise(seed).take(dimensions).map(made).collect();
    vector[seed as usize % dimensions] = made(0.6);
    vector
}

fn vectors() -> impl Strategy<Value = (Vec<Vec<f32>>, Vec<f32>)> {
    let dimensions = prop_oneof![1usize..80, Just(256), Just(384), 500usize..600];
    (dimensions, prop::collection::vec(0u64..40, 1..40), 0u64..40).prop_map(|(dimensions, seeds, query)| {
        (
            seeds.iter().map(|seed| vector(dimensions, *seed)).collect(),
            vector(dimensions, query),
        )
    })
}

proptest! {
    #[test]
    fn few_vectors_are_searched_exactly((vectors, query) in vectors(), count in 0usize..50, nth in 1i64..4) {
        let codes = filled(&vectors);
        let found = codes.nearest(&query, count, |id| id % nth == 0).unwrap();
        let right = exact(&codes, &query, |id| id % nth == 0);
        prop_assert_eq!(found.len(), count.min(right.len()));
        for ((id, score), (_, best)) in found.iter().zip(&right) {
            prop_assert_eq!(id % nth, 0);
            prop_assert!((f64::from(*score) - best).abs() < 1e-5, "{} is not {}", score, best);
        }
        prop_assert!(found.windows(2).all(|two| two[0].1 > two[1].1 || two[0].1 == two[1].1 && two[0].0 < two[1].0));
    }

    #[test]
    fn blobs_come_back_as_they_were((vectors, query) in vectors()) {
        let codes = filled(&vectors);
        for (id, vector) in (0..).zip(&vectors) {
            let blob = codes.blob(id).unwrap();
            prop_assert_eq!(&blob, &encode(vector).unwrap());
            prop_assert!(cosine(vector, &decode(&blob, vector.len()).unwrap()) > 0.999);
        }
        let again = Codes::from_blobs(codes.dimensions(), codes.blobs()).unwrap();
        prop_assert!(again.blobs().eq(codes.blobs()));
        prop_assert_eq!(again.nearest(&query, 10, |_| true), codes.nearest(&query, 10, |_| true));
    }

    #[test]
    fn removed_vectors_are_as_if_never_there(
        steps in prop::collection::vec((any::<bool>(), 0i64..12, 0u64..40), 0..60),
        query in 0u64..40,
    ) {
        let query = vector(70, query);
        let (mut codes, mut model) = (Codes::new(70), BTreeMap::new());
        for (append, id, seed) in steps {
            let vector = vector(70, seed);
            if append {
                let known = model.contains_key(&id);
                prop_assert_eq!(codes.append(id, &vector), if known { Err(Error::Known(id)) } else { Ok(()) });
                model.entry(id).or_insert(vector);
            } else {
                prop_assert_eq!(codes.remove(id), model.remove(&id).is_some());
            }
            prop_assert_eq!(codes.len(), model.len());
        }
        let mut fresh = Codes::new(70);
        for (id, vector) in &model {
            fresh.append(*id, vector).unwrap();
        }
        prop_assert_eq!(fresh.nearest(&query, 20, |_| true), codes.nearest(&query, 20, |_| true));
        prop_assert_eq!(codes.blobs().collect::<BTreeMap<_, _>>(), fresh.blobs().collect::<BTreeMap<_, _>>());
    }

    #[test]
    fn broken_blobs_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..40), dimensions in 0usize..20) {
        let mut codes = Codes::new(dimensions);
        let taken = codes.append_blob(1, &bytes);
        prop_assert_eq!(taken, decode(&bytes, dimensions).map(|_| ()));
        prop_assert_eq!(codes.len(), usize::from(taken.is_ok()));
        if taken.is_ok() {
            prop_assert_eq!(codes.blob(1), Some(bytes));
        }
    }
}

#[test]
fn vectors_without_a_direction_are_refused() {
    let mut codes = Codes::new(3);
    codes.append(1, &[1.0, 2.0, 3.0]).unwrap();
    for (vector, error) in [
        (&[0.0, 0.0, 0.0][..], Error::Zero),
        (&[1.0, f32::NAN, 0.0], Error::NotFinite),
        (&[f32::INFINITY, 1.0, 0.0], Error::NotFinite),
        (&[1.0, 2.0], Error::Dimensions { expected: 3, found: 2 }),
        (&[], Error::Dimensions { expected: 3, found: 0 }),
    ] {
        assert_eq!(codes.append(2, vector), Err(error));
        assert_eq!(codes.nearest(vector, 1, |_| true), Err(error));
    }
    assert_eq!(codes.append(1, &[1.0, 0.0, 0.0]), Err(Error::Known(1)));
    assert_eq!(codes.len(), 1);
    assert_eq!(decode(&[0x00, 0x7C], 1), Err(Error::NotFinite));
    assert_eq!(decode(&[0x00, 0x80], 1), Err(Error::Zero));
    assert_eq!(decode(&[1, 2, 3], 1), Err(Error::Dimensions { expected: 1, found: 1 }));
    let broken = [(1, encode(&[1.0]).unwrap()), (2, vec![0, 0])];
    assert_eq!(Codes::from_blobs(1, broken).unwrap_err(), Error::Zero);
}

#[test]
fn nothing_is_found_among_nothing() {
    let mut codes = Codes::new(2);
    assert_eq!(codes.nearest(&[1.0, 0.0], 5, |_| true), Ok(Vec::new()));
    codes.append(7, &[1.0, 0.0]).unwrap();
    assert_eq!(codes.nearest(&[1.0, 0.0], 0, |_| true), Ok(Vec::new()));
    assert_eq!(codes.nearest(&[1.0, 0.0], 5, |_| false), Ok(Vec::new()));
    assert_eq!(codes.nearest(&[2.0, 0.0], usize::MAX, |_| true), Ok(vec![(7, 1.0)]));
    assert_eq!(codes.nearest(&[-2.0, 0.0], 1, |_| true), Ok(vec![(7, -1.0)]));
    assert!(codes.remove(7) && codes.is_empty() && !codes.remove(7));
}

#[test]
fn equal_vectors_go_by_id() {
    // More than are compared number by number, and enough for two threads.
    for count in [100, 5_000, 60_000] {
        let mut codes = Codes::new(8);
        for id in (0..count).rev() {
            codes.append(id, &[1.0, -1.0, 0.5, 0.0, 0.0, 2.0, 0.0, 0.0]).unwrap();
        }
        assert_eq!(ids(&codes.nearest(&[1.0; 8], 5, |id| id > 1).unwrap()), [2, 3, 4, 5, 6]);
    }
}

#[test]
fn many_vectors_are_searched_nearly_exactly() {
    let vectors = passages(52_000, 64);
    let (stored, queries) = vectors.split_at(51_996);
    let mut codes = filled(stored);
    assert!(recall(&codes, queries) >= 0.99);
    for id in (0..45_000).filter(|id| id % 3 != 0) {
        assert!(codes.remove(id));
    }
    assert!(recall(&codes, queries) >= 0.99);
    let loaded = Codes::from_blobs(64, codes.blobs()).unwrap();
    assert!(recall(&loaded, queries) >= 0.99);
    // A filter that leaves few leaves the right ones.
    let found = codes.nearest(&queries[0], 10, |id| id % 100 == 0).unwrap();
    let right = exact(&codes, &queries[0], |id| id % 100 == 0);
    assert_eq!(ids(&found), right[..10].iter().map(|(id, _)| *id).collect::<Vec<_>>());
}

#[test]
fn the_bytes_are_counted() {
    let codes = filled(&passages(1_000, 384));
    let least = 1_000 * (2 * 384 + 384 / 8 + 8 + 4);
    assert!(
        (least..least + 1_000 * 50).contains(&codes.bytes()),
        "{}",
        codes.bytes()
    );
}
