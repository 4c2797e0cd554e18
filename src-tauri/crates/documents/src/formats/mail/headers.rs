//! The lines before a message or a part of it.

use percent_encoding::percent_decode_str;

use super::decode::{base64, in_charset, quoted_printable};

/// The headers that are shown, in this order.
const SHOWN: [&str; 5] = ["From", "To", "Cc", "Date", "Subject"];

/// Those that say how to read a part.
const READ: [&str; 3] = ["Content-Type", "Content-Disposition", "Content-Transfer-Encoding"];

/// The longest value that is looked at, in bytes; the rest of it is left out.
const LONGEST_VALUE: usize = 20_000;

/// The longest kind of a part, in characters.
const LONGEST_KIND: usize = 100;

/// The most parameters of a value, and the most pieces of one of them.
const MAX_PARAMETERS: usize = 100;

/// How far into a file its first header may stand, and names that begin messages.
const BEGINNING: usize = 16_000;
const FIRST: [&str; 8] = [
    "from",
    "to",
    "date",
    "subject",
    "received",
    "return-path",
    "message-id",
    "mime-version",
];

/// The headers of a message or a part: of each name the first.
pub(super) struct Headers<'a> {
    shown: [Option<&'a [u8]>; SHOWN.len()],
    read: [Option<&'a [u8]>; READ.len()],
}

impl<'a> Headers<'a> {
    /// The headers at the beginning of these bytes, and what follows them.
    pub fn split(bytes: &'a [u8]) -> (Self, &'a [u8]) {
        let mut headers = Self {
            shown: [None; SHOWN.len()],
            read: [None; READ.len()],
        };
        let mut rest = without_mark(bytes);
        while !rest.is_empty() {
            let (line, after) = unfolded(rest);
            rest = after;
            if line.trim_ascii().is_empty() {
                break;
            }
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                continue;
            };
            let (name, value) = (line[..colon].trim_ascii(), &line[colon + 1..]);
            let value = &value[..value.len().min(LONGEST_VALUE)];
            let is_name = |known: &&str| known.as_bytes().eq_ignore_ascii_case(name);
            if let Some(at) = SHOWN.iter().position(&is_name) {
                headers.shown[at].get_or_insert(value);
            } else if let Some(at) = READ.iter().position(is_name) {
                headers.read[at].get_or_insert(value);
            }
        }
        (headers, rest)
    }

    /// The headers that people read, each in a line.
    pub fn shown(&self) -> String {
        let all = SHOWN.iter().zip(self.shown);
        let lines = all.filter_map(|(name, value)| {
            let value = words(&in_charset(value?, None));
            (!value.is_empty()).then(|| format!("{name}: {value}\n"))
        });
        lines.collect()
    }

    /// The kind of the part; text if it does not say.
    pub fn content_type(&self) -> Value {
        let value = self.value(0);
        match value.first().contains('/') {
            true => value,
            false => Value::read("text/plain"),
        }
    }

    /// The way in which the part is shown.
    pub fn disposition(&self) -> Value {
        self.value(1)
    }

    /// The way in which its bytes were packed, in lower case.
    pub fn encoding(&self) -> String {
        self.value(2).first
    }

    fn value(&self, at: usize) -> Value {
        Value::read(&self.read[at].map_or_else(String::new, |value| in_charset(value, None)))
    }
}

/// A value with parameters.
pub(super) struct Value {
    first: String,
    parameters: Vec<(String, String)>,
}

impl Value {
    fn read(value: &str) -> Self {
        let mut pieces = pieces(value).into_iter();
        let first = pieces.next().unwrap_or_default().to_ascii_lowercase();
        let first = first
            .split_whitespace()
            .flat_map(str::chars)
            .take(LONGEST_KIND)
            .collect();
        let parameters = pieces.take(MAX_PARAMETERS).filter_map(|piece| {
            let (name, value) = piece.split_once('=')?;
            Some((name.trim().to_ascii_lowercase(), unquoted(value.trim())))
        });
        let parameters = parameters.collect();
        Self { first, parameters }
    }

