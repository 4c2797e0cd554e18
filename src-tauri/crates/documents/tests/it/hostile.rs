//! Files that are broken, or built to do harm: each is a clear error, soon, and nothing else happens.

use documents::{read, Error, MAX_BYTES};

use crate::make::{archive, deflated, docx, pdf, pdf_of, stream};

/// The error message for a file. None contains words of a library or of the file.
pub fn refusal(name: &str, bytes: Vec<u8>) -> Error {
    match read(bytes, name) {
        Ok(document) => panic!(
            "{name} was read: {:?}",
            document.text.chars().take(80).collect::<String>()
        ),
        Err(error) => {
            let said = error.to_string();
            assert!(said.len() < 160 && said.contains(';'), "{name}: {said} says what to do");
            error
        }
    }
}

fn unknown(name: &str, bytes: &[u8]) {
    let error = refusal(name, bytes.to_vec());
    assert!(matches!(error, Error::UnknownKind { .. }), "{name}: {error}");
}

pub fn broken(name: &str, bytes: Vec<u8>) {
    let error = refusal(name, bytes);
    assert!(matches!(error, Error::Broken { .. }), "{name}: {error}");
}

pub fn too_large(name: &str, bytes: Vec<u8>) {
    let error = refusal(name, bytes);
    assert!(matches!(error, Error::TooLarge(_)), "{name}: {error}");
}

#[test]
fn what_is_no_document_is_told_by_its_kind() {
    unknown("empty.txt", b"");
    unknown("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0\0\0");
    let locked: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let locked = [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice(), &locked].concat();
    assert_eq!(refusal("locked.xlsx", locked), Error::Protected("Office".into()));
    unknown("letter.rtf", b"{\\rtf1 Hello}");
    unknown("image.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    unknown("program.txt", b"\x7fELF\x02\x01\x01\0\0\0\0\0");
    unknown("packed.txt", b"\x1f\x8b\x08\0\0\0\0\0\0\x03");
    unknown("noise.md", &[7, 1, 2, 3, 4, 5, 6, 14, 15, 16, 17, 200, 201]);
    unknown("zeros.csv", &[0; 4096]);
    unknown(
        "files.docx",
        &archive(&[("../../etc/passwd", b"x"), ("word/media/a.png", b"x")]),
    );
}

#[test]
fn texts_that_break_their_word_or_have_none() {
    broken("utf16.txt", b"\xff\xfe\x00\xd8\x00\xd8".to_vec());
    broken("late.txt", [vec![b'a'; 70_000], b"\xff\0\0".to_vec()].concat());
    assert!(matches!(refusal("blank.md", b" \n\t\n".to_vec()), Error::NoText { .. }));
    assert!(matches!(
        refusal("blank.html", b"<html><script>alert(1)</script>".to_vec()),
        Error::NoText { .. }
    ));
    too_large("long.txt", vec![b'a'; 10_000_001]);
    too_large("longer.txt", vec![b'a'; MAX_BYTES + 1]);
}

#[test]
fn pages_of_the_web_cost_no_more_than_their_length() {
    let deep = format!("{}end{}", "<div><b><ul><li>".repeat(200_000), "</li>".repeat(1000));
    assert!(read(deep.into_bytes(), "deep.html").unwrap().text.ends_with("end"));
    assert!(read(
        format!("a{}", "&amp;&lt;&#x202e;<".repeat(100_000)).into_bytes(),
        "entities.html"
    )
    .is_ok());
    let unclosed = format!("words{}", "<a href='".repeat(50_000));
    assert_eq!(read(unclosed.into_bytes(), "unclosed.html").unwrap().text, "words");
}

#[test]
fn word_documents_that_unfold_or_lie() {
    let zeros = vec![b' '; 101_000_000];
    too_large("bomb.docx", archive(&[("word/document.xml", &zeros)]));
    let entities: String = (1..10)
        .map(|level| format!("<!ENTITY a{level} \"{}\">", format!("&a{};", level - 1).repeat(10)))
        .collect();
    let laughs = format!("<?xml version=\"1.0\"?><!DOCTYPE w [<!ENTITY a0 \"lol\">{entities}]><w:document><w:body><w:p><w:t>&a9;</w:t></w:p></w:body></w:document>");
    broken("laughs.docx", archive(&[("word/document.xml", laughs.as_bytes())]));
    broken("entity.docx", docx("<w:p><w:r><w:t>&secret;</w:t></w:r></w:p>"));
    broken(
        "cut.docx",
        docx("<w:p><w:r><w:t>words</w:t></w:r></w:p>")[..120].to_vec(),
    );
    broken("crossed.docx", docx("<w:p><w:r></w:p></w:r>"));
    broken("archive.docx", b"PK\x03\x04 and then nothing of the kind".to_vec());
    let mut torn = docx(&format!("<w:p><w:r><w:t>{}</w:t></w:r></w:p>", "words ".repeat(5000)));
    let middle = torn.len() / 2;
    torn[middle..middle + 40].fill(0xff);
    broken("torn.docx", torn);
    let many: Vec<String> = (0..10_001).map(|number| format!("word/{number}")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b""[..])).collect();
    broken("many.docx", archive(&many));
    let deep = format!(
        "{}<w:t>end</w:t>{}",
        "<w:tbl><w:tr><w:tc><w:p>".repeat(50_000),
        "</w:p></w:tc></w:tr></w:tbl>".repeat(50_000)
    );
    assert!(read(docx(&deep), "deep.docx").unwrap().text.contains("end"));
}

