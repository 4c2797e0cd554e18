//! Text of EPUB books: pages of the web in the order of reading, with the titles that the table of contents has for
//! those without a heading of their own.

use std::collections::{HashMap, HashSet};

use super::archive::{resolve, Archive, MAX_PARTS};
use super::html;
use super::text::decode;
use super::xml::{walk, Mark};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;
use crate::limits::MAX_TEXT;

const KIND: DocumentKind = DocumentKind::Epub;
const CONTAINER: &str = "META-INF/container.xml";
const ENCRYPTION: &str = "META-INF/encryption.xml";

/// The longest title that is kept, in characters.
const LONGEST_TITLE: usize = 300;

/// The text of a book. A chapter that the order of reading names again is read once.
///
/// # Errors
/// If the file is broken, protected or too large.
pub(crate) fn text(archive: &mut Archive<'_>, budget: &Budget) -> Result<String> {
    let package = package(archive, budget)?;
    let contents = Contents::read(&archive.part(&package)?, &package, budget)?;
    let encrypted = encrypted(archive, budget)?;
    let titles = match &contents.titles {
        Some(part) if archive.has(part) => titles(&archive.part(part)?, part, budget)?,
        _ => HashMap::new(),
    };
    let mut text = contents.heading();
    for chapter in &contents.chapters {
        if encrypted.contains(chapter) {
            return Err(Error::Protected(KIND.name().into()));
        }
        let page = decode(&archive.part(chapter)?);
        let page = page.map_err(|_| Error::broken(KIND, "a chapter of it holds bytes that are no text"))?;
        let page = html::chapter(&page, budget)?;
        if page.trim().is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        if let Some(title) = titles.get(chapter).filter(|_| !has_heading(&page)) {
            text.push_str(&format!("# {title}\n\n"));
        }
        text.push_str(&page);
        if text.len() > MAX_TEXT {
            return Err(Error::too_much_text());
        }
    }
    Ok(text)
}

fn has_heading(page: &str) -> bool {
    page.lines().any(|line| line.starts_with('#'))
}

/// The name of the part that lists the others.
fn package(archive: &mut Archive<'_>, budget: &Budget) -> Result<String> {
    let mut found = None;
    walk(&archive.part(CONTAINER)?, KIND, budget, |mark| {
        if let (Mark::Open(tag), None) = (mark, &found) {
            if tag.name() == "rootfile" {
                found = tag.attribute("full-path");
            }
        }
        Ok(())
    })?;
    found.ok_or_else(|| Error::broken(KIND, "it does not say which chapters it has"))
}