    /// All of it before its parameters, in lower case.
    pub fn first(&self) -> &str {
        &self.first
    }

    /// A parameter, in whichever of its spellings: plain, in words of an encoding, with its encoding, or in pieces.
    pub fn parameter(&self, name: &str) -> Option<String> {
        if let Some(plain) = self.spelled(name) {
            return Some(words(plain));
        }
        if let Some(encoded) = self.spelled(&format!("{name}*")) {
            return Some(words(&with_charset(encoded)));
        }
        let mut whole = String::new();
        let mut is_encoded = false;
        for at in 0..MAX_PARAMETERS {
            if let Some(piece) = self.spelled(&format!("{name}*{at}*")) {
                is_encoded = true;
                whole.push_str(piece);
            } else if let Some(piece) = self.spelled(&format!("{name}*{at}")) {
                whole.push_str(&if is_encoded {
                    piece.replace('%', "%25")
                } else {
                    piece.to_owned()
                });
            } else {
                break;
            }
        }
        let whole = if is_encoded { with_charset(&whole) } else { whole };
        (!whole.is_empty()).then(|| words(&whole))
    }

    /// A parameter in its plain spelling, as it stands.
    pub fn spelled(&self, name: &str) -> Option<&str> {
        let mut all = self.parameters.iter();
        all.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// True if these bytes begin with the headers of a message.
pub(crate) fn begins_as_message(bytes: &[u8]) -> bool {
    let mut rest = without_mark(&bytes[..bytes.len().min(BEGINNING)]);
    while !rest.is_empty() {
        let (line, after) = unfolded(rest);
        rest = after;
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let is_name = !name.is_empty() && name.len() < line.len() && name.iter().all(u8::is_ascii_graphic);
        if !is_name {
            return false;
        }
        if FIRST.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name)) {
            return true;
        }
    }
    false
}

/// The bytes behind a byte order mark, and behind the line with which mailboxes begin each message.
fn without_mark(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match bytes.starts_with(b"From ") {
        true => unfolded(bytes).1,
        false => bytes,
    }
}

/// The first line with those that continue it, and the rest.
fn unfolded(bytes: &[u8]) -> (&[u8], &[u8]) {
    let ends = memchr::memchr_iter(b'\n', bytes);
    for end in ends {
        let is_empty = bytes[..end].trim_ascii().is_empty();
        if is_empty || !matches!(bytes.get(end + 1), Some(b' ' | b'\t')) {
            return (&bytes[..end], &bytes[end + 1..]);
        }
    }
    (bytes, &[])
}

/// The pieces between semicolons that are not quoted.
fn pieces(value: &str) -> Vec<&str> {
    let mut quoted = false;
    let mut escaped = false;
    let separates = |sign: char| {
        let is_escaped = std::mem::take(&mut escaped);
        match sign {
            '\\' if quoted && !is_escaped => escaped = true,
            '"' if !is_escaped => quoted = !quoted,
            ';' if !quoted => return true,
            _ => {}
        }
        false
    };
    value.splitn(MAX_PARAMETERS, separates).collect()
}

fn unquoted(value: &str) -> String {
    let Some(quoted) = value.strip_prefix('"') else {
        return value.to_owned();
    };
    let mut letters = String::new();
    let mut signs = quoted.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '"' => break,
            '\\' => letters.extend(signs.next()),
            sign => letters.push(sign),
        }
    }
    letters
}

/// Letters of a value that says its encoding and its language before itself.
fn with_charset(value: &str) -> String {
    let mut parts = value.splitn(3, '\'');
    let (charset, _, said) = (parts.next(), parts.next(), parts.next());
    let bytes: Vec<u8> = percent_decode_str(said.unwrap_or(value)).collect();
    in_charset(&bytes, charset.filter(|_| said.is_some()))
}

