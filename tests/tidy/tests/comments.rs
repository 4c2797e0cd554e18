//! The openings of comments: the noun or the verb, then why.

use tidy::{read, sources};

const BANNED: [&str; 6] = ["What ", "Who ", "Whether ", "Where ", "So many ", "So long "];
const MARKS: [&str; 9] = ["///", "//!", "//", "/**", "/*", "*", "<!--", "--", "#"];

/// The text of a line that is a comment and nothing else.
fn comment<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    let line = line.trim_start();
    let mark = MARKS.iter().find(|mark| line.starts_with(**mark))?;
    let fits = match *mark {
        "#" => path.ends_with(".py") || path.ends_with(".sh"),
        "--" => path.ends_with(".sql"),
        "<!--" => path.ends_with(".svelte"),
        _ => !path.ends_with(".py") && !path.ends_with(".sh") && !path.ends_with(".sql"),
    };
    fits.then(|| line[mark.len()..].trim())
}

#[test]
fn comments_begin_with_the_noun_or_the_verb() {
    let mut wrong = Vec::new();
    for path in sources() {
        // A released migration never changes.
        if path.contains("/migrations/") {
            continue;
        }
        let text = read(&path);
        let mut begins = true;
        for (number, line) in text.lines().enumerate() {
            let Some(said) = comment(&path, line) else {
                begins = true;
                continue;
            };
            if begins && BANNED.iter().any(|opening| said.starts_with(opening)) {
                wrong.push(format!("{path}:{}: {said}", number + 1));
            }
            // A blank line or a heading of a comment begins a paragraph.
            begins = said.is_empty() || said.starts_with("# ");
        }
    }
    assert!(wrong.is_empty(), "{} comments:\n{}", wrong.len(), wrong.join("\n"));
}
