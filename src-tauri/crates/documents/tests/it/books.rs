//! Books in EPUB, and archives that only claim to be one.

use documents::{read, DocumentKind, Error};

use crate::hostile::{broken, refusal, too_large};
use crate::make::{archive, bomb};

const CONTAINER: &str = "<container xmlns=\"urn:oasis:names:tc:opendocument:xmlns:container\"><rootfiles>\
    <rootfile full-path=\"OEBPS/book.opf\" media-type=\"application/oebps-package+xml\"/></rootfiles></container>";

/// The list of a book's parts.
fn package(items: &str, spine: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><package xmlns=\"http://www.idpf.org/2007/opf\"><metadata \
        xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>Tea &amp; milk</dc:title><dc:creator>A. Cup</dc:creator>\
        </metadata><manifest>{items}</manifest><spine toc=\"ncx\">{spine}</spine></package>"
    )
}

fn book<'a>(package: &'a str, parts: &[(&'a str, &'a [u8])]) -> Vec<(&'a str, &'a [u8])> {
    let mut all: Vec<(&str, &[u8])> = vec![
        ("mimetype", b"application/epub+zip"),
        ("META-INF/container.xml", CONTAINER.as_bytes()),
        ("OEBPS/book.opf", package.as_bytes()),
    ];
    all.extend(parts);
    all
}

const ITEMS: &str = "<item id=\"a\" href=\"text/a.xhtml\" media-type=\"application/xhtml+xml\"/>\
    <item id=\"b\" href=\"text/b%20b.xhtml\" media-type=\"application/xhtml+xml\"/>\
    <item id=\"ncx\" href=\"toc.ncx\" media-type=\"application/x-dtbncx+xml\"/>";

const TITLES: &str = "<?xml version=\"1.0\"?><!DOCTYPE ncx PUBLIC \"-//NISO//DTD ncx 2005-1//EN\" \
    \"http://www.daisy.org/z3986/2005/ncx-2005-1.dtd\"><ncx><navMap>\
    <navPoint><navLabel><text>The pot</text></navLabel><content src=\"text/b%20b.xhtml\"/></navPoint>\
    <navPoint><navLabel><text>Its lid</text></navLabel><content src=\"text/b%20b.xhtml#lid\"/></navPoint></navMap></ncx>";

const A: &[u8] = b"<?xml version=\"1.0\"?><!DOCTYPE html><html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title/>\
    <script src=\"a.js\"/></head><body><h1>The cup</h1><p>It is&#160;<i>hot</i>.</p><img src=\"../cup.png\"/></body></html>";
const B: &[u8] = b"<html><head><title>b</title></head><body><p>It is round.<br/>Quite.</p></body></html>";

#[test]
fn a_book_is_read_in_order_with_titles() {
    let list = package(ITEMS, "<itemref idref=\"b\"/><itemref idref=\"a\"/>");
    let parts: [(&str, &[u8]); 3] = [
        ("OEBPS/toc.ncx", TITLES.as_bytes()),
        ("OEBPS/text/a.xhtml", A),
        ("OEBPS/text/b b.xhtml", B),
    ];
    let document = read(archive(&book(&list, &parts)), "tea.txt").unwrap();
    assert_eq!(document.kind, DocumentKind::Epub);
    assert_eq!(
        document.text,
        "# Tea & milk\n\nA. Cup\n\n# The pot\n\nIt is round.\nQuite.\n\n# The cup\n\nIt is hot."
    );
    let newer = "<html xmlns:epub=\"http://www.idpf.org/2007/ops\"><body><nav epub:type=\"toc\"><ol>\
        <li><a href=\"text/b%20b.xhtml\">A <b>pot</b></a></li></ol></nav></body></html>";
    let items =
        format!("{ITEMS}<item id=\"nav\" href=\"nav.xhtml\" properties=\"nav\" media-type=\"application/xhtml+xml\"/>");
    let list = package(&items, "<itemref idref=\"b\"/>");
    let parts = [("OEBPS/nav.xhtml", newer.as_bytes()), ("OEBPS/text/b b.xhtml", B)];
    let text = read(archive(&book(&list, &parts)), "tea.epub").unwrap().text;
    assert!(text.ends_with("# A pot\n\nIt is round.\nQuite."), "{text}");
}

