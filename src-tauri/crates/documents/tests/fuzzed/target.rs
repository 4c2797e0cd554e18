//! A PDF of any bytes: text or an error, and an image of its first page or an error, in time and without a panic.
//! tests/fuzz has the same for cargo-fuzz.

use crate::words;

const WORDS: &[&str] = &[
    "1 0 obj\n",
    "4 0 obj\n",
    "endobj\n",
    "<< ",
    " >>",
    "stream\n",
    "\nendstream\n",
    "/Length ",
    "/Filter ",
    "/FlateDecode ",
    "/Fl\n",
    "/LZWDecode ",
    "/ASCII85Decode ",
    "/ASCIIHexDecode ",
    "/RunLengthDecode ",
    "/F ",
    "/DecodeParms ",
    "/Predictor ",
    "/Columns ",
    "[",
    "]",
    "(",
    ")",
    "<41>",
    "%c\n",
    "1 0 R ",
    "4 0 R ",
    "5 0 R ",
    "/Type ",
    "/Catalog ",
    "/Pages ",
    "/Kids ",
    "/Page ",
    "/Contents ",
    "/Parent ",
    "/Count ",
    "/Resources ",
    "/Font ",
    "/ObjStm ",
    "/XRef ",
    "/W ",
    "/Index ",
    "/N ",
    "/First ",
    "trailer ",
    "/Root ",
    "/Prev ",
    "xref\n",
    "startxref\n",
    "%%EOF\n",
    "0 ",
    "1 ",
    "9 ",
    "99 ",
    "2147483647 ",
    "-1 ",
    "4294967296 ",
    "BT ",
    "ET ",
    "(a) Tj ",
    "/F1 12 Tf ",
    "q ",
    "/X Do ",
    "x\u{9c}",
    "\n",
    " ",
];

/// One file.
pub fn run(data: &[u8]) {
    let mut file = b"%PDF-1.7\n".to_vec();
    file.extend(words::spelled(data, WORDS));
    if let Ok(document) = documents::read(file.clone(), "a.pdf") {
        assert!(document.text.len() <= documents::MAX_TEXT);
    }
    let wanted = documents::PageRequest {
        page: 1,
        width: 50,
        passage: "a".into(),
    };
    if let Ok(page) = documents::page_image(file, wanted) {
        assert!(page.width <= 50 && page.png.starts_with(b"\x89PNG"));
    }
}
