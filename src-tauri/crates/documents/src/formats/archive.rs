//! Archives that are documents: their kind, and their parts one at a time, each through a limit.

use std::io::{Cursor, Read};

use memchr::memmem;
use percent_encoding::percent_decode_str;
use zip::result::ZipError;
use zip::ZipArchive;

use super::xml;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;

/// The largest unpacked part, in bytes. A thousand pages have about ten million.
const MAX_PART: u64 = 100_000_000;

/// All parts that are read together, unpacked, in bytes.
const MAX_ALL: u64 = 300_000_000;

/// The most parts that the archive may name.
pub(crate) const MAX_PARTS: usize = 10_000;

/// How often the mark of a name in the table of contents may stand in the file. Files within the archive have such
/// marks, too, so it is more than the most parts; each costs memory before the table is known.
const MAX_MARKS: usize = 10 * MAX_PARTS;

/// The longest part that only names a kind, in bytes.
const LONGEST_KIND: usize = 200;

/// An archive whose parts are asked for by name. Names are compared with each other and never with those of this
/// computer's files.
pub(crate) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    kind: DocumentKind,
    left: u64,
}

impl<'a> Archive<'a> {
    /// Opens an archive and tells its kind; `guess` is the kind in errors until it is told.
    ///
    /// # Errors
    /// `UnknownKind` if it is no document that is read; `Broken` and `Protected`.
    pub fn open(bytes: &'a [u8], guess: DocumentKind, budget: &Budget) -> Result<Self> {
        let too_many = || Error::broken(guess, "it holds more files than a document has");
        if memmem::find_iter(bytes, b"PK\x01\x02").nth(MAX_MARKS).is_some() {
            return Err(too_many());
        }
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(guess, &error))?;
        if zip.len() > MAX_PARTS {
            return Err(too_many());
        }
        let mut archive = Self {
            zip,
            kind: guess,
            left: MAX_ALL,
        };
        archive.kind = archive.told_kind(budget)?;
        Ok(archive)
    }

    /// The kind by the archive's contents.
    pub fn kind(&self) -> DocumentKind {
        self.kind
    }

    /// True if there is a part of this name.
    pub fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// The first name that is like this.
    pub fn find(&self, is_it: impl Fn(&str) -> bool) -> Option<String> {
        let mut names = self.zip.file_names().flatten();
        names.find(|name| is_it(name)).map(|name| name.into_owned())
    }

    /// A part. Its header may promise too much, and is not trusted if it promises less.
    ///
    /// # Errors
    /// `Broken` if there is none or it is damaged; `TooLarge` beyond the limits; `Protected`.
    pub fn part(&mut self, name: &str) -> Result<Vec<u8>> {
        let kind = self.kind;
        let file = self.zip.by_name(name).map_err(|error| broken(kind, &error))?;
        if file.encrypted() {
            return Err(Error::Protected(kind.name().into()));
        }
        let most = self.left.min(MAX_PART);
        let too_large = || Error::TooLarge(format!("it unfolds to more than {} MB", limit(most)));
        if file.size() > most {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        let read = file.take(most + 1).read_to_end(&mut bytes);
        read.map_err(|_| Error::broken(kind, "its archive is damaged"))?;
        match bytes.len() as u64 > most {
            true => Err(too_large()),
            false => {
                self.left -= bytes.len() as u64;
                Ok(bytes)
            }
        }
    }

    fn told_kind(&mut self, budget: &Budget) -> Result<DocumentKind> {
        if self.has("mimetype") {
            let said = self.part("mimetype")?;
            let said = String::from_utf8_lossy(&said[..said.len().min(LONGEST_KIND)]);
            if let Some(kind) = of_media_type(said.trim()) {
                return kind;
            }
        }
        if self.has("[Content_Types].xml") {
            let types = self.part("[Content_Types].xml")?;
            if let Some(kind) = self.of_types(&types, budget)? {
                return kind;
            }
        }
        self.of_names()
    }

    /// The kind by the type of its main part.
    fn of_types(&self, types: &[u8], budget: &Budget) -> Result<Option<Result<DocumentKind>>> {
        let mut found = None;
        xml::walk(types, self.kind, budget, |mark| {
            if let (xml::Mark::Open(tag), None) = (mark, &found) {
                found = tag.attribute("ContentType").and_then(|kind| of_main_part(&kind));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The kind by the names of parts, if nothing else tells it.
    fn of_names(&self) -> Result<DocumentKind> {
        let holds = |start: &str| self.find(|name| name.starts_with(start)).is_some();
        match () {
            () if self.find(is_word).is_some() => Ok(DocumentKind::Docx),
            () if self.has("xl/workbook.xml") => Ok(DocumentKind::Xlsx),
            () if self.has("ppt/presentation.xml") => Ok(DocumentKind::Pptx),
            () if self.has("META-INF/container.xml") => Ok(DocumentKind::Epub),
            () if holds("content.xml") => Err(unknown("an OpenDocument file", "save it as ODT, DOCX or PDF")),
            () => Err(unknown("an archive", "unpack it first")),
        }
    }
}

/// True for the part with a document's text. Word calls it `document`; others number it.
pub(crate) fn is_word(name: &str) -> bool {
    let rest = name.strip_prefix("word/document");
    let number = rest.and_then(|rest| rest.strip_suffix(".xml"));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The name of the part that a reference in another part means; `None` if it leads out of the archive.
pub(crate) fn resolve(from: &str, reference: &str) -> Option<String> {
    let path = reference.split(['#', '?']).next()?;
    let path = percent_decode_str(path).decode_utf8().ok()?;
    if path.is_empty() || path.contains("://") {
        return None;
    }
    let mut names: Vec<&str> = match path.starts_with('/') {
        true => Vec::new(),
        false => from.split('/').collect(),
    };
    names.pop();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

fn of_media_type(said: &str) -> Option<Result<DocumentKind>> {
    if said == "application/epub+zip" {
        return Some(Ok(DocumentKind::Epub));
    }
    // Templates and masters have types of their own.
    let open = said.strip_prefix("application/vnd.oasis.opendocument.")?;
    Some(match open.split('-').next() {
        Some("text") => Ok(DocumentKind::Odt),
        Some("spreadsheet") => Ok(DocumentKind::Ods),
        Some("presentation") => Ok(DocumentKind::Odp),
        _ => Err(unknown("an OpenDocument drawing or formula", "save it as PDF")),
    })
}

fn of_main_part(kind: &str) -> Option<Result<DocumentKind>> {
    if kind.ends_with("sheet.binary.macroEnabled.main") {
        return Some(Err(unknown("a binary Excel workbook", "save it as XLSX")));
    }
    // Documents with macros and templates have types of their own.
    let main = kind.strip_suffix(".main+xml")?;
    match () {
        () if main.contains("word") => Some(Ok(DocumentKind::Docx)),
        () if main.contains("sheet") || main.contains("excel") => Some(Ok(DocumentKind::Xlsx)),
        () if main.contains("presentation") || main.contains("slideshow") => Some(Ok(DocumentKind::Pptx)),
        () => None,
    }
}

fn unknown(what: &'static str, advice: &'static str) -> Error {
    Error::UnknownKind {
        what: what.into(),
        advice: advice.into(),
    }
}

/// The limit that was exceeded: that of a part, or that of all.
fn limit(most: u64) -> u64 {
    let exceeded = if most == MAX_PART { MAX_PART } else { MAX_ALL };
    exceeded / 1_000_000
}

fn broken(kind: DocumentKind, error: &ZipError) -> Error {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => Error::Protected(kind.name().into()),
        ZipError::UnsupportedArchive(_) => Error::broken(kind, "its archive is packed in an unusual way"),
        ZipError::FileNotFound => Error::broken(kind, "a part of it is missing"),
        _ => Error::broken(kind, "its archive is damaged"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_stay_in_the_archive() {
        for (from, reference, part) in [
            ("OEBPS/book.opf", "text/a%20b.xhtml#c", Some("OEBPS/text/a b.xhtml")),
            ("ppt/slides/slide1.xml", "../notes/n.xml", Some("ppt/notes/n.xml")),
            ("a/b", "/xl/./workbook.xml", Some("xl/workbook.xml")),
            ("a/b", "../../../etc/passwd", None),
            ("a/b", "https://example.org/a", None),
            ("a/b", "#c", None),
            ("", "META-INF/a", Some("META-INF/a")),
        ] {
            assert_eq!(resolve(from, reference).as_deref(), part, "{from} {reference}");
        }
    }
}