#[test]
fn a_chapter_that_is_named_again_and_again_is_read_once() {
    let list = package(ITEMS, &"<itemref idref=\"b\"/>".repeat(100_000));
    let text = read(archive(&book(&list, &[("OEBPS/text/b b.xhtml", B)])), "b.epub")
        .unwrap()
        .text;
    assert_eq!(text.matches("round").count(), 1);
    // Under other names it is still one part.
    let items: String = (0..9_000)
        .map(|at| format!("<item id=\"i{at}\" href=\"./text/x/../b%20b.xhtml#{at}\"/>"))
        .collect();
    let spine: String = (0..9_000).map(|at| format!("<itemref idref=\"i{at}\"/>")).collect();
    let list = package(&items, &spine);
    let text = read(archive(&book(&list, &[("OEBPS/text/b b.xhtml", B)])), "b.epub")
        .unwrap()
        .text;
    assert_eq!(text.matches("round").count(), 1);
}

#[test]
fn books_that_unfold_lie_or_lack_parts() {
    let list = package(ITEMS, "<itemref idref=\"a\"/>");
    let mut file = bomb(&book(&list, &[]), "OEBPS/text/a.xhtml");
    too_large("bomb.epub", file.clone());
    // The same with headers that promise ten bytes: it ends where they say, and is another file than they say.
    for (header, size) in [(&b"PK\x01\x02"[..], 24), (b"PK\x03\x04", 22)] {
        let last = file.windows(4).rposition(|window| window == header).unwrap();
        file[last + size..last + size + 4].copy_from_slice(&10_u32.to_le_bytes());
    }
    broken("lying.epub", file);
    let only = |files: &[(&str, &[u8])]| archive(files);
    broken("bare.epub", only(&[("mimetype", b"application/epub+zip")]));
    broken("container.epub", only(&[("META-INF/container.xml", b"<container/>")]));
    broken("chapter.epub", archive(&book(&list, &[])));
    broken(
        "unlisted.epub",
        archive(&book(&package(ITEMS, "<itemref idref=\"z\"/>"), &[])),
    );
    broken("empty.epub", archive(&book(&package("", ""), &[])));
    let out = package(
        "<item id=\"a\" href=\"../../../etc/passwd\"/>",
        "<itemref idref=\"a\"/>",
    );
    broken("out.epub", archive(&book(&out, &[])));
    let many: String = (0..10_001).map(|at| format!("<itemref idref=\"i{at}\"/>")).collect();
    broken("many.epub", archive(&book(&package("", &many), &[])));
    let laughs = format!("<!DOCTYPE package [<!ENTITY a \"b\">]>{list}");
    broken("laughs.epub", archive(&book(&laughs, &[("OEBPS/text/a.xhtml", A)])));
    broken("deep.epub", archive(&book(&"<a>".repeat(310_000), &[])));
    let deep = format!("<html>{}end", "<div><ul><li>".repeat(100_000));
    let read = read(
        archive(&book(&list, &[("OEBPS/text/a.xhtml", deep.as_bytes())])),
        "deep.epub",
    );
    assert!(read.unwrap().text.ends_with("end"));
    let zeros = read_error(&book(&list, &[("OEBPS/text/a.xhtml", b"a\0\xff\0")]));
    assert!(matches!(zeros, Error::Broken { .. }), "{zeros}");
}

fn read_error(files: &[(&str, &[u8])]) -> Error {
    refusal("a.epub", archive(files))
}

#[test]
fn a_book_with_rights_is_protected_and_one_with_such_fonts_is_not() {
    let list = package(ITEMS, "<itemref idref=\"a\"/>");
    let locked = |part: &str| {
        format!("<encryption><EncryptedData><CipherData><CipherReference URI=\"{part}\"/></CipherData></EncryptedData></encryption>")
    };
    let fonts = locked("OEBPS/fonts/a.otf");
    let parts: [(&str, &[u8]); 2] = [("META-INF/encryption.xml", fonts.as_bytes()), ("OEBPS/text/a.xhtml", A)];
    assert!(read(archive(&book(&list, &parts)), "a.epub").is_ok());
    let chapter = locked("OEBPS/text/a.xhtml");
    let parts: [(&str, &[u8]); 2] = [
        ("META-INF/encryption.xml", chapter.as_bytes()),
        ("OEBPS/text/a.xhtml", A),
    ];
    assert_eq!(read_error(&book(&list, &parts)), Error::Protected("EPUB".into()));
}