/// The names of the parts that are encrypted. Fonts alone often are, and then the book is readable.
fn encrypted(archive: &mut Archive<'_>, budget: &Budget) -> Result<HashSet<String>> {
    let mut found = HashSet::new();
    if archive.has(ENCRYPTION) {
        walk(&archive.part(ENCRYPTION)?, KIND, budget, |mark| {
            if let Mark::Open(tag) = mark {
                if tag.name() == "CipherReference" && found.len() < MAX_PARTS {
                    found.extend(tag.attribute("URI").and_then(|part| resolve("", &part)));
                }
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// The list of a book's parts.
#[derive(Default)]
struct Contents {
    title: String,
    authors: Vec<String>,
    /// The names of the chapters' parts, in the order of reading.
    chapters: Vec<String>,
    /// The part with the table of contents.
    titles: Option<String>,
}

impl Contents {
    fn read(xml: &[u8], part: &str, budget: &Budget) -> Result<Self> {
        let mut contents = Self::default();
        let mut parts: HashMap<String, String> = HashMap::new();
        let mut order = Vec::new();
        let mut named = HashSet::new();
        let mut within = String::new();
        let (mut older, mut newer) = (None, None);
        walk(xml, KIND, budget, |mark| {
            match mark {
                Mark::Open(tag) => match tag.name() {
                    "item" => {
                        let place = tag.attribute("href").and_then(|place| resolve(part, &place));
                        let (Some(id), Some(place)) = (tag.attribute("id"), place) else {
                            return Ok(());
                        };
                        let properties = tag.attribute("properties").unwrap_or_default();
                        if properties.split_whitespace().any(|property| property == "nav") {
                            newer = Some(place.clone());
                        }
                        if tag.attribute("media-type").is_some_and(|kind| kind.contains("dtbncx")) {
                            older = Some(place.clone());
                        }
                        parts.insert(id, place);
                    }
                    "itemref" => {
                        let fresh = tag.attribute("idref").filter(|id| named.insert(id.clone()));
                        order.extend(fresh);
                    }
                    "creator" if contents.authors.len() < 20 => {
                        contents.authors.push(String::new());
                        within = "creator".into();
                    }
                    name @ "title" if contents.title.is_empty() => within = name.into(),
                    _ => {}
                },
                Mark::Text(text) => match within.as_str() {
                    "title" => extend(&mut contents.title, text),
                    "creator" => contents
                        .authors
                        .last_mut()
                        .into_iter()
                        .for_each(|author| extend(author, text)),
                    _ => {}
                },
                Mark::Close(_) => within.clear(),
            }
            if parts.len().max(order.len()) > MAX_PARTS {
                return Err(Error::broken(KIND, "it names more chapters than a book has"));
            }
            Ok(())
        })?;
        let mut chosen = HashSet::new();
        for id in order {
            let missing = || Error::broken(KIND, "it names a chapter that it does not have");
            let place = parts.get(&id).ok_or_else(missing)?;
            if chosen.insert(place) {
                contents.chapters.push(place.clone());
            }
        }
        contents.titles = newer.or(older);
        match contents.chapters.is_empty() {
            true => Err(Error::broken(KIND, "it does not say which chapters it has")),
            false => Ok(contents),
        }
    }

    /// The book's own title and its authors.
    fn heading(&self) -> String {
        let title = self.title.trim();
        let authors: Vec<&str> = self.authors.iter().map(|author| author.trim()).collect();
        match title.is_empty() {
            true => String::new(),
            false => format!("# {title}\n\n{}", authors.join(", ")).trim_end().to_owned(),
        }
    }
}

/// Adds letters to a title, in one line and no more than a title has.
fn extend(title: &mut String, text: &str) {
    if title.chars().count() + text.chars().count() <= LONGEST_TITLE {
        title.extend(
            text.chars()
                .map(|letter| if letter.is_whitespace() { ' ' } else { letter }),
        );
    }
}

/// The titles of parts in a table of contents, of which there are two forms: links in a page, and labels before places.
fn titles(xml: &[u8], part: &str, budget: &Budget) -> Result<HashMap<String, String>> {
    let mut titles = HashMap::new();
    let mut title = String::new();
    let mut place = None;
    let mut reads = false;
    let walked = walk(xml, KIND, budget, |mark| {
        match mark {
            Mark::Open(tag) => match tag.name() {
                "a" => {
                    place = tag.attribute("href").and_then(|place| resolve(part, &place));
                    (title, reads) = (String::new(), true);
                }
                "text" => (title, reads) = (String::new(), true),
                "content" => {
                    if let Some(place) = tag.attribute("src").and_then(|place| resolve(part, &place)) {
                        keep(&mut titles, place, &title);
                    }
                }
                _ => {}
            },
            Mark::Text(text) if reads => extend(&mut title, text),
            Mark::Text(_) => {}
            Mark::Close(name) => {
                reads &= name != "a" && name != "text";
                if let Some(place) = place.take_if(|_| name == "a") {
                    keep(&mut titles, place, &title);
                }
            }
        }
        Ok(())
    });
    match walked {
        // Tables of contents name letters of HTML; without titles the book is still all there.
        Err(Error::Broken { .. }) => budget.check().map(|()| titles),
        walked => walked.map(|()| titles),
    }
}

/// The first title of a part is that of the chapter, and later ones those of its sections.
fn keep(titles: &mut HashMap<String, String>, place: String, title: &str) {
    let title = title.trim();
    if !title.is_empty() && titles.len() < MAX_PARTS {
        titles.entry(place).or_insert_with(|| title.to_owned());
    }
}
