//! The evaluation of a response by the hub or its CDN to a request for a range.

use std::ops::Range;

/// A request for a range.
#[derive(Debug, Clone)]
pub struct RangeRequest {
    /// The bytes.
    pub range: Range<u64>,
    /// The size of the file in the file list.
    pub size: u64,
    /// True if a `Range` was sent; else the whole file was requested.
    pub ranged: bool,
    /// The ETag of the bytes on disk.
    pub validator: Option<String>,
}

/// The head of the response.
#[derive(Debug, Clone, Default)]
pub struct ResponseHead {
    /// The status.
    pub status: u16,
    /// `Content-Range`.
    pub content_range: Option<String>,
    /// `Content-Length`.
    pub content_length: Option<u64>,
    /// `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// `ETag`.
    pub etag: Option<String>,
}

/// The verdict about a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeVerdict {
    /// These bytes follow: the requested range, a beginning of it, or the whole file.
    Bytes(Range<u64>),
    /// The bytes on disk cannot be continued: request the whole file.
    Restart(String),
    /// The server has another file than the list.
    Changed(String),
    /// The response contradicts itself; retry.
    Retry(String),
    /// The status has no bytes.
    Refused,
}

/// Evaluates a response by its head.
pub fn evaluate(asked: &RangeRequest, answer: &ResponseHead) -> RangeVerdict {
    if matches!(answer.status, 200 | 206) && answer.content_encoding.as_deref().is_some_and(|how| how != "identity") {
        return retry("the file was sent compressed, which was not asked for");
    }
    match answer.status {
        206 => part(asked, answer),
        200 => match answer.content_length {
            Some(length) if length != asked.size => {
                retry(&format!("{length} bytes were announced instead of {}", asked.size))
            }
            _ if !asked.ranged => RangeVerdict::Bytes(0..asked.size),
            // The bytes on disk belong to an older file, or the server does not support ranges.
            _ if asked.range.start > 0 || asked.validator.is_some() => {
                RangeVerdict::Restart("the server sent the whole file instead of a part".into())
            }
            _ => RangeVerdict::Bytes(0..asked.size),
        },
        416 => match total(answer) {
            Some(size) if size != asked.size => {
                RangeVerdict::Changed(format!("the server's file has {size} bytes instead of {}", asked.size))
            }
            _ => RangeVerdict::Restart("the server says that it does not have the bytes that were asked for".into()),
        },
        _ => RangeVerdict::Refused,
    }
}

fn retry(reason: &str) -> RangeVerdict {
    RangeVerdict::Retry(reason.to_owned())
}

fn part(asked: &RangeRequest, answer: &ResponseHead) -> RangeVerdict {
    let named = answer.content_range.as_deref().and_then(bounds);
    let Some((first, last)) = named.filter(|_| asked.ranged) else {
        return retry("the server sent a part without saying which");
    };
    if let Some(size) = total(answer).filter(|size| *size != asked.size) {
        return RangeVerdict::Changed(format!("the server's file has {size} bytes instead of {}", asked.size));
    }
    if let (Some(then), Some(etag)) = (&asked.validator, &answer.etag) {
        if then != etag {
            return RangeVerdict::Changed("the file on the server is another one than when the download began".into());
        }
    }
    let sent = first..last.saturating_add(1);
    if sent.start != asked.range.start || sent.end > asked.range.end || sent.is_empty() {
        return retry("the server sent another part than the one that was asked for");
    }
    let length = sent.end - sent.start;
    if answer.content_length.is_some_and(|announced| announced != length) {
        return retry("the server announced another length than that of the part");
    }
    RangeVerdict::Bytes(sent)
}

/// First and last byte of `bytes 0-9/10`.
fn bounds(text: &str) -> Option<(u64, u64)> {
    let (range, _) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.trim().split_once('-')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some((first, last))
}

