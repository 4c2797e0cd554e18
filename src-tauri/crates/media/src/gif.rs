//! The blocks of a GIF, which say how long they are.

use std::ops::Range;

/// The first byte of a frame; the other blocks are extensions.
pub(crate) const FRAME: u8 = 0x2c;

/// The first byte of an extension.
const EXTENSION: u8 = 0x21;

/// Bytes of the color table that these flags announce.
fn table(flags: u8) -> usize {
    match flags & 0x80 {
        0 => 0,
        _ => 3 << ((flags & 7) + 1),
    }
}

/// How long the header is, its color table included; `None` if it is cut short.
pub(crate) fn header_length(bytes: &[u8]) -> Option<usize> {
    Some(13 + table(*bytes.get(10)?))
}

/// The blocks after the header, each with its first byte. The last one may be cut short.
pub(crate) fn blocks(bytes: &[u8]) -> impl Iterator<Item = (u8, Range<usize>)> + '_ {
    let mut at = header_length(bytes).unwrap_or(bytes.len());
    std::iter::from_fn(move || {
        let (start, kind) = (at, *bytes.get(at)?);
        at = match kind {
            EXTENSION => start + 2,
            FRAME => start + 11 + bytes.get(start + 9).map_or(0, |flags| table(*flags)),
            _ => return None,
        };
        while let Some(length) = bytes.get(at).filter(|length| **length > 0) {
            at += 1 + usize::from(*length);
        }
        at += 1;
        Some((kind, start..at))
    })
}
