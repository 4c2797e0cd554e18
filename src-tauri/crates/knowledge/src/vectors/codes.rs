//! The vectors of all passages, and the search among them.

use std::collections::hash_map::{Entry, HashMap};
use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::scan::Least;
use super::{blob, signs, Error, Id};

/// Vectors that are compared number by number, of each thread: this many, or one of `PART` of all if those are more. Of
/// 100,000 passages of documentation, the best hundredth by bits has 99.4 % of the ten nearest, two hundredths 99.8 %.
const FINALISTS: usize = 1024;
const PART: usize = 100;
/// Vectors compared for each that is asked for, so that long answers are as good as short ones.
const EACH: usize = 20;
/// Rows below which a second thread costs more than it saves.
const ALONE: usize = 50_000;

/// The vectors of passages: two bytes and one bit for each number, in memory.
///
/// Memory is `len × (2.125 × dimensions + 44)` bytes, about 860 MB for a million vectors of 384 numbers.
#[derive(Debug, Clone, Default)]
pub struct Codes {
    dimensions: usize,
    /// Passages, by place.
    ids: Vec<Id>,
    places: HashMap<Id, usize>,
    /// `len × dimensions` numbers as they are stored.
    halves: Vec<f16>,
    /// One over the length of each stored vector: rounding makes it a little off 1.
    scales: Vec<f32>,
    /// `len × words(dimensions)` words of bits.
    signs: Vec<u64>,
    /// `dimensions` numbers around which the bits are taken. Embeddings of text share a direction; around zero, most
    /// of their bits would be the same in all.
    mean: Vec<f32>,
    /// Length at which the mean is taken anew.
    renewal: usize,
}

impl Codes {
    /// No vectors, of `dimensions` numbers each.
    pub fn new(dimensions: usize) -> Self {
        Codes {
            dimensions,
            mean: vec![0.0; dimensions],
            renewal: FINALISTS,
            ..Codes::default()
        }
    }

    /// The vectors of stored blobs, as [`encode`](super::encode) made them. The first that is broken is the error.
    pub fn from_blobs<B: AsRef<[u8]>>(
        dimensions: usize,
        blobs: impl IntoIterator<Item = (Id, B)>,
    ) -> Result<Self, Error> {
        let mut codes = Codes::new(dimensions);
        for (id, blob) in blobs {
            codes.push(id, &blob::read(blob.as_ref(), dimensions)?)?;
        }
        codes.renew();
        Ok(codes)
    }

    /// Appends the vector of a passage, `dimensions` numbers of any scale.
    pub fn append(&mut self, id: Id, vector: &[f32]) -> Result<(), Error> {
        self.check(vector.len())?;
        let halves = blob::halves(vector)?;
        self.append_halves(id, &halves)
    }

    /// Appends the vector of a passage from its stored blob.
    pub fn append_blob(&mut self, id: Id, blob: &[u8]) -> Result<(), Error> {
        let halves = blob::read(blob, self.dimensions)?;
        self.append_halves(id, &halves)
    }

    /// Removes the vector of a passage; `false` if there is none. The last vector takes its place.
    pub fn remove(&mut self, id: Id) -> bool {
        let Some(place) = self.places.remove(&id) else {
            return false;
        };
        let last = self.ids.len() - 1;
        self.ids.swap_remove(place);
        self.scales.swap_remove(place);
        take_last(&mut self.halves, place, last, self.dimensions);
        take_last(&mut self.signs, place, last, signs::words(self.dimensions));
        if let Some(moved) = self.ids.get(place) {
            self.places.insert(*moved, place);
        }
        true
    }

    /// The stored blob of a passage's vector.
    pub fn blob(&self, id: Id) -> Option<Vec<u8>> {
        self.places.get(&id).map(|place| blob::written(self.row(*place)))
    }