/// The size after the slash of `bytes 0-9/10` or `bytes */10`; `None` if the server does not say.
fn total(answer: &ResponseHead) -> Option<u64> {
    answer.content_range.as_deref()?.rsplit_once('/')?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> RangeRequest {
        RangeRequest {
            range: 10..20,
            size: 100,
            ranged: true,
            validator: Some("\"v1\"".into()),
        }
    }

    fn answer(status: u16, content_range: Option<&str>, length: Option<u64>) -> ResponseHead {
        ResponseHead {
            status,
            content_range: content_range.map(Into::into),
            content_length: length,
            etag: Some("\"v1\"".into()),
            ..ResponseHead::default()
        }
    }

    #[test]
    fn a_part_must_be_the_one_that_was_asked_for() {
        let asked = asked();
        let verdict = |range, length| evaluate(&asked, &answer(206, range, length));
        assert_eq!(verdict(Some("bytes 10-19/100"), Some(10)), RangeVerdict::Bytes(10..20));
        assert_eq!(verdict(Some("bytes 10-14/100"), Some(5)), RangeVerdict::Bytes(10..15));
        assert_eq!(verdict(Some("bytes 10-19/*"), None), RangeVerdict::Bytes(10..20));
        assert!(matches!(verdict(None, Some(10)), RangeVerdict::Retry(_)));
        for wrong in [
            "bytes 9-19/100",
            "bytes 10-20/100",
            "bytes 19-10/100",
            "10-19/100",
            "bytes a-b/c",
            "bytes 10-18446744073709551615/100",
        ] {
            assert!(matches!(verdict(Some(wrong), None), RangeVerdict::Retry(_)), "{wrong}");
        }
        assert!(matches!(
            verdict(Some("bytes 10-19/100"), Some(11)),
            RangeVerdict::Retry(_)
        ));
        assert!(matches!(
            verdict(Some("bytes 10-19/101"), Some(10)),
            RangeVerdict::Changed(_)
        ));
        let other = ResponseHead {
            etag: Some("\"v2\"".into()),
            ..answer(206, Some("bytes 10-19/100"), Some(10))
        };
        assert!(matches!(evaluate(&asked, &other), RangeVerdict::Changed(_)));
    }

    #[test]
    fn a_whole_answer_to_a_part_is_told_apart() {
        let whole = answer(200, None, Some(100));
        assert!(matches!(evaluate(&asked(), &whole), RangeVerdict::Restart(_)));
        let first_part = RangeRequest {
            range: 0..10,
            validator: None,
            ..asked()
        };
        assert_eq!(evaluate(&first_part, &whole), RangeVerdict::Bytes(0..100));
        let from_the_beginning = RangeRequest {
            range: 0..100,
            ranged: false,
            ..asked()
        };
        assert_eq!(evaluate(&from_the_beginning, &whole), RangeVerdict::Bytes(0..100));
        assert!(matches!(
            evaluate(&from_the_beginning, &answer(200, None, Some(99))),
            RangeVerdict::Retry(_)
        ));
        assert!(matches!(
            evaluate(&from_the_beginning, &answer(206, Some("bytes 0-99/100"), None)),
            RangeVerdict::Retry(_)
        ));
        let compressed = ResponseHead {
            content_encoding: Some("gzip".into()),
            ..whole
        };
        assert!(matches!(evaluate(&asked(), &compressed), RangeVerdict::Retry(_)));
    }

    #[test]
    fn what_cannot_be_gone_on_with_starts_over() {
        assert!(matches!(
            evaluate(&asked(), &answer(416, Some("bytes */99"), None)),
            RangeVerdict::Changed(_)
        ));
        assert!(matches!(
            evaluate(&asked(), &answer(416, Some("bytes */100"), None)),
            RangeVerdict::Restart(_)
        ));
        assert_eq!(evaluate(&asked(), &answer(403, None, None)), RangeVerdict::Refused);
        assert_eq!(evaluate(&asked(), &answer(429, None, None)), RangeVerdict::Refused);
    }
}
