//! Kinds of files, told by their first bytes: names and declared types are often wrong.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The kinds of files that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// PNG, APNG too.
    Png,
    /// JPEG.
    Jpeg,
    /// WebP.
    Webp,
    /// GIF.
    Gif,
    /// Windows bitmap.
    Bmp,
    /// TIFF.
    Tiff,
    /// HEIC, as telephones of Apple write it.
    Heic,
    /// AVIF, on macOS alone.
    Avif,
    /// SVG, drawn.
    Svg,
}

/// Files that are known and not read, by how they begin.
const REFUSED: [(&[u8], &str); 13] = [
    (b"%PDF", "a PDF document"),
    (b"\x00\x00\x01\x00", "an icon file"),
    (b"8BPS", "a Photoshop document"),
    (b"\xff\x0a", "a JPEG XL image"),
    (b"\x00\x00\x00\x0cJXL ", "a JPEG XL image"),
    (b"\x00\x00\x00\x0cjP  ", "a JPEG 2000 image"),
    (b"\x76\x2f\x31\x01", "an OpenEXR image"),
    (b"DDS ", "a DirectDraw texture"),
    (b"qoif", "a QOI image"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a compressed file"),
    (b"\x1aE\xdf\xa3", "a video"),
    (b"\xc5\xd0\xd3\xc6", "a PostScript document"),
];

/// How far an SVG's first tag is looked for.
const PROLOGUE: usize = 4096;

impl Kind {
    /// Such as `image/png`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
            Self::Bmp => "image/bmp",
            Self::Tiff => "image/tiff",
            Self::Heic => "image/heic",
            Self::Avif => "image/avif",
            Self::Svg => "image/svg+xml",
        }
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Webp => "WebP",
            Self::Gif => "GIF",
            Self::Bmp => "BMP",
            Self::Tiff => "TIFF",
            Self::Heic => "HEIC",
            Self::Avif => "AVIF",
            Self::Svg => "SVG",
        }
    }

    /// The kind of a file by its first bytes; nothing is decoded.
    ///
    /// # Errors
    /// [`Error::UnknownKind`] for a file that is no image, or none that is read.
    pub fn of(bytes: &[u8]) -> Result<Self> {
        let begins = |start: &[u8]| bytes.starts_with(start);
        let unknown = |what: &str| Err(Error::UnknownKind(what.to_owned()));
        if begins(b"\x89PNG\r\n\x1a\n") {
            return Ok(Self::Png);
        } else if begins(b"\xff\xd8\xff") {
            return Ok(Self::Jpeg);
        } else if begins(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            return Ok(Self::Webp);
        } else if begins(b"GIF87a") || begins(b"GIF89a") {
            return Ok(Self::Gif);
        } else if begins(b"BM") && bytes.len() > 26 {
            return Ok(Self::Bmp);
        } else if begins(b"II*\0") || begins(b"MM\0*") || begins(b"II+\0") || begins(b"MM\0+") {
            return Ok(Self::Tiff);
        }
        if bytes.is_empty() {
            return unknown("an empty file");
        }
        if let Some((_, what)) = REFUSED.iter().find(|(start, _)| begins(start)) {
            return unknown(what);
        }
        if bytes.get(4..8) == Some(b"ftyp") {
            return Self::of_brands(bytes);
        }
        match is_svg(bytes) {
            true => Ok(Self::Svg),
            false => unknown("this kind of file"),
        }
    }

    /// HEIC and AVIF share their container with videos; the brands at its beginning tell them apart.
    fn of_brands(bytes: &[u8]) -> Result<Self> {
        let length = bytes[..4]
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte));
        let brands = bytes.get(8..length.clamp(12, 256).min(bytes.len())).unwrap_or_default();
        let has = |wanted: [&[u8]; 2]| brands.chunks_exact(4).any(|brand| wanted.contains(&brand));
        if has([b"avif", b"avis"]) {
            Ok(Self::Avif)
        } else if has([b"heic", b"heix"]) || has([b"mif1", b"hevc"]) {
            Ok(Self::Heic)
        } else {
            Err(Error::UnknownKind("a video".into()))
        }
    }
}

/// True if the first tag of a text is `svg`, after a declaration, comments and a document type.
fn is_svg(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(PROLOGUE)]);
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = match rest {
            _ if rest.starts_with("<?") => rest.find("?>").map(|end| end + 2),
            _ if rest.starts_with("<!--") => rest.find("-->").map(|end| end + 3),
            _ if rest.starts_with("<!DOCTYPE") => match (rest.find('['), rest.find('>')) {
                (Some(subset), Some(end)) if subset < end => rest.find("]>").map(|end| end + 2),
                (_, end) => end.map(|end| end + 1),
            },
            _ => break,
        };
        match end {
            Some(end) => rest = rest[end..].trim_start(),
            None => return rest.starts_with("<!DOCTYPE svg"),
        }
    }
    let tag: String = rest
        .chars()
        .take(40)
        .take_while(|letter| !letter.is_whitespace() && *letter != '>')
        .collect();
    tag.starts_with('<')
        && tag[1..]
            .rsplit(':')
            .next()
            .is_some_and(|name| name == "svg" || name == "svg/")
}
