//! Messages as programs save them, and files that only claim to be one.

use documents::{read, DocumentKind, Error};

use crate::hostile::{broken, refusal, too_large};

const HEAD: &str = "Received: from a\r\n by b\r\nFrom: =?utf-8?Q?J=C3=BCrgen?= <j@example.org>\r\nTo: a@example.org,\r\n b@example.org\r\n\
    Bcc: secret@example.org\r\nSubject: =?utf-8?B?R3LDvMOfZQ==?=\r\nDate: Tue, 5 Mar 2024 10:00:00 +0100\r\nMIME-Version: 1.0\r\n";
const SHOWN: &str = "From: Jürgen <j@example.org>\nTo: a@example.org, b@example.org\nDate: Tue, 5 Mar 2024 10:00:00 +0100\nSubject: Grüße\n";

fn text(message: impl AsRef<[u8]>) -> String {
    let document = read([HEAD.as_bytes(), message.as_ref()].concat(), "a.eml").unwrap();
    assert_eq!(document.kind, DocumentKind::Mail);
    document.text
}

/// Parts in a multipart of this kind.
fn multipart(kind: &str, boundary: &str, parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("--{boundary}\r\n{part}\r\n")).collect();
    format!("Content-Type: multipart/{kind};\r\n boundary=\"{boundary}\"\r\n\r\npreamble\r\n{parts}--{boundary}--\r\n")
}

#[test]
fn a_message_is_its_headers_its_text_and_the_names_of_what_is_attached() {
    assert_eq!(text("\r\nHello\r\n"), format!("{SHOWN}\nHello\n"));
    let plain = "Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=FC=DFe=\r\n!";
    let html = "Content-Type: text/html\r\n\r\n<p>Hello <b>you</b>";
    let picture = "Content-Type: image/png\r\nContent-ID: <a>\r\n\r\niVBOR";
    let pdf = "Content-Type: application/pdf; name=\"a.pdf\"\r\nContent-Disposition: attachment;\r\n filename*=utf-8''%C3%A4.pdf\r\n\
        Content-Transfer-Encoding: base64\r\n\r\nJVBERi0=";
    let forwarded = "Content-Type: message/rfc822\r\n\r\nSubject: other\r\n\r\nwords";
    let page = multipart("related", "inner", &[html, picture, pdf]);
    let both = multipart("alternative", "b", &[plain, &page]);
    let all = multipart(
        "mixed",
        "a b",
        &[&both, forwarded, "Content-Type: text/plain\r\n\r\nlast"],
    );
    assert_eq!(
        text(&all),
        format!("{SHOWN}\nGrüße!\n\nlast\n\nAttachments:\n- ä.pdf (application/pdf)\n- message/rfc822\n")
    );
    let without = multipart("alternative", "b", &["Content-Type: text/plain\r\n\r\n \r\n", &page]);
    assert_eq!(
        text(&without),
        format!("{SHOWN}\nHello you\n\nAttachments:\n- ä.pdf (application/pdf)\n")
    );
    let packed =
        "Content-Type: text/plain; charset=\"shift_jis\"\r\nContent-Transfer-Encoding: BASE64\r\n\r\nk/qW\r\new==\r\n";
    assert_eq!(text(packed), format!("{SHOWN}\n日本\n"));
    let saved = [HEAD, &page].concat();
    assert_eq!(read(saved.into_bytes(), "page.mhtml").unwrap().kind, DocumentKind::Mail);
}

#[test]
fn a_name_does_not_make_a_message() {
    let document = read(b"Dear all,\nfrom: me\n".to_vec(), "a.eml").unwrap();
    assert_eq!(
        (document.kind, document.text.as_str()),
        (DocumentKind::Text, "Dear all,\nfrom: me\n")
    );
    let document = read([HEAD, "\r\nHello"].concat().into_bytes(), "a.txt").unwrap();
    assert_eq!(document.kind, DocumentKind::Text);
}

#[test]
fn messages_that_are_cut_are_read_as_far_as_they_go() {
    let base64 = "Content-Transfer-Encoding: base64\r\n\r\nSGVsbG8gd29ybGQ";
    assert_eq!(text(&base64[..base64.len() - 4]), format!("{SHOWN}\nHello wo\n"));
    let cut = multipart("mixed", "b", &["\r\nfirst", "\r\nsecond"]);
    let cut = &cut[..cut.find("cond").unwrap()];
    assert_eq!(text(cut), format!("{SHOWN}\nfirst\n\nse\n"));
    assert_eq!(text(""), SHOWN);
    assert_eq!(text("no colon\r\n: none\r\nX"), SHOWN);
    let forged = b"Subject: =?utf-8?Q?a=0AFrom:_the_bank=00?=\r\n\r\nwords";
    let forged = read(forged.to_vec(), "a.eml").unwrap().text;
    assert_eq!(forged, "Subject: a From: the bank\n\nwords\n");
}

#[test]
fn messages_that_nest_or_lie_are_refused() {
    let mail = |body: &str| [HEAD, body].concat().into_bytes();
    let nested = (0..10_000).fold("\r\nend".to_owned(), |inner, level| {
        format!("Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n{inner}")
    });
    broken("nested.eml", mail(&nested));
    // One boundary for all levels.
    let same = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n".repeat(200_000);
    broken("same.eml", mail(&same));
    let many = vec!["\r\na"; 200_000];
    broken("many.eml", mail(&multipart("mixed", "b", &many)));
    broken(
        "endless.eml",
        mail("Content-Type: multipart/mixed\r\n\r\n--\r\n\r\na\r\n"),
    );
    broken(
        "empty.eml",
        mail("Content-Type: multipart/mixed; boundary=\"\"\r\n\r\n--\r\n\r\na\r\n"),
    );
    too_large("long.eml", mail(&format!("\r\n{}", "a".repeat(10_000_001))));
    let grows = [
        HEAD.as_bytes(),
        b"Content-Type: text/plain; charset=koi8-r\r\n\r\n",
        &vec![0xf0; 6_000_000],
    ]
    .concat();
    too_large("grows.eml", grows);
    for kind in [
        "multipart/encrypted; boundary=b",
        "application/pkcs7-mime; smime-type=enveloped-data",
    ] {
        let locked = refusal("locked.eml", mail(&format!("Content-Type: {kind}\r\n\r\nMIAGCSqGSIb3")));
        assert_eq!(locked, Error::Protected("email".into()));
    }
    let zeros = refusal("zeros.eml", mail("\r\na\0b"));
    assert!(matches!(zeros, Error::UnknownKind { .. }), "{zeros}");
    let late = mail(&format!("\r\n{}\0b", "a".repeat(100_000)));
    assert!(read(late, "late.eml").unwrap().text.ends_with("ab\n"));
    let headers = format!("{}\r\nend", "X-A: =?utf-8?B?\r\n\t=?=?;;\"\r\n".repeat(300_000));
    assert!(text(headers).ends_with("end\n"));
    let subject = format!("Subject: {}\r\n\r\nend", "=?a?B?".repeat(1_000_000));
    let subject = read(subject.into_bytes(), "subject.eml").unwrap().text;
    assert!(subject.len() < 30_000);
    let parameters = format!(
        "Content-Type: text/plain{}\r\n\r\nend",
        "; charset*0*=%".repeat(1_000_000)
    );
    assert!(text(parameters).ends_with("end\n"));
}
