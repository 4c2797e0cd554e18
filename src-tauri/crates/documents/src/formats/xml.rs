//! The XML of documents, mark by mark: no tree is built and no declaration is followed.

use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::QName;
use quick_xml::Reader;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;

/// How many marks are read between two looks at the time.
const STEPS: usize = 10_000;

/// How deep elements may lie within each other: the reader keeps the name of each open one.
const MAX_DEPTH: usize = 300_000;

/// The longest value of an attribute that is looked at, in bytes; a longer one counts as missing.
const LONGEST_VALUE: usize = 4_000;

/// The beginning or the end of an element, or letters between.
pub(crate) enum Mark<'a> {
    /// An element begins.
    Open(Tag<'a>),
    /// Letters.
    Text(&'a str),
    /// The element of this name ends.
    Close(&'a str),
}

/// The beginning of an element.
#[derive(Clone, Copy)]
pub(crate) struct Tag<'a>(&'a BytesStart<'a>);

impl<'a> Tag<'a> {
    /// Its name without that of its namespace.
    pub fn name(self) -> &'a str {
        self.0.local_name().into_inner()
    }

    /// True if its name has this one before it, which stands for a namespace.
    pub fn is_of(self, namespace: &str) -> bool {
        self.0
            .name()
            .prefix()
            .is_some_and(|prefix| prefix.as_ref() == namespace)
    }

    /// The value of an attribute, by its name without that of its namespace.
    pub fn attribute(self, name: &str) -> Option<String> {
        self.value(|key| key.local_name().as_ref() == name)
    }

    /// The same of one with a namespace, which stands beside one of that name without.
    pub fn prefixed(self, name: &str) -> Option<String> {
        self.value(|key| key.prefix().is_some() && key.local_name().as_ref() == name)
    }

    /// The number that an attribute is.
    pub fn number(self, name: &str) -> Option<usize> {
        self.attribute(name)?.trim().parse().ok()
    }

    fn value(self, is_it: impl Fn(QName<'_>) -> bool) -> Option<String> {
        let mut attributes = self.0.attributes();
        let mut attributes = attributes.with_checks(false).flatten();
        let found = attributes.find(|attribute| is_it(attribute.key))?;
        if found.value.len() > LONGEST_VALUE {
            return None;
        }
        unescape(&found.value).ok().map(|value| value.into_owned())
    }
}

/// Shows each mark to `each`, in order; an element without content begins and ends.
///
/// # Errors
/// Those of `each`; `Broken` if the XML is damaged, declares names of letters or names what is not declared.
pub(crate) fn walk(
    xml: &[u8],
    kind: DocumentKind,
    budget: &Budget,
    mut each: impl FnMut(Mark<'_>) -> Result<()>,
) -> Result<()> {
    let mut reader = Reader::from_reader(xml);
    let mut depth = 0_usize;
    for step in 0_usize.. {
        if step.is_multiple_of(STEPS) {
            budget.check()?;
        }
        let event = reader.read_event();
        match event.map_err(|_| Error::broken(kind, "its XML is damaged"))? {
            Event::Eof if depth > 0 => return Err(Error::broken(kind, "its XML is cut short")),
            Event::Eof => break,
            // A document's own declarations are where entities are made that unfold without end.
            Event::DocType(declared) if declared.contains('[') => {
                return Err(Error::broken(kind, "it declares a type of its own"));
            }
            Event::Start(start) => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Error::broken(kind, "its elements are nested without end"));
                }
                each(Mark::Open(Tag(&start)))?;
            }
            Event::Empty(start) => {
                each(Mark::Open(Tag(&start)))?;
                each(Mark::Close(start.local_name().as_ref()))?;
            }
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                each(Mark::Close(end.local_name().as_ref()))?;
            }
            Event::Text(text) => each(Mark::Text(&text))?,
            Event::CData(text) => each(Mark::Text(&text))?,
            Event::GeneralRef(reference) => {
                let mut own = [0; 4];
                let known = match reference.resolve_char_ref() {
                    Ok(Some(letter)) => Some(&*letter.encode_utf8(&mut own)),
                    _ => resolve_predefined_entity(reference.as_ref()),
                };
                let unknown = || Error::broken(kind, "it names letters that it does not have");
                each(Mark::Text(known.ok_or_else(unknown)?))?;
            }
            _ => {}
        }
    }
    Ok(())
}
