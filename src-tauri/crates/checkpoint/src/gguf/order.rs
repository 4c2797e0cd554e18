//! The order of rows and columns in a folder, where the converter of llama.cpp has changed it.

use std::iter::once;
use std::ops::Range;

/// Value heads of a delta net, which a folder has side by side for each key head. GGUF files have the first one of every
/// key head, then the second ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueHeads {
    /// Key heads.
    pub keys: u64,
    /// Value heads of each key head.
    pub each: u64,
    /// Width of a key.
    pub key_width: u64,
    /// Width of a value.
    pub width: u64,
}

/// The rows of a tensor as a folder has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOrder {
    /// As they are stored.
    Stored,
    /// A number of heads, in which the halves of a rotation go by turns.
    Turned(u64),
    /// A number of rows as they are, then value heads of a number of rows each.
    Values(ValueHeads, u64, u64),
    /// The first or the second half of each of so many matrices.
    Half(usize, u64),
}

impl RowOrder {
    /// The stretches of stored rows, in the order of the folder; `None` if a tensor of so many rows has no such order.
    pub fn stretches(self, rows: u64) -> Option<Vec<Range<u64>>> {
        match self {
            Self::Stored => Some(once(0..rows).collect()),
            Self::Turned(heads) => {
                let even = heads.checked_mul(2).is_some_and(|halves| rows.is_multiple_of(halves));
                even.then(|| once(0..rows).collect())
            }
            Self::Values(heads, start, width) => {
                let all = heads
                    .keys
                    .checked_mul(heads.each)?
                    .checked_mul(width)?
                    .checked_add(start)?;
                let first = |head: u64| start + head * width;
                let places = (0..heads.keys).flat_map(|key| (0..heads.each).map(move |own| own * heads.keys + key));
                let values = places.map(|head| first(head)..first(head + 1));
                (rows == all).then(|| once(0..start).chain(values).collect())
            }
            Self::Half(half, matrices) => {
                let halves = matrices.checked_mul(2)?;
                let each = rows.checked_div(halves)?;
                let even = each > 0 && rows == halves * each;
                let halves = (0..matrices).map(|matrix| (2 * matrix + half as u64) * each);
                even.then(|| halves.map(|first| first..first + each).collect())
            }
        }
    }

    /// How many rows have to be read at once.
    pub fn together(self, rows: u64) -> u64 {
        match self {
            Self::Turned(heads) => rows / heads,
            _ => 1,
        }
    }

    /// The stored rows of a head, or of several, in the order of the folder.
    pub fn ordered(self, bytes: Vec<u8>, row: usize, together: u64) -> Vec<u8> {
        match self {
            Self::Turned(_) => halves_in_order(&bytes, row, together as usize),
            _ => bytes,
        }
    }
}

/// RowOrder of whole heads with the first halves of their rotations before the second ones.
fn halves_in_order(bytes: &[u8], row: usize, head: usize) -> Vec<u8> {
    let mut ordered = Vec::with_capacity(bytes.len());
    for head in bytes.chunks_exact(row * head) {
        for half in 0..2 {
            let rows = head.chunks_exact(row).skip(half).step_by(2);
            rows.for_each(|row| ordered.extend_from_slice(row));
        }
    }
    ordered
}

impl ValueHeads {
    /// RowOrder of the queries and keys before those of values.
    pub fn before(self) -> u64 {
        self.keys.saturating_mul(self.key_width).saturating_mul(2)
    }

    /// RowOrder of all values.
    pub fn rows(self) -> u64 {
        self.keys.saturating_mul(self.each).saturating_mul(self.width)
    }

    /// Brings rows whose columns belong to these heads to the order of the folder. `bytes` are numbers, codes or what
    /// belongs to groups of them.
    pub fn columns_in_order(self, bytes: &mut Vec<u8>, rows: usize) {
        let (keys, each) = (self.keys as usize, self.each as usize);
        let row = bytes.len() / rows.max(1);
        let head = row / (keys * each);
        if head == 0 {
            return;
        }
        let mut ordered = Vec::with_capacity(bytes.len());
        for row in bytes.chunks_exact(row) {
            for key in 0..keys {
                let own = (0..each).filter_map(|own| row.chunks_exact(head).nth(own * keys + key));
                own.for_each(|head| ordered.extend_from_slice(head));
            }
        }
        *bytes = ordered;
    }
}
