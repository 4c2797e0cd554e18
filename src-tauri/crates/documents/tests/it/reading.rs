//! Documents as people have them.

use documents::{pieces, quoted, read, whole, DocumentKind, Error};
use protocol::{Excerpt, ExcerptUnit};

use crate::make::{deflated, docx, docx_with_notes, pdf, pdf_of};

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
fn a_pdf_may_say_lengths_elsewhere_and_pack_its_objects() {
    let elsewhere = |entries: &str, data: &[u8], length: usize| {
        let head = format!("<< {entries} /Filter /FlateDecode /Length {length} 0 R >>\nstream\n");
        [head.as_bytes(), data, b"\nendstream"].concat()
    };
    let content = deflated(b"BT /F1 12 Tf 72 770 Td (Hello) Tj ET");
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";
    let of = |pages: &[u8], page: &[u8]| {
        pdf_of(
            &[
                b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
                pages.to_vec(),
                page.to_vec(),
                elsewhere("", &content, 5),
                content.len().to_string().into_bytes(),
            ],
            "",
        )
    };
    let pages = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>";
    let page = format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 {font} >> >> /Contents 4 0 R >>");
    assert_eq!(text(of(pages.as_bytes(), page.as_bytes()), "lengths.pdf"), "Hello");
    // As cairo writes: objects within an object. Without a table of contents they are found by looking.
    let objects = format!("2 0 3 {} {pages} {page}", pages.len() + 1);
    let first = objects.find("<<").unwrap();
    let objects = deflated(objects.as_bytes());
    let packed = elsewhere(&format!("/Type /ObjStm /N 2 /First {first}"), &objects, 7);
    let (length, content_length) = (objects.len().to_string(), content.len().to_string());
    let parts: [(u32, &[u8]); 5] = [
        (1, b"<< /Type /Catalog /Pages 2 0 R >>"),
        (4, &elsewhere("", &content, 5)),
        (5, content_length.as_bytes()),
        (6, &packed),
        (7, length.as_bytes()),
    ];
    let mut file = b"%PDF-1.7\n".to_vec();
    for (number, object) in parts {
        file.extend([format!("{number} 0 obj\n").as_bytes(), object, b"\nendobj\n"].concat());
    }
    file.extend(b"trailer\n<< /Root 1 0 R >>\n%%EOF\n");
    assert_eq!(text(file, "objects.pdf"), "Hello");
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
