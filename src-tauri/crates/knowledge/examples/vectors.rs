//! Prints how quickly and how rightly the vectors of passages are searched, next to a scan of the whole numbers.
//!
//! `cargo run --release -p knowledge --example vectors [PASSAGES [DIMENSIONS]]` makes that many vectors, or ten
//! thousand, a hundred thousand and a million of 384 numbers, for which it takes 3 GB of memory and some minutes. As in
//! embeddings of text, the vectors share a direction, few directions hold most of what differs, and topics have very
//! different sizes; embeddings of real texts are harder yet. The times are of one query after another; a computer that
//! does other things shows in the 95th percentile.

use std::error::Error;
use std::time::Instant;

use knowledge::vectors::{Codes, Id};

/// Vectors that are asked for, each a stored one with noise.
const QUERIES: usize = 100;
/// Vectors that an answer has.
const COUNT: usize = 10;
/// Groups of vectors; the second has half the vectors of the first, the third a third.
const TOPICS: usize = 2_000;
/// Directions that hold most of what differs.
const DIRECTIONS: usize = 96;

/// Numbers that look random and are the same in every run (SplitMix64).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number between 0 and 1.
    fn share(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// A number of mean 0 and variance 1, nearly normal: the sum of eight bytes.
    fn normal(&mut self) -> f32 {
        let sum: u32 = self.next().to_le_bytes().into_iter().map(u32::from).sum();
        (sum as f32 - 1020.0) / 209.0
    }

    fn normals(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.normal()).collect()
    }
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    let mut sums = [0.0f32; 16];
    let (ones, one_rest) = one.as_chunks::<16>();
    let (others, other_rest) = other.as_chunks::<16>();
    for (one, other) in ones.iter().zip(others) {
        for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
            *sum += one * other;
        }
    }
    sums.iter().sum::<f32>()
        + one_rest
            .iter()
            .zip(other_rest)
            .map(|(one, other)| one * other)
            .sum::<f32>()
}

/// A source of vectors of length 1.
struct Texts {
    noise: Noise,
    mean: Vec<f32>,
    /// Rows of `DIRECTIONS` numbers, one for each number of a vector.
    directions: Vec<Vec<f32>>,
    spread: Vec<f32>,
    topics: Vec<Vec<f32>>,
}

impl Texts {
    fn new(dimensions: usize) -> Self {
        let mut noise = Noise(42);
        let spread: Vec<f32> = (1..=DIRECTIONS).map(|rank| (rank as f32).powf(-0.45)).collect();
        let total = dot(&spread, &spread).sqrt();
        let spread: Vec<f32> = spread.iter().map(|spread| spread / total).collect();
        let topics = (0..TOPICS)
            .map(|_| spread.iter().map(|spread| spread * noise.normal()).collect())
            .collect();
        let mean = noise.normals(dimensions).iter().map(|number| 1.2 * number).collect();
        let directions = (0..dimensions).map(|_| noise.normals(DIRECTIONS)).collect();
        Texts {
            noise,
            mean,
            directions,
            spread,
            topics,
        }
    }

    /// A point of a random topic, in its few directions.
    fn point(&mut self) -> Vec<f32> {
        let topic = (TOPICS as f32).powf(self.noise.share()) as usize - 1;
        let topic = self.topics[topic.min(TOPICS - 1)].clone();
        self.near(&topic, 0.8)
    }

    fn near(&mut self, point: &[f32], distance: f32) -> Vec<f32> {
        let numbers = point.iter().zip(&self.spread);
        numbers
            .map(|(number, spread)| number + distance * spread * self.noise.normal())
            .collect()
    }

    fn vector(&mut self, point: &[f32]) -> Vec<f32> {
        let numbers = self.directions.iter().zip(&self.mean);
        let vector: Vec<f32> = numbers
            .map(|(row, mean)| dot(row, point) + mean + 0.1 * self.noise.normal())
            .collect();
        let length = dot(&vector, &vector).sqrt();
        vector.iter().map(|number| number / length).collect()
    }
}

/// The nearest by all 32 bits of all numbers.
fn exact(vectors: &[f32], query: &[f32]) -> Vec<Id> {
    let mut best: Vec<(f32, Id)> = Vec::new();
    for (id, vector) in (0..).zip(vectors.chunks_exact(query.len())) {
        let score = dot(vector, query);
        if best.len() < COUNT || best.last().is_some_and(|last| score > last.0) {
            let place = best.partition_point(|better| better.0 >= score);
            best.insert(place, (score, id));
            best.truncate(COUNT);
        }
    }
    best.into_iter().map(|(_, id)| id).collect()
}

/// Median and 95th percentile, in milliseconds.
fn times(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 95 / 100])
}

fn measure(passages: usize, dimensions: usize) -> Result<(), Box<dyn Error>> {
    let mut texts = Texts::new(dimensions);
    let (mut all, mut queries) = (Vec::with_capacity(passages * dimensions), Vec::new());
    let mut codes = Codes::new(dimensions);
    let mut building = 0.0;
    for id in 0..passages {
        let point = texts.point();
        let vector = texts.vector(&point);
        let start = Instant::now();
        codes.append(id as Id, &vector)?;
        building += start.elapsed().as_secs_f64();
        all.extend(vector);
        if queries.len() < QUERIES && id % (passages / QUERIES).max(1) == 0 {
            let near = texts.near(&point, 0.5);
            queries.push(texts.vector(&near));
        }
    }
    let (mut ours, mut whole, mut found, mut right) = (Vec::new(), Vec::new(), 0, 0);
    for query in &queries {
        let start = Instant::now();
        let near = codes.nearest(query, COUNT, |_| true)?;
        ours.push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        let truth = exact(&all, query);
        whole.push(start.elapsed().as_secs_f64() * 1e3);
        right += truth.len();
        found += truth
            .iter()
            .filter(|id| near.iter().any(|(near, _)| near == *id))
            .count();
    }
    let megabytes = |bytes: usize| bytes as f64 / 1e6;
    let recall = found as f64 / right as f64;
    let (median, late) = times(ours);
    println!(
        "{passages:>9}  ours   recall {recall:.4}  median {median:>7.2} ms  95 % {late:>7.2} ms  {:>5.0} MB  \
         built in {building:.1} s",
        megabytes(codes.bytes())
    );
    let (median, late) = times(whole);
    println!(
        "{passages:>9}  exact  recall 1.0000  median {median:>7.2} ms  95 % {late:>7.2} ms  {:>5.0} MB",
        megabytes(all.len() * size_of::<f32>())
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<usize> = std::env::args()
        .skip(1)
        .map(|word| word.parse())
        .collect::<Result<_, _>>()?;
    let dimensions = given.get(1).copied().unwrap_or(384);
    println!("ten nearest of vectors of {dimensions} numbers, {QUERIES} queries");
    match given.first() {
        Some(passages) => measure(*passages, dimensions)?,
        None => {
            for passages in [10_000, 100_000, 1_000_000] {
                measure(passages, dimensions)?;
            }
        }
    }
    Ok(())
}