#[test]
fn pdfs_that_are_cut_protected_or_empty() {
    broken("head.pdf", b"%PDF-1.7\n".to_vec());
    broken("noise.pdf", [b"%PDF-1.4\n".to_vec(), vec![0x5a; 10_000]].concat());
    broken(
        "none.pdf",
        pdf_of(
            &[
                b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
                b"<< /Type /Pages /Kids [] /Count 0 >>".to_vec(),
            ],
            "",
        ),
    );
    let page = "BT /F1 12 Tf 72 770 Td (Hello) Tj ET";
    let whole = pdf(&[page], "", &[]);
    let locked = String::from_utf8_lossy(&whole).contains("trailer");
    assert!(locked);
    for name in ["/Encrypt 9 0 R", "/#45ncr#79pt 9 0 R"] {
        let file = pdf_of(
            &[
                b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
                b"<< /Type /Pages /Kids [] /Count 0 >>".to_vec(),
            ],
            name,
        );
        assert!(matches!(refusal("locked.pdf", file), Error::Protected(kind) if kind == "PDF"));
    }
}

/// A PDF of one page whose content has these entries and data; object 5 is a filter and object 6 a length.
fn page_of(entries: &str, data: &[u8], length: usize) -> Vec<u8> {
    let content = [format!("<< {entries} >>\nstream\n").as_bytes(), data, b"\nendstream"].concat();
    pdf_of(
        &[
            b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
            b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>".to_vec(),
            content,
            b"/FlateDecode".to_vec(),
            length.to_string().into_bytes(),
        ],
        "",
    )
}

/// The same with the length of its data.
fn page(entries: &str, data: &[u8]) -> Vec<u8> {
    page_of(&format!("{entries} /Length {}", data.len()), data, 0)
}

/// A stored block of deflate.
fn stored(data: &[u8]) -> Vec<u8> {
    let length = data.len() as u16;
    [&[0][..], &length.to_le_bytes(), &(!length).to_le_bytes(), data].concat()
}

#[test]
fn pdfs_that_unfold_without_end() {
    let bomb = deflated(&vec![b' '; 300_000_000]);
    too_large("bomb.pdf", page("/Filter /FlateDecode", &bomb));
    too_large("spelled.pdf", page("/Filter /Fl#61teDecode", &bomb));
    broken(
        "twice.pdf",
        page("/Filter [/FlateDecode /FlateDecode]", &deflated(&bomb)),
    );
    broken("elsewhere.pdf", page("/Filter 5 0 R", &bomb));
    // After the first fault the reader goes on where a strict one stops.
    let faulty = [&[0x78, 0x9c, 0x07][..], &vec![0x55; 400_000]].concat();
    too_large("faulty.pdf", page("/Filter /FlateDecode", &faulty));
}

