//! A message of any words: text or an error, in time and without a panic. tests/fuzz has the same for cargo-fuzz.

use crate::words;

const WORDS: &[&str] = &[
    "\r\n",
    "\n",
    "\r\n\r\n",
    " ",
    "\t",
    "From: ",
    "Subject: ",
    "Content-Type: ",
    "Content-Disposition: attachment",
    "Content-Transfer-Encoding: base64\r\n",
    "Content-Transfer-Encoding: quoted-printable\r\n",
    "multipart/mixed",
    "multipart/alternative",
    "text/html",
    "text/plain",
    "message/rfc822",
    "; boundary=b\r\n",
    "; boundary=\"",
    "; charset=utf-16",
    "; filename*0*=utf-8''%",
    "; filename*1=\"a",
    "; name=",
    "--b\r\n",
    "--b--\r\n",
    "--b",
    "=?utf-8?B?",
    "=?utf-8?Q?",
    "?=",
    "=",
    "=C3",
    "w7w=",
    "\"",
    "\\",
    ";",
    "%",
    "'",
    "<p>",
    "words",
];

/// One file.
pub fn run(data: &[u8]) {
    let mut file = b"From: a\r\n".to_vec();
    file.extend(words::spelled(data, WORDS));
    if let Ok(document) = documents::read(file, "a.eml") {
        assert!(document.text.len() <= documents::MAX_TEXT);
    }
}
