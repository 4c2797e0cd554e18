//! Documents as people have them.

use documents::{pieces, quoted, read, whole, DocumentKind, Error};
use protocol::{Excerpt, ExcerptUnit};

use crate::make::{docx, docx_with_notes, pdf};

fn text(bytes: Vec<u8>, name: &str) -> String {
    read(bytes, name).unwrap().text
}

#[test]
fn texts_come_as_they_are() {
    for (name, kind) in [
        ("main.rs", DocumentKind::Text),
        ("notes.md", DocumentKind::Markdown),
        ("a.csv", DocumentKind::Csv),
    ] {
        let document = read(b"a,b\r\n1,\"x \ty\"\r\n".to_vec(), name).unwrap();
        assert_eq!((document.kind, document.text.as_str()), (kind, "a,b\n1,\"x \ty\"\n"));
    }
    assert_eq!(
        text(b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe\x0cend".to_vec(), "a.txt"),
        "Grüße\nend"
    );
}

#[test]
fn a_page_is_read_without_what_it_runs() {
    let page =
        "<html><head><title>Tea</title><script>steal()</script></head><body><h2>How</h2><p>Pour it.</body></html>";
    assert_eq!(text(page.into(), "tea.html"), "Tea\n\n## How\n\nPour it.");
}

#[test]
fn the_pages_of_a_pdf_are_read_line_by_line() {
    let first =
        "BT /F1 12 Tf 72 770 Td (Hello, ) Tj (world \\(again\\)) Tj 0 -14 Td [(Sec) -20 (ond) -400 (line)] TJ ET \
        BT /F1 12 Tf 72 700 Td (A paragraph apart) Tj ET";
    let second = "BT /F1 10 Tf 72 770 Td (Name) Tj 150 0 Td (Amount) Tj ET BT /F1 10 Tf 1 0 0 1 72 756 Tm (caf\\351) Tj 3 Tr 1 0 0 1 222 756 Tm (12) Tj ET";
    let document = read(pdf(&[first, second], "", &[]), "letter.txt").unwrap();
    assert_eq!(document.kind, DocumentKind::Pdf);
    assert_eq!(
        pieces(&document.text),
        [
            "Hello, world (again)\nSecond line\n\nA paragraph apart",
            "Name  Amount\ncafé  12"
        ]
    );
    assert_eq!(whole(&document.text), Excerpt::whole(ExcerptUnit::Pages, 2));
    assert!(quoted("letter.pdf", &document.text, None).contains("[page 2]\nName  Amount"));
}

#[test]
fn a_scanned_pdf_says_what_to_do() {
    let error = read(pdf(&["0 0 100 100 re f"], "", &[]), "scan.pdf").unwrap_err();
    assert!(matches!(&error, Error::NoText { kind, .. } if kind == "PDF"), "{error}");
    assert!(error.to_string().contains("add them as images"), "{error}");
}

#[test]
fn a_word_document_keeps_its_headings_lists_tables_and_notes() {
    let paragraph = |properties: &str, text: &str| {
        format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space=\"preserve\">{text}</w:t></w:r></w:p>")
    };
    let cell = |text: &str| format!("<w:tc>{}</w:tc>", paragraph("", text));
    let item = "<w:numPr><w:ilvl w:val=\"0\"/><w:numId w:val=\"1\"/></w:numPr>";
    let body = [
        paragraph("<w:pStyle w:val=\"Heading2\"/>", "Tea &amp; milk"),
        "<w:p><w:r><w:t>One </w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:t>word</w:t><w:br/><w:t>more&#33;</w:t>\
            <w:footnoteReference w:id=\"1\"/></w:r></w:p>"
            .to_owned(),
        paragraph(item, "first"),
        paragraph(item, "second"),
        format!("<w:tbl><w:tr>{}{}</w:tr><w:tr>{}{}</w:tr></w:tbl>", cell("x"), cell("y"), cell("1"), cell("2")),
        "<w:p><mc:AlternateContent><mc:Choice><w:r><w:t>once</w:t></w:r></mc:Choice><mc:Fallback><w:r><w:t>twice</w:t></w:r></mc:Fallback></mc:AlternateContent></w:p>"
            .to_owned(),
    ]
    .concat();
    let notes = format!(
        "<w:footnote w:type=\"separator\" w:id=\"0\"><w:p/></w:footnote><w:footnote w:id=\"1\">{}</w:footnote>",
        paragraph("", "Hot.")
    );
    let expected =
        "## Tea & milk\n\nOne word\nmore![^1]\n\n- first\n- second\n\n| x | y |\n| 1 | 2 |\n\nonce\n\n[^1]: Hot.";
    assert_eq!(text(docx_with_notes(&body, &notes), "tea.docx"), expected);
    assert_eq!(read(docx(&body), "tea.docx").unwrap().kind, DocumentKind::Docx);
}
