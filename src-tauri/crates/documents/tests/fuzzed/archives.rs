//! An archive of any marks: text or an error, in time and without a panic. tests/fuzz has the same for cargo-fuzz.

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::ZipWriter;

/// Elements of all formats, each with attributes that mean something.
const ELEMENTS: &[&str] = &[
    "rootfile full-path=\"a.xml\"",
    "item id=\"a\" href=\"a.xml\" properties=\"nav\" media-type=\"application/x-dtbncx+xml\"",
    "item id=\"b\" href=\"../b.xml#x\"",
    "itemref idref=\"a\"",
    "itemref idref=\"b\"",
    "a href=\"a.xml\"",
    "text",
    "content src=\"a.xml\"",
    "title",
    "Relationship Id=\"a\" Type=\"x/worksheet\" Target=\"a.xml\"",
    "Relationship Id=\"b\" Type=\"x/sharedStrings\" Target=\"/b.xml\"",
    "Relationship Id=\"c\" Type=\"x/styles\" Target=\"a.xml\"",
    "Relationship Id=\"a\" Type=\"x/notesSlide\" Target=\"../a.xml\"",
    "sheet name=\"S\" r:id=\"a\"",
    "workbookPr date1904=\"1\"",
    "row r=\"9\"",
    "row r=\"18446744073709551615\"",
    "c r=\"B2\" t=\"s\" s=\"0\"",
    "c s=\"1\"",
    "c r=\"XFD1\"",
    "v",
    "f",
    "si",
    "rPh",
    "cellXfs",
    "numFmt numFmtId=\"164\" formatCode=\"#,##0.0 \u{20ac};[h]:mm\"",
    "xf numFmtId=\"164\"",
    "xf numFmtId=\"14\"",
    "sldId id=\"256\" r:id=\"a\"",
    "sld show=\"0\"",
    "sp",
    "ph type=\"body\"",
    "ph type=\"title\"",
    "p",
    "pPr lvl=\"18446744073709551615\"",
    "buNone",
    "t",
    "br",
    "tbl",
    "tr",
    "tc",
    "pStyle val=\"Heading9\"",
    "numPr",
    "footnote id=\"1\"",
    "del",
    "h outline-level=\"99\"",
    "s c=\"18446744073709551615\"",
    "tab",
    "list",
    "list-item",
    "note",
    "note-citation",
    "table name=\"T\"",
    "table-row number-rows-repeated=\"1000\"",
    "table-cell number-columns-repeated=\"1000\"",
    "page",
    "notes",
    "frame class=\"title\"",
    "annotation",
];

/// Each kind: what tells it, and the part that lists or holds its text.
const KINDS: &[(&str, &str, &str)] = &[
    ("word/document.xml", "<a/>", "word/footnotes.xml"),
    ("xl/workbook.xml", "<a/>", "xl/_rels/workbook.xml.rels"),
    ("ppt/presentation.xml", "<a/>", "ppt/_rels/presentation.xml.rels"),
    ("META-INF/container.xml", "<rootfile full-path=\"a.xml\"/>", "a.xml"),
    ("mimetype", "application/vnd.oasis.opendocument.text", "content.xml"),
    (
        "mimetype",
        "application/vnd.oasis.opendocument.spreadsheet",
        "content.xml",
    ),
    (
        "mimetype",
        "application/vnd.oasis.opendocument.presentation",
        "content.xml",
    ),
];

/// One file: its kind, and marks that are in order, for the first half of the bytes in its own part.
pub fn run(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let (first, said, second) = KINDS[usize::from(*kind) % KINDS.len()];
    let (one, two) = data.split_at(data.len() / 2);
    let (one, two) = (marks(one), marks(two));
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |name: &str, bytes: &str| {
        // A name that is there already is refused.
        if writer.start_file(name, SimpleFileOptions::default()).is_ok() {
            writer.write_all(bytes.as_bytes()).unwrap();
        }
    };
    add(first, if said == "<a/>" { &one } else { said });
    add(second, &two);
    for name in ["a.xml", "b.xml", "xl/a.xml", "ppt/a.xml", "word/a.xml"] {
        add(name, &one);
    }
    let file = writer.finish().unwrap().into_inner();
    if let Ok(document) = documents::read(file, "a.zip") {
        assert!(document.text.len() <= documents::MAX_TEXT);
    }
}

fn marks(data: &[u8]) -> String {
    let mut xml = String::from("<document xmlns:r=\"r\">");
    let mut open = Vec::new();
    for byte in data {
        match usize::from(*byte) % (ELEMENTS.len() + 6) {
            0..=3 => xml.extend(open.pop().map(|name| format!("</{name}>"))),
            4 => xml.push_str("45356.5"),
            5 => xml.push_str("a &amp; b\n"),
            at => {
                let element = ELEMENTS[at - 6];
                open.push(element.split(' ').next().unwrap_or(element));
                xml.push_str(&format!("<{element}>"));
            }
        }
    }
    xml.extend(open.iter().rev().map(|name| format!("</{name}>")));
    xml + "</document>"
}
