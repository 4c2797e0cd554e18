//! Writes the documents of the tests.

use std::io::{Cursor, Write};
use std::sync::LazyLock;

use flate2::write::ZlibEncoder;
use flate2::Compression;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// Packed as PDF packs.
pub fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An object with a stream.
pub fn stream(entries: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("<< {entries} /Length {} >>\nstream\n", data.len());
    [head.as_bytes(), data, b"\nendstream"].concat()
}

/// A PDF of these objects, of which the first is the catalogue, with its table of contents.
pub fn pdf_of(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n", index + 1).bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let start = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for place in places {
        file.extend(format!("{place:010} 00000 n \n").bytes());
    }
    file.extend(
        format!(
            "trailer\n<< /Size {} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n",
            objects.len() + 1
        )
        .bytes(),
    );
    file
}

/// A PDF whose pages draw this, with Helvetica as `/F1` and what else `resources` names; `more` are further objects,
/// from number 4 + 2 · pages on.
pub fn pdf(pages: &[&str], resources: &str, more: &[Vec<u8>]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()).into_bytes(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_vec(),
    ];
    for (page, draws) in pages.iter().enumerate() {
        objects.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> {resources} >> /Contents {} 0 R >>",
                5 + 2 * page
            )
            .into_bytes(),
        );
        objects.push(stream("/Filter /FlateDecode", &deflated(draws.as_bytes())));
    }
    objects.extend(more.iter().cloned());
    pdf_of(&objects, "")
}

/// An archive of these files.
pub fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// The same with a part after them that unfolds beyond the limit, under this name.
pub fn bomb(files: &[(&str, &[u8])], name: &str) -> Vec<u8> {
    static PACKED: LazyLock<Vec<u8>> = LazyLock::new(|| archive(&[("bomb", &vec![b' '; 101_000_000])]));
    let mut packed = ZipArchive::new(Cursor::new(PACKED.as_slice())).unwrap();
    let mut writer = ZipWriter::new_append(Cursor::new(archive(files))).unwrap();
    let bomb = packed.by_index_raw(0).unwrap();
    writer.raw_copy_file_rename(bomb, name).unwrap();
    writer.finish().unwrap().into_inner()
}

const NAMESPACE: &str = "xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"";

/// A document of Word with this body.
pub fn docx(body: &str) -> Vec<u8> {
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><w:document {NAMESPACE}><w:body>{body}</w:body></w:document>"
    );
    archive(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("word/document.xml", xml.as_bytes()),
    ])
}

/// The same with footnotes.
pub fn docx_with_notes(body: &str, notes: &str) -> Vec<u8> {
    let xml = format!("<w:document {NAMESPACE}><w:body>{body}</w:body></w:document>");
    let notes = format!("<w:footnotes {NAMESPACE}>{notes}</w:footnotes>");
    archive(&[
        ("word/document.xml", xml.as_bytes()),
        ("word/footnotes.xml", notes.as_bytes()),
    ])
}
