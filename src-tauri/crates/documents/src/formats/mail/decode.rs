//! Bytes of messages: how they were packed for their way, and in which letters they are.

use encoding_rs::{Encoding, WINDOWS_1252};

/// The bytes of a body as they were before they were sent. Signs that no packing has are left out or stay.
pub(super) fn unpacked(body: &[u8], encoding: &str) -> Vec<u8> {
    match encoding {
        "base64" => base64(body),
        "quoted-printable" => quoted_printable(body),
        _ => body.to_vec(),
    }
}

/// The bytes of base64, also if it is cut or consists of several pieces.
pub(super) fn base64(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(packed.len() / 4 * 3);
    let (mut gathered, mut bits) = (0_u32, 0_u32);
    for sign in packed {
        let value = match sign {
            b'A'..=b'Z' => sign - b'A',
            b'a'..=b'z' => sign - b'a' + 26,
            b'0'..=b'9' => sign - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            // The end of a piece: bits that fill its last byte are none of the next.
            b'=' => {
                bits = 0;
                continue;
            }
            _ => continue,
        };
        gathered = (gathered << 6) | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((gathered >> bits).to_le_bytes()[0]);
        }
    }
    bytes
}

/// The bytes of a text whose unusual ones are written in hexadecimal digits.
pub(super) fn quoted_printable(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(packed.len());
    let mut rest = packed;
    while let Some((sign, after)) = rest.split_first() {
        rest = after;
        if *sign != b'=' {
            bytes.push(*sign);
        } else if let Some(next) = after.strip_prefix(b"\r\n").or_else(|| after.strip_prefix(b"\n")) {
            rest = next;
        } else if let [first, second, next @ ..] = after {
            match hexadecimal(*first, *second) {
                Some(byte) => {
                    bytes.push(byte);
                    rest = next;
                }
                None => bytes.push(b'='),
            }
        }
    }
    bytes
}

fn hexadecimal(first: u8, second: u8) -> Option<u8> {
    let digit = |sign: u8| char::from(sign).to_digit(16);
    u8::try_from(digit(first)? * 16 + digit(second)?).ok()
}

/// Letters in an encoding that has this name. Plain ASCII and unknown names are mostly UTF-8 if it can be that.
pub(super) fn in_charset(bytes: &[u8], name: Option<&str>) -> String {
    let name = name.map_or("", str::trim);
    let is_plain = name.eq_ignore_ascii_case("us-ascii") || name.eq_ignore_ascii_case("ascii");
    match Encoding::for_label(name.as_bytes()).filter(|_| !is_plain) {
        Some(encoding) => encoding.decode(bytes).0.into_owned(),
        None => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_bytes_are_unpacked_as_far_as_they_go() {
        assert_eq!(base64(b"SGVs\r\nbG8="), b"Hello");
        assert_eq!(base64(b"SGVsbG8"), b"Hello");
        assert_eq!(base64(b"SGVsb"), b"Hel");
        assert_eq!(base64(b"QQ==QQ=="), b"AA");
        assert_eq!(base64(b"*!\0\xff"), b"");
        assert_eq!(quoted_printable(b"a=3D b=\r\nc=E9=\n=zz="), b"a= bc\xe9=zz");
        assert_eq!(in_charset(b"Gr\xfc\xdfe", Some("ISO-8859-1")), "Grüße");
        assert_eq!(in_charset("Grüße".as_bytes(), Some("us-ascii")), "Grüße");
        assert_eq!(in_charset(b"\x93\xfa\x96\x7b", Some("shift_jis")), "日本");
        assert_eq!(in_charset(b"Gr\xfc\xdfe", Some("no-such-thing")), "Grüße");
    }
}