    /// All passages with their stored blobs, in no order.
    pub fn blobs(&self) -> impl Iterator<Item = (Id, Vec<u8>)> + '_ {
        self.ids
            .iter()
            .enumerate()
            .map(|(place, id)| (*id, blob::written(self.row(place))))
    }

    /// The passages that have a vector here, in no order.
    pub fn ids(&self) -> &[Id] {
        &self.ids
    }

    /// Passages that have a vector here.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Says that no passage has a vector here.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Numbers of each vector.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Bytes of memory that the vectors take. Room that is reserved for more counts as none: a system gives it when it
    /// is written to.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.halves)
            + size_of_val(&*self.signs)
            + size_of_val(&*self.ids)
            + size_of_val(&*self.scales)
            + size_of_val(&*self.mean)
            // A byte of state lies beside each entry.
            + self.places.capacity() * (size_of::<(Id, usize)>() + 1)
    }

    /// The `count` passages whose vectors point most nearly as `query` does, of those that `filter` lets through: best
    /// first, equal ones by id, fewer if there are fewer. The number is the cosine of the angle between the query and
    /// the stored vector, -1 to 1.
    ///
    /// Exact up to a thousand passages; above, a passage is missed if by its bits a hundredth of all is nearer. The
    /// filter is asked about the passages that may be among those, from two threads at once.
    pub fn nearest(
        &self,
        query: &[f32],
        count: usize,
        filter: impl Fn(Id) -> bool + Sync,
    ) -> Result<Vec<(Id, f32)>, Error> {
        self.check(query.len())?;
        let query = blob::unit(query)?;
        let count = count.min(self.len());
        if count == 0 {
            return Ok(Vec::new());
        }
        let bits = signs::Query::new(&query, &self.mean);
        let part = |places: Range<usize>| self.nearest_in(places, &query, &bits, count, &filter);
        let mut found = if self.len() < ALONE {
            part(0..self.len())
        } else {
            let middle = self.len() / 2;
            let (mut found, rest) = std::thread::scope(|threads| {
                let rest = threads.spawn(|| part(middle..self.len()));
                (part(0..middle), rest.join())
            });
            match rest {
                Ok(rest) => found.extend(rest),
                // The filter's own panic, which is the caller's to see.
                Err(panic) => std::panic::resume_unwind(panic),
            }
            found
        };
        found.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        found.truncate(count);
        Ok(found)
    }

    /// The nearest among the rows at `places`, at least `count` if there are that many, in no order.
    fn nearest_in(
        &self,
        places: Range<usize>,
        query: &[f32],
        bits: &signs::Query,
        count: usize,
        filter: &impl Fn(Id) -> bool,
    ) -> Vec<(Id, f32)> {
        let words = signs::words(self.dimensions);
        let finalists = FINALISTS.max(self.len() / PART).max(count.saturating_mul(EACH));
        let mut least = Least::new(finalists.min(places.len()));
        let rows = &self.signs[places.start * words..places.end * words];
        bits.distances(rows, |place, distance| {
            let place = places.start + place;
            least.offer(distance, place, || Some(self.ids[place]).filter(|id| filter(*id)));
        });
        let mut row = vec![0.0; self.dimensions];
        let found = least.rows().into_iter().map(|(_, id, place)| {
            self.row(place).convert_to_f32_slice(&mut row);
            (id, (blob::dot(&row, query) * self.scales[place]).clamp(-1.0, 1.0))
        });
        found.collect()
    }

    fn check(&self, found: usize) -> Result<(), Error> {
        if found == self.dimensions {
            Ok(())
        } else {
            Err(Error::Dimensions {
                expected: self.dimensions,
                found,
            })
        }
    }

    fn row(&self, place: usize) -> &[f16] {
        &self.halves[place * self.dimensions..][..self.dimensions]
    }

    fn append_halves(&mut self, id: Id, halves: &[f16]) -> Result<(), Error> {
        self.push(id, halves)?;
        if self.len() >= self.renewal {
            self.renew();
        } else {
            let row = self.scaled(self.len() - 1);
            signs::push(&mut self.signs, &row, &self.mean);
        }
        Ok(())
    }

    /// Appends a vector without its bits.
    fn push(&mut self, id: Id, halves: &[f16]) -> Result<(), Error> {
        let Entry::Vacant(place) = self.places.entry(id) else {
            return Err(Error::Known(id));
        };
        place.insert(self.ids.len());
        let squares: f64 = halves
            .iter()
            .map(|number| f64::from(*number) * f64::from(*number))
            .sum();
        self.ids.push(id);
        self.halves.extend_from_slice(halves);
        self.scales.push((1.0 / squares.sqrt()) as f32);
        Ok(())
    }

    /// The vector at `place`, of length 1.
    fn scaled(&self, place: usize) -> Vec<f32> {
        let mut row = vec![0.0; self.dimensions];
        self.row(place).convert_to_f32_slice(&mut row);
        row.iter_mut().for_each(|number| *number *= self.scales[place]);
        row
    }

    /// Takes the mean and all bits anew, which happens whenever the number of vectors has doubled: passages of another
    /// kind or language move the mean, and each vector is gone through about twice in all.
    fn renew(&mut self) {
        let mut sums = vec![0.0f64; self.dimensions];
        for place in 0..self.len() {
            let row = self.scaled(place);
            sums.iter_mut()
                .zip(row)
                .for_each(|(sum, number)| *sum += f64::from(number));
        }
        let share = 1.0 / self.len().max(1) as f64;
        self.mean = sums.into_iter().map(|sum| (sum * share) as f32).collect();
        self.signs.clear();
        for place in 0..self.len() {
            let row = self.scaled(place);
            signs::push(&mut self.signs, &row, &self.mean);
        }
        self.renewal = (2 * self.len()).max(FINALISTS);
    }
}

/// Puts the last of rows of `width` in place of the one at `place`.
fn take_last<T: Copy>(rows: &mut Vec<T>, place: usize, last: usize, width: usize) {
    rows.copy_within(last * width.., place * width);
    rows.truncate(last * width);
}
