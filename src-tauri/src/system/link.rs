//! Addresses for a browser or a mail program. A model writes them, so another program receives a URL that is rebuilt
//! from its parsed form, never the text itself.

use tauri::Url;

/// The maximum length of an address, in bytes; browsers stop at about as many.
const LONGEST: usize = 8192;

/// The fields that a mail link may fill. Others send copies, or attach files in some programs.
const MAIL_FIELDS: [&str; 2] = ["subject", "body"];

/// The address in the form that all programs parse alike: the host in Punycode, no user name or password.
///
/// # Errors
/// Says why it is not opened.
pub fn understood(text: &str) -> Result<String, &'static str> {
    if text.len() > LONGEST {
        return Err("this address is too long to be opened");
    }
    // URL parsers skip some of these characters, and the programs after them do not.
    let strange = |letter: char| {
        letter.is_control() || letter.is_whitespace() || letter == '\\' || ('\u{202a}'..='\u{202e}').contains(&letter)
    };
    if text.contains(strange) {
        return Err("this address holds characters that no address has");
    }
    let url = Url::parse(text).map_err(|_| "this is no address")?;
    match url.scheme() {
        "http" | "https" => web(url),
        "mailto" => mail(&url),
        _ => Err("only web and mail addresses are opened from a chat"),
    }
}

fn web(url: Url) -> Result<String, &'static str> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err("this address carries a name or a password, which makes its host look like another");
    }
    match url.host_str() {
        Some(host) if !host.is_empty() => Ok(url.into()),
        _ => Err("this address names no host"),
    }
}

fn mail(url: &Url) -> Result<String, &'static str> {
    let to = url.path();
    let plain = |letter: u8| letter.is_ascii_alphanumeric() || b"@.+-_,%'!#$&*=~".contains(&letter);
    // An escaped line break would start another field of the mail.
    let ends_line = ["%0a", "%0d", "%00"]
        .iter()
        .any(|end| to.to_ascii_lowercase().contains(end));
    if !to.contains('@') || ends_line || to.starts_with('-') || !to.bytes().all(plain) {
        return Err("this is no mail address");
    }
    let mut built = Url::parse(&format!("mailto:{to}")).map_err(|_| "this is no mail address")?;
    let fields = url
        .query_pairs()
        .filter(|(name, _)| MAIL_FIELDS.contains(&name.to_ascii_lowercase().as_str()));
    let query: Vec<String> = fields
        .map(|(name, value)| format!("{}={}", name.to_ascii_lowercase(), escaped(&value)))
        .collect();
    built.set_query((!query.is_empty()).then(|| query.join("&")).as_deref());
    Ok(built.into())
}

/// A space is `%20` in mail links; a plus would appear in the mail.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            byte if plain(byte) => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::understood;

    #[test]
    fn addresses_are_rebuilt_of_what_was_understood() {
        let opened = [
            ("https://example.org", "https://example.org/"),
            (
                "HTTPS://EXAMPLE.org:443/a b".trim_end_matches(" b"),
                "https://example.org/a",
            ),
            ("http://localhost:8080/?q=1#x", "http://localhost:8080/?q=1#x"),
            // A Cyrillic letter in the middle becomes visible.
            ("https://ex\u{430}mple.org/", "https://xn--exmple-4nf.org/"),
            ("https://münchen.de/straße", "https://xn--mnchen-3ya.de/stra%C3%9Fe"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("https:example.org", "https://example.org/"),
            (
                "https://example.org/\"><script>",
                "https://example.org/%22%3E%3Cscript%3E",
            ),
            ("mailto:ann@example.org", "mailto:ann@example.org"),
            (
                "MAILTO:ann+list@example.org?Subject=Hello%20you&cc=spy@evil.example&attach=/etc/passwd",
                "mailto:ann+list@example.org?subject=Hello%20you",
            ),
            ("mailto:ann@example.org?body=a%0Ab", "mailto:ann@example.org?body=a%0Ab"),
        ];
        for (text, wanted) in opened {
            assert_eq!(understood(text).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_could_mean_something_else_is_refused() {
        let long = format!("https://example.org/{}", "a".repeat(9000));
        let refused = [
            "",
            "example.org",
            "//example.org",
            "/etc/passwd",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "java\nscript:alert(1)",
            "data:text/html,<script>",
            "vbscript:x",
            "about:blank",
            "tauri://localhost/",
            "ipc://localhost/",
            "smb://host/share",
            "ssh://host",
            "ftp://example.org",
            "tel:+49",
            "ms-settings:",
            "x-apple.systempreferences:",
            "vscode://file/etc/passwd",
            "view-source:https://example.org",
            "blob:https://example.org/1",
            "https://",
            "https:///",
            "https://user@example.org",
            "https://bank.example:pw@evil.example/",
            "https://bank.example%2f@evil.example/",
            "https://exa mple.org",
            "https://example.org/\t",
            "https://example.org/\r\nHost: x",
            "https://example.org\\@evil.example",
            "https://\u{202e}gro.example",
            " https://example.org",
            "https://example.org\0",
            "https://[::1",
            "https://example.org:99999/",
            "-h",
            "--version",
            "https://xn--a/",
            "mailto:",
            "mailto:?cc=a@b.example",
            "mailto:ann",
            "mailto:a@b.example%0d%0aBcc:spy@evil.example",
            "mailto:-attach@b.example",
            "mailto:a@b.example;/etc/passwd",
            "mailto:<a@b.example>",
            long.as_str(),
        ];
        for text in refused {
            let said = understood(text);
            assert!(said.is_err(), "{text:?} became {said:?}");
        }
    }
}
