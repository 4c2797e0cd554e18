//! The hash of a file's prefix, which grows while ranges arrive in any order.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::cache::digest::Digest;
use crate::cache::Etag;

/// Bytes that are read back from the disk at once.
const READ: usize = 256 * 1024;

/// A hash over the bytes from the beginning of a file up to a position.
#[derive(Debug)]
pub struct PrefixHasher {
    digest: Digest,
    at: u64,
    buffer: Vec<u8>,
}

impl PrefixHasher {
    /// A hash at the beginning of a file of `size` bytes.
    pub fn new(name: &Etag, size: u64) -> Self {
        Self {
            digest: Digest::new(name, size),
            at: 0,
            buffer: Vec::new(),
        }
    }

    /// The number of bytes that were hashed.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Hashes the bytes at `offset` that continue the prefix; the others are left to [`PrefixHasher::catch_up`].
    pub fn feed(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        if offset <= self.at && self.at < end {
            self.digest.update(&bytes[(self.at - offset) as usize..]);
            self.at = end;
        }
    }

    /// Reads from the disk up to `to`, at most `most` bytes.
    ///
    /// # Errors
    /// Errors of reading; a file that ends before `to` is one.
    pub fn catch_up(&mut self, file: &File, to: u64, most: u64) -> io::Result<()> {
        let to = to.min(self.at.saturating_add(most));
        if self.at < to {
            self.buffer.resize(READ, 0);
        }
        while self.at < to {
            let length = READ.min(usize::try_from(to - self.at).unwrap_or(READ));
            let part = &mut self.buffer[..length];
            file.read_exact_at(part, self.at)?;
            self.digest.update(part);
            self.at += length as u64;
        }
        Ok(())
    }

    /// The hash of the prefix, in hexadecimal.
    pub fn finish(self) -> String {
        self.digest.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use proptest::prelude::*;

    use super::super::byte_ranges::ByteRanges;
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_order_of_arrival_gives_the_same_hash(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 1..20),
            order in any::<prop::sample::Index>(),
            seed in any::<u64>(),
            git in any::<bool>(),
            most in 0_u64..64,
        ) {
            let whole: Vec<u8> = pieces.concat();
            let size = whole.len() as u64;
            let kind = Etag::new(&"0".repeat(if git { 40 } else { 64 })).unwrap();
            let mut expected = Digest::new(&kind, size);
            expected.update(&whole);

            let mut at = 0;
            let place = |piece: &Vec<u8>| {
                at += piece.len() as u64;
                at - piece.len() as u64
            };
            let starts: Vec<u64> = pieces.iter().map(place).collect();
            let mut arriving: Vec<(u64, &[u8])> = starts.into_iter().zip(pieces.iter().map(Vec::as_slice)).collect();
            let turn = order.index(arriving.len());
            arriving.rotate_left(turn);
            // A cheap shuffle. One piece arrives twice, as after a reconnection.
            arriving.sort_by_key(|(start, _)| (start.wrapping_mul(seed | 1)).rotate_left(17));
            arriving.push(arriving[0]);

            let mut file = tempfile::tempfile().unwrap();
            let mut hasher = PrefixHasher::new(&kind, size);
            let mut there = ByteRanges::default();
            for (start, piece) in arriving {
                file.seek(SeekFrom::Start(start)).unwrap();
                file.write_all(piece).unwrap();
                there.insert(start..start + piece.len() as u64);
                hasher.feed(start, piece);
                hasher.catch_up(&file, there.prefix_end(), most).unwrap();
                prop_assert!(hasher.position() <= there.prefix_end());
            }
            hasher.catch_up(&file, there.prefix_end(), u64::MAX).unwrap();
            prop_assert_eq!(hasher.position(), size);
            prop_assert_eq!(hasher.finish(), expected.finish());
        }
    }

    #[test]
    fn a_file_that_is_shorter_than_its_record_is_an_error() {
        let mut hasher = PrefixHasher::new(&Etag::new(&"0".repeat(64)).unwrap(), 10);
        assert!(hasher.catch_up(&tempfile::tempfile().unwrap(), 10, u64::MAX).is_err());
    }
}
