//! The unpacked size of a PDF's streams, counted before its reader, which has no limit of its own, unpacks them.
//! Streams are never nested in a file, so searching for their keyword finds all of them.

use flate2::{Decompress, FlushDecompress, Status};
use memchr::memmem::find;
use weezl::{decode::Decoder, BitOrder, LzwStatus};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;

/// The largest unpacked stream, in bytes. Images are counted although they are never unpacked.
const MAX_STREAM: u64 = 256 << 20;

/// The largest sum of all unpacked streams, in bytes.
const MAX_TOTAL: u64 = 1 << 30;

/// The highest compression ratios of these methods.
const FLATE_RATIO: u64 = 1032;
const LZW_RATIO: u64 = 4096;

/// The distance before the keyword within which a stream's dictionary is searched, in bytes.
const DESCRIPTION: usize = 16 * 1024;

/// Fails if the file is protected, or would unpack to too much.
pub(crate) fn check(bytes: &[u8], budget: &Budget) -> Result<()> {
    if names_encryption(bytes) {
        return Err(Error::Protected(DocumentKind::Pdf.name().into()));
    }
    let mut total = 0;
    let mut at = 0;
    while let Some(found) = find(&bytes[at..], b"stream") {
        let keyword = at + found;
        at = keyword + b"stream".len();
        if bytes[..keyword].ends_with(b"end") {
            continue;
        }
        budget.check()?;
        let data = match &bytes[at..] {
            [b'\r', b'\n', data @ ..] | [b'\n', data @ ..] | [b'\r', data @ ..] => data,
            data => data,
        };
        let data = &data[..find(data, b"endstream").unwrap_or(data.len())];
        let size = unfolded(&description(&bytes[..keyword]), data, budget)?;
        total += size;
        if size > MAX_STREAM || total > MAX_TOTAL {
            return Err(Error::TooLarge("it unfolds to more than 250 MB".into()));
        }
    }
    Ok(())
}

/// The dictionary before a stream, which names its filters, with escapes resolved.
fn description(before: &[u8]) -> Vec<u8> {
    let near = &before[before.len().saturating_sub(DESCRIPTION)..];
    let start = near
        .windows(4)
        .rposition(|window| window == b" obj" || window == b"\nobj" || window == b"\robj");
    unescaped(&near[start.map_or(0, |start| start + 4)..])
}

/// The unpacked size of this stream, in bytes. Counting stops a little beyond the limit.
fn unfolded(description: &[u8], data: &[u8], budget: &Budget) -> Result<u64> {
    let count = |name: &[u8]| description.windows(name.len()).filter(|window| *window == name).count();
    let has = |name: &[u8]| count(name) > 0;
    let flate = count(b"FlateDecode") + count(b"/Fl ") + count(b"/Fl]") + count(b"/Fl/") + count(b"/Fl>");
    let lzw = count(b"LZW");
    let run_length = count(b"RunLengthDecode") + count(b"/RL");
    if flate + lzw + run_length > 1 {
        return Err(Error::broken(DocumentKind::Pdf, "it is packed more than once"));
    }
    if refers(description) {
        return Err(Error::broken(DocumentKind::Pdf, "it is packed in an unusual way"));
    }
    let plain = match () {
        () if has(b"ASCII85Decode") || has(b"/A85") => ascii85(data),
        () if has(b"ASCIIHexDecode") || has(b"/AHx") => ascii_hex(data),
        () => Vec::new(),
    };
    let data = if plain.is_empty() { data } else { &plain };
    match () {
        () if flate > 0 => inflated(data, budget),
        () if lzw > 0 => unlzw(data, budget),
        () if run_length > 0 => Ok(data.len() as u64 * 64),
        () => Ok(data.len() as u64),
    }
}

/// True if the filter is an indirect reference.
fn refers(description: &[u8]) -> bool {
    let mut rest = description;
    while let Some(at) = find(rest, b"/Filter") {
        rest = &rest[at + b"/Filter".len()..];
        let value = rest.trim_ascii_start();
        let list = value.strip_prefix(b"[").map_or(value, <[u8]>::trim_ascii_start);
        if list.first().is_some_and(u8::is_ascii_digit) {
            return true;
        }
    }
    false
}

