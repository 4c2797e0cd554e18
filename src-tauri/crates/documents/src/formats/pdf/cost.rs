//! The unpacked size of a PDF's streams, counted before its reader, which has no limit of its own, unpacks them. The
//! reader's own parser finds the streams, their filters and their data, so that no file says one thing here and another
//! there.

use std::borrow::Cow;

use flate2::{Decompress, FlushDecompress, Status};
use hayro_interpret::hayro_syntax::object::{Dict, MaybeRef, Object, Stream};
use hayro_interpret::hayro_syntax::reader::{Reader, ReaderContext, ReaderExt};
use hayro_interpret::hayro_syntax::Filter;
use memchr::memmem::find;
use weezl::{decode::Decoder, BitOrder, LzwStatus};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;

/// The largest unpacked stream, in bytes. Images are counted although most are never unpacked.
const MAX_STREAM: u64 = 256 << 20;

/// The largest sum of all unpacked streams, in bytes.
const MAX_TOTAL: u64 = 1 << 30;

/// The highest compression ratios of these methods.
const FLATE_RATIO: u64 = 1032;
const LZW_RATIO: u64 = 4096;

/// The most bytes that four letters or fewer stand for in the text forms.
const TEXT_RATIO: u64 = 4;

/// The keys of a stream's filters and of their parameters, each with the short form that the reader takes too.
const FILTERS: [&str; 2] = ["F", "Filter"];
const PARAMETERS: [&str; 2] = ["DP", "DecodeParms"];

/// Fails if the file is protected, or would unpack to too much.
pub(crate) fn check(bytes: &[u8], budget: &Budget) -> Result<()> {
    if names_encryption(bytes) {
        return Err(Error::Protected(DocumentKind::Pdf.name().into()));
    }
    let mut total = 0;
    each_stream(bytes, budget, |stream| {
        let packed = Packed::of(bytes, stream)?;
        let size = packed.unfolded(budget)?;
        total += size;
        if size > MAX_STREAM || total > MAX_TOTAL {
            return Err(Error::TooLarge("it unfolds to more than 250 MB".into()));
        }
        packed.check_objects(stream, budget)
    })
}

/// Calls `found` with every stream that the reader could find. Each begins with its dictionary, wherever the file's
/// tables lead to.
fn each_stream<'a>(bytes: &'a [u8], budget: &Budget, mut found: impl FnMut(&Stream<'a>) -> Result<()>) -> Result<()> {
    // Without the file's tables no reference is resolved; `Packed` refuses or bounds what depends on one.
    let context = ReaderContext::dummy();
    let mut from = 0;
    while let Some(distance) = find(&bytes[from..], b"<<") {
        budget.check()?;
        let at = from + distance;
        if let Some(stream) = Reader::new_with(bytes, at).read_with_context::<Stream<'_>>(&context) {
            found(&stream)?;
        }
        from = at + 1;
    }
    Ok(())
}

fn unusual() -> Error {
    Error::broken(DocumentKind::Pdf, "it is packed in an unusual way")
}

fn packed_twice() -> Error {
    Error::broken(DocumentKind::Pdf, "it is packed more than once")
}

/// True if one of these entries, or a member of its list, is an indirect reference.
fn refers(dict: &Dict<'_>, keys: [&str; 2]) -> bool {
    let is_reference = |object: MaybeRef<Object<'_>>| object.as_obj_ref().is_some();
    keys.iter().any(|key| match dict.get_raw::<Object<'_>>(key) {
        Some(MaybeRef::NotRef(Object::Array(list))) => list.raw_iter().any(is_reference),
        Some(object) => is_reference(object),
        None => false,
    })
}

/// The data of a stream and the filters that the reader would apply to them.
struct Packed<'a> {
    data: Cow<'a, [u8]>,
    filters: Vec<Filter>,
    /// True if the length stands elsewhere in the file. The data are then everything up to the file's end, for what is
    /// packed ends by itself, and less of it unfolds to no more.
    open_end: bool,
}

