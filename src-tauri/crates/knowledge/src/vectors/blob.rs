//! Vectors as bytes of SQLite: numbers of 16 bits, little-endian, scaled to length 1.

use half::f16;

use super::Error;

/// Numbers of a row that are summed side by side, which the compiler makes one instruction.
const LANES: usize = 16;

/// The bytes of a vector, two for each number: half-precision floats (1 sign, 5 exponent and 10 fraction bits),
/// little-endian, scaled to length 1. Only directions are compared, and the scale keeps numbers of every model within
/// what 16 bits can say.
pub fn encode(vector: &[f32]) -> Result<Vec<u8>, Error> {
    Ok(halves(vector)?.iter().flat_map(|number| number.to_le_bytes()).collect())
}

/// The vector of `dimensions` numbers in bytes that [`encode`] made.
pub fn decode(blob: &[u8], dimensions: usize) -> Result<Vec<f32>, Error> {
    let halves = read(blob, dimensions)?;
    Ok(halves.iter().map(|number| number.to_f32()).collect())
}

/// A vector scaled to length 1, in halves.
pub(super) fn halves(vector: &[f32]) -> Result<Vec<f16>, Error> {
    Ok(unit(vector)?.into_iter().map(f16::from_f32).collect())
}

/// A vector scaled to length 1. Sums in 64 bits, because squares of large or tiny numbers leave the range of 32.
pub(super) fn unit(vector: &[f32]) -> Result<Vec<f32>, Error> {
    if !vector.iter().all(|number| number.is_finite()) {
        return Err(Error::NotFinite);
    }
    let squares: f64 = vector
        .iter()
        .map(|number| f64::from(*number) * f64::from(*number))
        .sum();
    if squares == 0.0 {
        return Err(Error::Zero);
    }
    let length = squares.sqrt();
    Ok(vector
        .iter()
        .map(|number| (f64::from(*number) / length) as f32)
        .collect())
}

/// The halves in a blob, checked: a file can hold anything.
pub(super) fn read(blob: &[u8], dimensions: usize) -> Result<Vec<f16>, Error> {
    let (pairs, rest) = blob.as_chunks::<2>();
    if pairs.len() != dimensions || !rest.is_empty() {
        return Err(Error::Dimensions {
            expected: dimensions,
            found: pairs.len(),
        });
    }
    let halves: Vec<f16> = pairs.iter().map(|pair| f16::from_le_bytes(*pair)).collect();
    if !halves.iter().all(|number| number.is_finite()) {
        return Err(Error::NotFinite);
    }
    if halves.iter().all(|number| number.to_f32() == 0.0) {
        return Err(Error::Zero);
    }
    Ok(halves)
}

/// The bytes of halves.
pub(super) fn written(halves: &[f16]) -> Vec<u8> {
    halves.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Sum of the products of two rows of the same length.
pub(super) fn dot(one: &[f32], other: &[f32]) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (ones, one_rest) = one.as_chunks::<LANES>();
    let (others, other_rest) = other.as_chunks::<LANES>();
    for (one, other) in ones.iter().zip(others) {
        for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
            *sum += one * other;
        }
    }
    let rest: f32 = one_rest.iter().zip(other_rest).map(|(one, other)| one * other).sum();
    sums.iter().sum::<f32>() + rest
}