/// A value in one line, with the words that name an encoding of their own: `=?utf-8?B?…?=`.
fn words(value: &str) -> String {
    let mut out = String::new();
    // Bytes of words that follow each other, as letters may be cut between them.
    let mut gathered: Option<(String, Vec<u8>)> = None;
    let mut rest = value;
    while !rest.is_empty() {
        if let Some((charset, bytes, after)) = encoded_word(rest) {
            match &mut gathered {
                Some((known, all)) if known.eq_ignore_ascii_case(charset) => all.extend(bytes),
                _ => {
                    flush(&mut out, gathered.take());
                    gathered = Some((charset.to_owned(), bytes));
                }
            }
            rest = after;
            // Spaces between such words are none.
            let next = rest.trim_start();
            if encoded_word(next).is_some() {
                rest = next;
            }
            continue;
        }
        flush(&mut out, gathered.take());
        let next = rest.char_indices().skip(1).find(|(_, letter)| *letter == '=');
        let (plain, after) = rest.split_at(next.map_or(rest.len(), |(at, _)| at));
        out.push_str(plain);
        rest = after;
    }
    flush(&mut out, gathered);
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let out: String = out.chars().map(plain).collect();
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn flush(out: &mut String, gathered: Option<(String, Vec<u8>)>) {
    if let Some((charset, bytes)) = gathered {
        out.push_str(&in_charset(&bytes, Some(&charset)));
    }
}

/// The encoding and the bytes of a word at the beginning, and the rest.
fn encoded_word(value: &str) -> Option<(&str, Vec<u8>, &str)> {
    let (charset, rest) = value.strip_prefix("=?")?.split_once('?')?;
    let (packing, rest) = rest.split_once('?')?;
    let (packed, rest) = rest.split_once("?=")?;
    // A language may follow the encoding.
    let charset = charset.split('*').next().unwrap_or(charset);
    let bytes = match packing {
        "B" | "b" => base64(packed.as_bytes()),
        "Q" | "q" => quoted_printable(packed.replace('_', " ").as_bytes()),
        _ => return None,
    };
    Some((charset, bytes, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_their_own_encoding() {
        for (spelled, said) in [
            ("plain =? words", "plain =? words"),
            ("=?utf-8?B?R3LDvMOfZQ==?=", "Grüße"),
            ("=?iso-8859-1?Q?Gr=FC=DFe_an?= alle", "Grüße an alle"),
            ("=?UTF-8?Q?a?=\r\n =?utf-8*de?Q?b?= c", "ab c"),
            ("=?utf-8?Q?=E2=82?= =?utf-8?Q?=AC?=", "€"),
            ("=?utf-8?Q?a=0AFrom:_b?=", "a From: b"),
            ("=?utf-8?X?a?=", "=?utf-8?X?a?="),
            ("=?=?=?=?", "=?=?=?=?"),
        ] {
            assert_eq!(words(spelled), said, "{spelled}");
        }
    }

    #[test]
    fn parameters_have_four_spellings() {
        let value = |value: &str| Value::read(value).parameter("filename");
        for (spelled, said) in [
            ("attachment; filename=a.txt", Some("a.txt")),
            ("attachment; FileName=\"a;\\\"b\\\".txt\"; size=1", Some("a;\"b\".txt")),
            ("attachment; filename=\"=?utf-8?Q?=C3=A4?=.txt\"", Some("ä.txt")),
            ("attachment; filename*=iso-8859-1'de'%E4.txt", Some("ä.txt")),
            ("attachment; filename*0=\"a\"; filename*1=\"b.txt\"", Some("ab.txt")),
            (
                "attachment; filename*0*=utf-8''%C3; filename*1*=%A4; filename*2=\"%.txt\"",
                Some("ä%.txt"),
            ),
            ("attachment", None),
            ("attachment; filename*=", Some("")),
        ] {
            assert_eq!(value(spelled).as_deref(), said, "{spelled}");
        }
    }

    #[test]
    fn messages_are_told_by_their_first_headers() {
        for (bytes, is_message) in [
            (&b"Received: by a\r\n b\r\n"[..], true),
            (b"From a@b Mon\nX-A: b\nSubject: c\n", true),
            (b"Dear all,\nDate: now\n", false),
            (b"key: value\n\nfrom: a\n", false),
            (b"", false),
        ] {
            assert_eq!(begins_as_message(bytes), is_message);
        }
    }
}
