//! Hashes of blobs: SHA-256 for the large files of a repository, git's blob hash for the small ones.

use std::io::{self, Read};

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::cache::Etag;

/// Bytes that are read at once.
const READ: usize = 1 << 20;

/// A hash that is computed front to back.
#[derive(Debug, Clone)]
pub enum Digest {
    /// SHA-256, of a large file.
    Sha256(Sha256),
    /// Git's hash, of a small file. The header with its size is hashed first.
    Git(Sha1),
}

impl Digest {
    /// A hash of the kind that the blob's name has, for a file of `size` bytes.
    pub fn new(name: &Etag, size: u64) -> Self {
        if name.is_sha256() {
            return Self::Sha256(Sha256::new());
        }
        let mut sha1 = Sha1::new();
        sha1.update(format!("blob {size}\0"));
        Self::Git(sha1)
    }

    /// The next bytes of the file.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(sha256) => sha256.update(bytes),
            Self::Git(sha1) => sha1.update(bytes),
        }
    }

    /// The hash of all that a source gives, in hexadecimal; `None` if `go_on` stops it. Before each read `go_on` is told
    /// the number of bytes of the one before.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn of(mut self, mut source: impl Read, mut go_on: impl FnMut(u64) -> bool) -> io::Result<Option<String>> {
        let mut buffer = vec![0; READ];
        let mut read = 0;
        while go_on(read as u64) {
            read = source.read(&mut buffer)?;
            if read == 0 {
                return Ok(Some(self.finish()));
            }
            self.update(&buffer[..read]);
        }
        Ok(None)
    }

    /// The hash of the bytes so far, in hexadecimal.
    pub fn finish(self) -> String {
        match self {
            Self::Sha256(sha256) => format!("{:x}", sha256.finalize()),
            Self::Git(sha1) => format!("{:x}", sha1.finalize()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_hashes_are_those_of_sha256sum_and_git() {
        for name in [
            "ce013625030ba8dba906f756967f9e9ca394464a",
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
        ] {
            let mut digest = Digest::new(&Etag::new(name).unwrap(), 6);
            digest.update(b"hel");
            digest.update(b"lo\n");
            assert_eq!(digest.finish(), name);
        }
    }
}