#[test]
fn pdfs_that_hide_what_they_unfold_to() {
    let bomb = deflated(&vec![b' '; 400_000_000]);
    // The end of the data stands where they only say so.
    let hidden = [&bomb[..2], &stored(b" endstream endobj "), &bomb[2..]].concat();
    too_large("end.pdf", page("/Filter /FlateDecode", &hidden));
    too_large(
        "end elsewhere.pdf",
        page_of("/Filter /FlateDecode /Length 6 0 R", &hidden, hidden.len()),
    );
    // The filter stands far before the data.
    let padding = format!("/Filter /FlateDecode /Padding ({})", "x".repeat(17 * 1024));
    too_large("padded.pdf", page(&padding, &bomb));
    for end in ["\n", "%\n"] {
        too_large("short name.pdf", page(&format!("/Filter /Fl{end}"), &bomb));
    }
    for entries in ["/Filter %c\n5 0 R", "/F 5 0 R", "/Filter [%c\n5 0 R]", "/F [5 0 R]"] {
        broken("filter elsewhere.pdf", page(entries, &bomb));
    }
    too_large("short key.pdf", page("/F /Fl", &bomb));
    too_large("as text.pdf", {
        let digits: String = bomb.iter().map(|byte| format!("{byte:02x}")).collect();
        page("/Filter [/AHx /Fl]", format!("{digits}>").as_bytes())
    });
    // One reading of the data, with the header, is short and its checksum wrong; the other takes the header for data.
    let content = [&[1, 1][..], &[b' '; 255], &bomb[2..]].concat();
    let two = [&[0x78, 1, 1, 0xfe, 0xfe][..], &content, &vec![0; 70_000]].concat();
    too_large("two readings.pdf", page("/Filter /FlateDecode", &two));
    // A bomb within packed objects.
    let inner = [
        format!("7 0 << /Filter /FlateDecode /Length {} >>\nstream\n", bomb.len()).as_bytes(),
        &bomb,
        b"\nendstream",
    ]
    .concat();
    let objects = deflated(&inner);
    broken(
        "objects.pdf",
        page("/Type /ObjStm /N 1 /First 4 /Filter /FlateDecode", &objects),
    );
    let entries = "/Type /ObjStm /N 1 /First 4 /Filter /FlateDecode /Length 6 0 R";
    broken("objects elsewhere.pdf", page_of(entries, &objects, objects.len()));
    // Codes of another length are counted wrongly.
    broken(
        "late.pdf",
        page(
            "/Filter /LZWDecode /DecodeParms << /EarlyChange 0 >>",
            b"\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01",
        ),
    );
}

#[test]
fn pdfs_that_draw_without_end() {
    // Each form draws the next ten times: 10^8 drawings.
    let more: Vec<Vec<u8>> = (0..8)
        .map(|level| {
            let next = if level < 7 {
                format!("/XObject << /N {} 0 R >>", 7 + level)
            } else {
                String::new()
            };
            let entries = format!(
                "/Type /XObject /Subtype /Form /BBox [0 0 10 10] /Resources << /Font << /F1 3 0 R >> {next} >>"
            );
            let draws = if level < 7 {
                "/N Do ".repeat(10)
            } else {
                "BT /F1 9 Tf (ha) Tj ET".to_owned()
            };
            stream(&entries, draws.as_bytes())
        })
        .collect();
    // It ends by its steps or its time, which takes seconds without optimization.
    if std::env::var_os("PONDER_FULL").is_some() {
        broken("forms.pdf", pdf(&["/N Do"], "/XObject << /N 6 0 R >>", &more));
    }
    // A form that draws itself, and objects within objects.
    let itself = stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 10 10] /Resources << /XObject << /N 6 0 R >> >>",
        b"/N Do /N Do",
    );
    let text = "BT /F1 12 Tf 72 770 Td (Hello) Tj ET /N Do";
    assert_eq!(
        read(pdf(&[text], "/XObject << /N 6 0 R >>", &[itself]), "itself.pdf")
            .unwrap()
            .text,
        "Hello"
    );
    let nested = format!("{}BT /F1 12 Tf 72 770 Td (Hello) Tj ET", "[".repeat(100_000));
    let _ = read(pdf(&[&nested], "", &[]), "nested.pdf").map_err(|error| assert!(error.to_string().len() < 160));
}

#[test]
fn a_pdf_that_is_changed_anywhere_is_text_or_an_error() {
    let whole = pdf(
        &[
            "BT /F1 12 Tf 72 770 Td (Hello) Tj ET",
            "BT /F1 12 Tf 72 770 Td (there) Tj ET",
        ],
        "",
        &[],
    );
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize
    };
    for _ in 0..150 {
        let mut file = whole.clone();
        for _ in 0..1 + next() % 4 {
            let at = next() % file.len();
            match next() % 3 {
                0 => file[at] = (next() & 0xff) as u8,
                1 => drop(file.drain(at..(at + next() % 40).min(file.len()))),
                _ => file.truncate(at.max(9)),
            }
        }
        if let Err(error) = read(file, "changed.pdf") {
            assert!(error.to_string().contains(';'), "{error}");
        }
    }
}
