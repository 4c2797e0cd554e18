//! Links that begin with `ponder:`. Anyone can put one into a page or a mail, so a link only ever shows something: it
//! sends, opens outside, changes or deletes nothing. README.md lists the verbs.

use tauri::Url;

/// The maximum length of a link, in bytes.
const LONGEST_LINK: usize = 64 * 1024;

/// The maximum length of a link's text, in characters.
const LONGEST_TEXT: usize = 16 * 1024;

/// The request of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeepLink {
    /// A new chat, with this draft.
    NewChat(String),
    /// A chat of this computer, by its id.
    Chat(String),
    /// The Models window.
    Models,
    /// The Settings window.
    Settings,
}

/// True if a text is such a link.
pub fn is_link(text: &str) -> bool {
    after_scheme(text).is_some()
}

/// Parses a link in either form: `ponder:new?text=Hello` or `ponder://new?text=Hello`.
///
/// # Errors
/// The reason of the refusal.
pub fn read(link: &str) -> Result<DeepLink, &'static str> {
    if link.len() > LONGEST_LINK {
        return Err("this link is too long to be followed");
    }
    let rest = after_scheme(link).ok_or("this is no link of Ponder")?;
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (path, query) = rest
        .split_once('?')
        .map_or((rest, None), |(path, query)| (path, Some(query)));
    let path = path.strip_suffix('/').unwrap_or(path);
    let fields = fields(query.unwrap_or_default())?;
    let wish = match path.split_once('/').unwrap_or((path, "")) {
        ("new", "") => return Ok(DeepLink::NewChat(only_text(fields)?)),
        ("chat", id) if is_id(id) => DeepLink::Chat(id.to_owned()),
        ("models", "") => DeepLink::Models,
        ("settings", "") => DeepLink::Settings,
        _ => return Err("this link asks for something that Ponder does not do"),
    };
    match fields.is_empty() {
        true => Ok(wish),
        false => Err("this link asks for something that Ponder does not do"),
    }
}

fn after_scheme(text: &str) -> Option<&str> {
    const SCHEME: &str = "ponder:";
    let scheme = text.get(..SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| &text[SCHEME.len()..])
}

fn fields(query: &str) -> Result<Vec<(String, String)>, &'static str> {
    if query.is_empty() {
        return Ok(Vec::new());
    }
    let url = Url::parse(&format!("ponder:?{query}")).map_err(|_| "this link cannot be read")?;
    if url.fragment().is_some() {
        return Err("this link cannot be read");
    }
    Ok(url
        .query_pairs()
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect())
}

/// The text of a link without other fields.
fn only_text(fields: Vec<(String, String)>) -> Result<String, &'static str> {
    let mut fields = fields.into_iter();
    let text = match (fields.next(), fields.next()) {
        (None, _) => return Ok(String::new()),
        (Some((name, text)), None) if name == "text" => text,
        _ => return Err("this link asks for something that Ponder does not do"),
    };
    // Invalid UTF-8 after unescaping.
    if text.contains('\u{fffd}') {
        return Err("the words of this link cannot be read");
    }
    let text: String = text
        .replace("\r\n", "\n")
        .chars()
        .filter(|letter| is_seen(*letter))
        .collect();
    if text.chars().count() > LONGEST_TEXT {
        return Err("the words of this link are too long for a question");
    }
    Ok(text.trim().to_owned())
}

/// True if the character is visible in its place. Others could hide text in a question, or show it in another order
/// than the model reads it.
fn is_seen(letter: char) -> bool {
    match letter {
        '\n' | '\t' => true,
        '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => false,
        '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => false,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => false,
        letter => !letter.is_control(),
    }
}

/// Chat ids are UUIDs.
fn is_id(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.concat().bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01990000-0000-7000-8000-0123456789ab";

    #[test]
    fn the_verbs_are_read_in_both_forms() {
        let new = |text: &str| DeepLink::NewChat(text.into());
        let links = [
            ("ponder:new".to_owned(), new("")),
            ("PONDER:new".to_owned(), new("")),
            ("ponder://new".to_owned(), new("")),
            ("ponder://new/".to_owned(), new("")),
            ("ponder:new?text=".to_owned(), new("")),
            ("ponder:new?text=Hello%20there".to_owned(), new("Hello there")),
            ("ponder://new/?text=a+b%0D%0A%C3%A4".to_owned(), new("a b\nä")),
            ("ponder:new?text=1%262%3D3%23".to_owned(), new("1&2=3#")),
            (format!("ponder:chat/{ID}"), DeepLink::Chat(ID.into())),
            (format!("ponder://chat/{ID}/"), DeepLink::Chat(ID.into())),
            ("ponder:models".to_owned(), DeepLink::Models),
            ("ponder://settings".to_owned(), DeepLink::Settings),
        ];
        for (link, wish) in links {
            assert_eq!(read(&link), Ok(wish), "{link}");
        }
    }

    #[test]
    fn what_is_hostile_or_unknown_does_nothing() {
        let long = format!("ponder:new?text={}", "a".repeat(LONGEST_LINK));
        let many_words = format!("ponder:new?text={}", "a+".repeat(LONGEST_TEXT));
        let links = [
            "",
            "ponder",
            "ponder:",
            "ponder://",
            "ponder:../../",
            "ponder:../../etc/passwd",
            "ponder://../new",
            "ponder:/new",
            "ponder:///new",
            "ponder://user@new?text=a",
            "ponder://new:80?text=a",
            "ponder:new/../quit",
            "ponder:quit",
            "ponder:send?text=a",
            "ponder:NEW",
            "ponder:%6eew",
            "ponder:new?text=a&send=1",
            "ponder:new?text=a&text=b",
            "ponder:new?model=x",
            "ponder:new?Text=a",
            "ponder:new?text=%ff%fe",
            "ponder:new?text=a#x",
            "ponder:new#x",
            "ponder:chat/",
            "ponder:chat/..",
            "ponder:chat/../../history.sqlite",
            "ponder:chat/01990000-0000-7000-8000-0123456789ab/x",
            "ponder:chat/01990000-0000-7000-8000-0123456789ag",
            "ponder:chat/0199000000007000800001234567-89ab",
            "ponder:models?search=x",
            "ponder:settings/offline",
            "ponder:import?file=/etc/passwd",
            "javascript:alert(1)",
            "ponderx:new",
            " ponder:new",
            "pönder:new",
            "ponder\u{0}:new",
            long.as_str(),
            many_words.as_str(),
        ];
        for link in links {
            let said = read(link);
            assert!(said.is_err(), "{link:.80} became {said:?}");
        }
    }

    #[test]
    fn words_that_nobody_sees_are_no_words() {
        let hidden = "ponder:new?text=a%00b%1B%5B31m%E2%80%AEc%F3%A0%81%88%F3%A0%81%A9%E2%81%A6%E2%80%8Bd%EF%BB%BF";
        assert_eq!(read(hidden), Ok(DeepLink::NewChat("ab[31mcd".into())));
        // Joiners within a script or an emoji are visible.
        assert_eq!(
            read("ponder:new?text=%E2%80%8D"),
            Ok(DeepLink::NewChat("\u{200d}".into()))
        );
    }
}
