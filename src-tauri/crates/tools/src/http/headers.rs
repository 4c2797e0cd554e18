//! Headers that a person sets for every request to a server.

use http::{HeaderName, HeaderValue};

/// Headers that belong to the transport.
const OF_THE_TRANSPORT: [&str; 11] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// A header of every request.
#[derive(Clone)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value, which may be secret.
    pub value: String,
}

impl Header {
    /// True for the one that says who asks.
    pub(super) fn is_authorization(&self) -> bool {
        self.name.eq_ignore_ascii_case("authorization")
    }
}

/// Why a header cannot be sent, if it cannot.
pub fn check_header(name: &str, value: &str) -> Option<&'static str> {
    if HeaderName::try_from(name).is_err() {
        return Some("a header has no name, or an impossible one");
    }
    if HeaderValue::try_from(value).is_err() {
        return Some("the value of a header has line breaks or other characters that no header has");
    }
    let belongs = OF_THE_TRANSPORT.iter().any(|own| own.eq_ignore_ascii_case(name));
    belongs.then_some("a header of this name belongs to the connection and cannot be set")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_would_change_the_connection_is_refused() {
        for (name, value) in [("X-API-Key", "a b"), ("Authorization", "Basic YTpi"), ("x", "")] {
            assert_eq!(check_header(name, value), None, "{name}");
        }
        for (name, value) in [
            ("", "a"),
            ("a b", "a"),
            ("a:", "a"),
            ("X-Key", "a\r\nHost: b"),
            ("X-Key", "a\0"),
            ("Host", "b"),
            ("MCP-Session-Id", "1"),
            ("transfer-encoding", "chunked"),
        ] {
            assert!(check_header(name, value).is_some(), "{name}: {value:?}");
        }
    }
}