impl<'a> Packed<'a> {
    fn of(bytes: &'a [u8], stream: &Stream<'a>) -> Result<Self> {
        let dict = stream.dict();
        if refers(dict, FILTERS) {
            return Err(unusual());
        }
        let mut filters = stream.filters().to_vec();
        if filters.first() == Some(&Filter::Crypt) {
            filters.remove(0);
        }
        if filters.contains(&Filter::LzwDecode) {
            check_early_change(dict)?;
        }
        let open_end = matches!(dict.get_raw::<Object<'_>>("Length"), Some(MaybeRef::Ref(_))) && !filters.is_empty();
        let mut data = stream.raw_data();
        if open_end {
            let start = data.as_ptr() as usize - bytes.as_ptr() as usize;
            data = Cow::Borrowed(&bytes[start..]);
        }
        Ok(Self {
            data,
            filters,
            open_end,
        })
    }

    /// The unpacked size of the stream, in bytes. Counting stops a little beyond the limit.
    fn unfolded(&self, budget: &Budget) -> Result<u64> {
        let is_text = |filter: &Filter| matches!(filter, Filter::Ascii85Decode | Filter::AsciiHexDecode);
        let is_image = |filter: &Filter| {
            use Filter::{CcittFaxDecode, DctDecode, Jbig2Decode, JpxDecode};
            matches!(filter, DctDecode | JpxDecode | Jbig2Decode | CcittFaxDecode)
        };
        // An image is unpacked only for the page that is drawn, which bounds its pixels.
        let before_image = self.filters.iter().position(is_image).unwrap_or(self.filters.len());
        if before_image + 1 < self.filters.len() {
            return Err(packed_twice());
        }
        let mut filters = &self.filters[..before_image];
        let mut data = Cow::Borrowed(&*self.data);
        while let [first, rest @ ..] = filters {
            if !is_text(first) {
                break;
            }
            budget.check()?;
            data = match unpacked(&[*first], &data) {
                Some(data) => Cow::Owned(data),
                None if self.open_end => return Err(unusual()),
                // The reader gives up here.
                None => return Ok(0),
            };
            filters = rest;
        }
        let [packing, after @ ..] = filters else {
            return Ok(data.len() as u64);
        };
        let size = match packing {
            Filter::FlateDecode => inflated(&data, budget)?,
            Filter::LzwDecode => unlzw(&data, budget)?,
            Filter::RunLengthDecode => run_length(&data),
            _ => data.len() as u64,
        };
        match after.iter().all(is_text) {
            true => Ok(after.iter().fold(size, |size, _| size.saturating_mul(TEXT_RATIO))),
            false => Err(packed_twice()),
        }
    }

    /// Fails if the stream holds objects of which one is a stream again: nobody would have counted it.
    fn check_objects(&self, stream: &Stream<'_>, budget: &Budget) -> Result<()> {
        let dict = stream.dict();
        // Objects that are not packed lie in the file, where they are counted.
        if !(dict.contains_key("N") && dict.contains_key("First")) || self.filters.is_empty() {
            return Ok(());
        }
        let plain = !PARAMETERS.iter().any(|key| dict.contains_key(key));
        let objects = match self.open_end {
            true if plain => unpacked(&self.filters, &self.data).map(Cow::Owned),
            false if !refers(dict, PARAMETERS) => stream.decoded_data().ok(),
            _ => return Err(unusual()),
        };
        each_stream(&objects.unwrap_or_default(), budget, |_| Err(unusual()))
    }
}

/// Fails if a parameter says that LZW's codes do not grow one code early, as they do everywhere.
fn check_early_change(dict: &Dict<'_>) -> Result<()> {
    if refers(dict, PARAMETERS) {
        return Err(unusual());
    }
    let is_early = |one: &Dict<'_>| !one.contains_key("EarlyChange") || one.get::<u8>("EarlyChange") == Some(1);
    let mut parameters = PARAMETERS.iter().filter_map(|key| dict.get::<Object<'_>>(key));
    let all_early = parameters.all(|parameters| match parameters {
        Object::Dict(one) => is_early(&one),
        Object::Array(list) => list.raw_iter().all(|one| match one {
            MaybeRef::NotRef(Object::Dict(one)) => is_early(&one),
            _ => true,
        }),
        _ => true,
    });
    match all_early {
        true => Ok(()),
        false => Err(unusual()),
    }
}

/// The name of a filter that this room counts.
fn name(filter: &Filter) -> Option<&'static str> {
    match filter {
        Filter::AsciiHexDecode => Some("/ASCIIHexDecode"),
        Filter::Ascii85Decode => Some("/ASCII85Decode"),
        Filter::LzwDecode => Some("/LZWDecode"),
        Filter::FlateDecode => Some("/FlateDecode"),
        Filter::RunLengthDecode => Some("/RunLengthDecode"),
        _ => None,
    }
}

/// Data as the reader unpacks them with these filters; `None` if it cannot.
fn unpacked(filters: &[Filter], data: &[u8]) -> Option<Vec<u8>> {
    let names = filters.iter().map(name).collect::<Option<String>>()?;
    let head = format!("<</Filter[{names}]/Length {}>>stream\n", data.len());
    let whole = [head.as_bytes(), data, b"\nendstream"].concat();
    let stream = Reader::new(&whole).read_with_context::<Stream<'_>>(&ReaderContext::dummy())?;
    stream.decoded_data().ok().map(Cow::into_owned)
}

/// The unpacked size of a deflate stream, at most.
fn inflated(data: &[u8], budget: &Budget) -> Result<u64> {
    let is_header = |cmf: u8, flg: u8| {
        cmf & 0x0f == 8 && flg & 0x20 == 0 && (u16::from(cmf) << 8 | u16::from(flg)).is_multiple_of(31)
    };
    let (bare, left) = deflate_size(data, budget)?;
    match data {
        [cmf, flg, wrapped @ ..] if is_header(*cmf, *flg) => {
            let (size, left) = deflate_size(wrapped, budget)?;
            // The reader takes the header for data where the checksum is wrong.
            Ok(bare.max(size + left * FLATE_RATIO))
        }
        _ => Ok(bare + left * FLATE_RATIO),
    }
}

/// The unpacked size of deflate's data up to their end or first fault, and the bytes that are left after a fault: the
/// reader goes on there.
fn deflate_size(data: &[u8], budget: &Budget) -> Result<(u64, u64)> {
    let mut rest = data;
    let mut inflate = Decompress::new(false);
    let mut out = vec![0; 1 << 16];
    loop {
        budget.check()?;
        let (read, written) = (inflate.total_in(), inflate.total_out());
        let status = inflate.decompress(rest, &mut out, FlushDecompress::None);
        rest = &rest[(inflate.total_in() - read) as usize..];
        match status {
            _ if inflate.total_out() > MAX_STREAM => return Ok((inflate.total_out(), 0)),
            Ok(Status::StreamEnd) => return Ok((inflate.total_out(), 0)),
            Ok(_) if inflate.total_out() > written || inflate.total_in() > read => {}
            // Cut short.
            Ok(_) => return Ok((inflate.total_out(), 0)),
            Err(_) => return Ok((inflate.total_out(), rest.len() as u64)),
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

/// The unpacked size of runs: a count, and the bytes that it counts or the one that it repeats.
fn run_length(data: &[u8]) -> u64 {
    let (mut rest, mut total) = (data, 0);
    while let [count, after @ ..] = rest {
        let (read, written) = match *count {
            128 => break,
            count @ 0..128 => (usize::from(count) + 1, u64::from(count) + 1),
            count => (1, 257 - u64::from(count)),
        };
        total += written;
        rest = after.get(read..).unwrap_or_default();
    }
    total
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
    fn runs_are_counted_and_text_forms_are_read_as_the_reader_does() {
        assert_eq!(run_length(&[4, 10, 11, 12, 13, 14, 253, 3, 128, 0, 0]), 9);
        let text = |filter, data: &[u8]| unpacked(&[filter], data);
        assert_eq!(
            text(Filter::Ascii85Decode, b"87cURD]i,\"Ebo80~>").as_deref(),
            Some(&b"Hello World!"[..])
        );
        assert_eq!(
            text(Filter::AsciiHexDecode, b"48 65 6c6C 6f 7>").as_deref(),
            Some(&b"Hellop"[..])
        );
        assert_eq!(text(Filter::AsciiHexDecode, b"4x>"), None);
    }

    #[test]
    fn protection_is_seen_however_it_is_spelled() {
        assert!(names_encryption(b"trailer << /Encrypt 5 0 R >>") && names_encryption(b"<</#45ncr#79pt 5 0 R"));
        assert!(!names_encryption(b"/EncryptMetadata") && !names_encryption(b"Encrypt /E"));
    }
}
