//! Bits of vectors, on which side of the mean each number lies, and the query that is compared with them.

/// Bits in a word.
const WIDTH: usize = u64::BITS as usize;
/// Bits of a query's number. With one, as stored vectors have, the best hundredth lacks five in a hundred of the nearest
/// texts; with four, less than one, and hardly fewer with all.
const PLANES: usize = 4;
/// The largest number that these bits say; the least is its negative.
const LARGEST: f32 = ((1 << (PLANES - 1)) - 1) as f32;

/// Words that the bits of `dimensions` numbers take.
pub(super) fn words(dimensions: usize) -> usize {
    dimensions.div_ceil(WIDTH)
}

/// Appends the bits of `row`, a vector of length 1, to `signs`: 1 for a number above its mean, 0 in the words' rest.
pub(super) fn push(signs: &mut Vec<u64>, row: &[f32], mean: &[f32]) {
    for (row, mean) in row.chunks(WIDTH).zip(mean.chunks(WIDTH)) {
        let bits = row.iter().zip(mean).enumerate();
        signs.push(bits.fold(0, |word, (at, (number, mean))| word | (u64::from(number > mean) << at)));
    }
}

/// A query in whole numbers of four bits, which are laid out so that a word has the same bit of 64 numbers.
pub(super) struct Query {
    /// For each bit of the numbers, least first, `words(dimensions)` words. The last stands for -8, the others for 1, 2
    /// and 4.
    planes: [Vec<u64>; PLANES],
    /// The sum that no row exceeds: of the numbers that are positive.
    most: i32,
}

impl Query {
    /// The query `row`, a vector of length 1, seen from `mean`.
    pub(super) fn new(row: &[f32], mean: &[f32]) -> Self {
        let seen: Vec<f32> = row.iter().zip(mean).map(|(number, mean)| number - mean).collect();
        let largest = seen.iter().fold(0.0f32, |largest, number| largest.max(number.abs()));
        // A query that is the mean itself has no direction from there; all rows are as near.
        let scale = if largest > 0.0 { LARGEST / largest } else { 0.0 };
        let numbers: Vec<i32> = seen.iter().map(|number| (number * scale).round() as i32).collect();
        let plane = |bit: usize| {
            let words = numbers.chunks(WIDTH).map(|numbers| {
                let bits = numbers.iter().enumerate();
                bits.fold(0, |word, (at, number)| word | (u64::from(number >> bit & 1 == 1) << at))
            });
            words.collect()
        };
        let most = numbers.iter().filter(|number| **number > 0).sum();
        Query {
            planes: std::array::from_fn(plane),
            most,
        }
    }

    /// Calls `each` with the place of every row of `signs` and how far it is: how much less than the most the query's
    /// numbers sum to where the row has ones.
    pub(super) fn distances(&self, signs: &[u64], each: impl FnMut(usize, u32)) {
        // Common dimensions, 256 to 1,536: a row whose width is known when it is compiled is counted without a loop.
        match self.planes[0].len() {
            4 => self.fixed::<4>(signs, each),
            6 => self.fixed::<6>(signs, each),
            8 => self.fixed::<8>(signs, each),
            12 => self.fixed::<12>(signs, each),
            16 => self.fixed::<16>(signs, each),
            24 => self.fixed::<24>(signs, each),
            0 => {}
            words => {
                let planes = self.planes.each_ref().map(Vec::as_slice);
                walk(signs.chunks_exact(words), planes, self.most, each);
            }
        }
    }

    fn fixed<const WORDS: usize>(&self, signs: &[u64], each: impl FnMut(usize, u32)) {
        let mut planes = [[0; WORDS]; PLANES];
        for (fixed, plane) in planes.iter_mut().zip(&self.planes) {
            fixed.copy_from_slice(plane);
        }
        walk(signs.as_chunks::<WORDS>().0.iter(), planes.each_ref(), self.most, each);
    }
}

#[inline(always)]
fn walk<'a, Row: AsRef<[u64]> + ?Sized + 'a>(
    rows: impl Iterator<Item = &'a Row>,
    planes: [&Row; PLANES],
    most: i32,
    mut each: impl FnMut(usize, u32),
) {
    for (place, row) in rows.enumerate() {
        let [ones, twos, fours, eights] = planes.map(|plane| common(row.as_ref(), plane.as_ref()));
        let sum = (ones + 2 * twos + 4 * fours) as i32 - 8 * eights as i32;
        each(place, most.abs_diff(sum));
    }
}

/// Bits that both have.
#[inline(always)]
fn common(one: &[u64], other: &[u64]) -> u32 {
    one.iter()
        .zip(other)
        .map(|(one, other)| (one & other).count_ones())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_widths_are_counted() {
        for dimensions in (0..2_000).step_by(37).chain([256, 384, 512, 768, 1024, 1536]) {
            let row = |seed: usize| -> Vec<f32> { (0..dimensions).map(|at| ((at * seed) % 7) as f32 - 3.0).collect() };
            let mean = vec![0.5; dimensions];
            let mut signs = Vec::new();
            for seed in 1..4 {
                push(&mut signs, &row(seed), &mean);
            }
            assert_eq!(signs.len(), 3 * words(dimensions));
            let mut found = Vec::new();
            Query::new(&row(5), &mean).distances(&signs, |place, distance| found.push((place, distance)));
            // Seen from the mean, numbers are -3.5 to 2.5, which four bits say as twice that.
            let numbers: Vec<i32> = row(5).iter().map(|number| (2.0 * (number - 0.5)) as i32).collect();
            let most: i32 = numbers.iter().filter(|number| **number > 0).sum();
            let right = (1..4).map(|seed| {
                let above = row(seed).into_iter().zip(&numbers).filter(|(number, _)| *number > 0.5);
                (seed - 1, (most - above.map(|(_, number)| number).sum::<i32>()) as u32)
            });
            assert_eq!(found, if dimensions < 7 { found.clone() } else { right.collect() });
        }
    }
}