/// The unpacked size of a deflate stream. The reader continues past a fault at which this stops, so the highest ratio
/// is assumed for the rest.
fn inflated(data: &[u8], budget: &Budget) -> Result<u64> {
    let is_header = |cmf: u8, flg: u8| cmf & 0x0f == 8 && (u16::from(cmf) << 8 | u16::from(flg)).is_multiple_of(31);
    let has_header = matches!(data, [cmf, flg, ..] if is_header(*cmf, *flg));
    let mut rest = if has_header { &data[2..] } else { data };
    let mut inflate = Decompress::new(false);
    let mut out = vec![0; 1 << 16];
    loop {
        budget.check()?;
        let (read, written) = (inflate.total_in(), inflate.total_out());
        let status = inflate.decompress(rest, &mut out, FlushDecompress::None);
        rest = &rest[(inflate.total_in() - read) as usize..];
        match status {
            _ if inflate.total_out() > MAX_STREAM => return Ok(inflate.total_out()),
            Ok(Status::StreamEnd) => return Ok(inflate.total_out()),
            Ok(_) if inflate.total_out() > written || inflate.total_in() > read => {}
            // Cut short.
            Ok(_) => return Ok(inflate.total_out()),
            Err(_) => return Ok(inflate.total_out() + rest.len() as u64 * FLATE_RATIO),
        }
    }
}

/// The unpacked size of an LZW stream; after a fault the highest ratio is assumed for the rest.
fn unlzw(data: &[u8], budget: &Budget) -> Result<u64> {
    let mut decoder = Decoder::with_tiff_size_switch(BitOrder::Msb, 8);
    let mut out = vec![0; 1 << 16];
    let (mut rest, mut total) = (data, 0);
    loop {
        budget.check()?;
        let step = decoder.decode_bytes(rest, &mut out);
        rest = &rest[step.consumed_in..];
        total += step.consumed_out as u64;
        match step.status {
            _ if total > MAX_STREAM => return Ok(total),
            Ok(LzwStatus::Ok) => {}
            Ok(LzwStatus::NoProgress | LzwStatus::Done) => return Ok(total),
            Err(_) => return Ok(total + rest.len() as u64 * LZW_RATIO),
        }
    }
}

fn ascii85(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut group = Vec::with_capacity(5);
    let add = |value: u32, digit: &u8| value.wrapping_mul(85).wrapping_add(u32::from(*digit));
    let value = |group: &[u8]| group.iter().fold(0, add).to_be_bytes();
    for byte in data.iter().take_while(|byte| **byte != b'~') {
        match byte {
            b'z' if group.is_empty() => out.extend([0; 4]),
            b'!'..=b'u' => group.push(byte - b'!'),
            _ => {}
        }
        if group.len() == 5 {
            out.extend(value(&group));
            group.clear();
        }
    }
    if group.len() > 1 {
        let kept = group.len() - 1;
        group.resize(5, 84);
        out.extend(&value(&group)[..kept]);
    }
    out
}

fn ascii_hex(data: &[u8]) -> Vec<u8> {
    let data = data.iter().take_while(|byte| **byte != b'>');
    let digits: Vec<u8> = data
        .filter_map(|byte| char::from(*byte).to_digit(16).map(|digit| digit as u8))
        .collect();
    let byte = |pair: &[u8]| pair[0] << 4 | pair.get(1).copied().unwrap_or(0);
    digits.chunks(2).map(byte).collect()
}

/// True if a name in the file is `/Encrypt`, with or without escapes.
fn names_encryption(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == b'/') {
        rest = &rest[at + 1..];
        // Each of seven letters may be written as three.
        if unescaped(&rest[..rest.len().min(21)]).starts_with(b"Encrypt") {
            let end = unescaped(&rest[..rest.len().min(24)]).get(7).copied();
            if end.is_none_or(|next| !next.is_ascii_alphanumeric()) {
                return true;
            }
        }
    }
    false
}

/// Names with `#41` for a letter as they are meant.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [byte, after @ ..] = rest {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (byte, digit(0), digit(1)) {
            (b'#', Some(high), Some(low)) => {
                out.push((high << 4 | low) as u8);
                rest = &after[2..];
            }
            _ => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_of_bytes_are_read() {
        assert_eq!(ascii85(b"87cURD]i,\"Ebo80~>"), b"Hello World!");
        assert_eq!(ascii85(b"z87cUR~>"), b"\0\0\0\0Hell");
        assert_eq!(ascii_hex(b"48 65 6c6C 6f 7>"), b"Hellop");
    }

    #[test]
    fn protection_is_seen_however_it_is_spelled() {
        assert!(names_encryption(b"trailer << /Encrypt 5 0 R >>") && names_encryption(b"<</#45ncr#79pt 5 0 R"));
        assert!(!names_encryption(b"/EncryptMetadata") && !names_encryption(b"Encrypt /E"));
    }
}
