//! What a file holds: bytes in memory, or bytes made as they are asked for, so that gigabytes need no room.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::Dice;

/// Bytes of one repeated stretch of generated content; the first eight of each stretch hold its number.
const STRETCH: u64 = 1 << 20;

/// The bytes of a file.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Memory(Bytes),
    /// What is generated, with `head` over its beginning.
    Generated {
        size: u64,
        stretch: Bytes,
        head: Bytes,
    },
}

impl Content {
    /// `size` bytes that follow from `seed` alone and compress badly.
    pub(crate) fn generated(size: u64, seed: u64, head: Bytes) -> Self {
        let mut dice = Dice::new(seed);
        let stretch: Vec<u8> = (0..STRETCH / 8).flat_map(|_| dice.next().to_le_bytes()).collect();
        Self::Generated {
            size,
            stretch: stretch.into(),
            head,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Generated { size, .. } => *size,
        }
    }

    /// At least one and at most `most` bytes from `at` on, without copying; empty at the end.
    pub(crate) fn piece(&self, at: u64, most: u64) -> Bytes {
        let end = self.len().min(at.saturating_add(most));
        if at >= end {
            return Bytes::new();
        }
        match self {
            Self::Memory(bytes) => bytes.slice(at as usize..end as usize),
            Self::Generated { head, .. } if at < head.len() as u64 => {
                head.slice(at as usize..end.min(head.len() as u64) as usize)
            }
            Self::Generated { stretch, .. } => {
                let (number, within) = (at / STRETCH, at % STRETCH);
                if within < 8 {
                    let length = (8 - within).min(end - at);
                    let head = number.to_le_bytes();
                    return Bytes::copy_from_slice(&head[within as usize..(within + length) as usize]);
                }
                let length = (STRETCH - within).min(end - at);
                stretch.slice(within as usize..(within + length) as usize)
            }
        }
    }

    /// The bytes of a range, in one piece.
    pub(crate) fn read(&self, range: Range<u64>) -> Vec<u8> {
        let mut read = Vec::new();
        self.each(range, |piece| read.extend_from_slice(piece));
        read
    }

    fn each(&self, range: Range<u64>, mut take: impl FnMut(&[u8])) {
        let mut at = range.start;
        while at < range.end {
            let piece = self.piece(at, range.end - at);
            if piece.is_empty() {
                return;
            }
            at += piece.len() as u64;
            take(&piece);
        }
    }
}

/// The beginning of a safetensors file of `size` bytes that holds one tensor of this name.
pub(crate) fn safetensors_head(size: u64, tensor: &str) -> Bytes {
    /// Room for any number in it.
    const HEADER: u64 = 256;
    let bytes = size.saturating_sub(8 + HEADER);
    let header = format!(r#"{{"{tensor}":{{"dtype":"U8","shape":[{bytes}],"data_offsets":[0,{bytes}]}}}}"#);
    let mut head = HEADER.to_le_bytes().to_vec();
    head.extend_from_slice(format!("{header:width$}", width = HEADER as usize).as_bytes());
    head.into()
}

/// One file of a commit.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) content: Content,
    /// Whether it is a large file: kept in another store, with a pointer in its place.
    pub(crate) large: bool,
    hashes: OnceLock<(String, String)>,
}

impl File {
    pub(crate) fn new(content: Content, large: bool) -> Self {
        Self {
            content,
            large,
            hashes: OnceLock::new(),
        }
    }

    fn hashes(&self) -> &(String, String) {
        self.hashes.get_or_init(|| {
            let length = self.content.len();
            if !self.large {
                let mut hash = Sha1::new_with_prefix(format!("blob {length}\0"));
                self.content.each(0..length, |piece| hash.update(piece));
                return (format!("{:x}", hash.finalize()), String::new());
            }
            let mut hash = Sha256::new();
            self.content.each(0..length, |piece| hash.update(piece));
            let sha256 = format!("{:x}", hash.finalize());
            let pointer = pointer(&sha256, length);
            (
                format!(
                    "{:x}",
                    Sha1::digest(format!("blob {}\0{pointer}", pointer.len()).as_bytes())
                ),
                sha256,
            )
        })
    }

    /// Git's name of what lies in the repository: of the content, or of a large file's pointer.
    pub(crate) fn oid(&self) -> &str {
        &self.hashes().0
    }

    /// SHA-256 of a large file, empty for a small one.
    pub(crate) fn sha256(&self) -> &str {
        &self.hashes().1
    }

    /// What the entity tag of the resolve address says, without quotes.
    pub(crate) fn etag(&self) -> &str {
        if self.large {
            self.sha256()
        } else {
            self.oid()
        }
    }

    /// What git keeps in place of a large file.
    pub(crate) fn pointer(&self) -> String {
        pointer(self.sha256(), self.content.len())
    }
}

fn pointer(sha256: &str, size: u64) -> String {
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n")
}
