//! How many elements a drawing unfolds to: an element may be used by others, which are used by others, so that a few
//! lines are billions.

use std::collections::HashMap;

use resvg::usvg::roxmltree::{Document, Node, NodeId};

use crate::error::{Error, Result};

/// Elements that a drawing may unfold to.
const MAX_ELEMENTS: u64 = 200_000;
/// How deep elements may lie within each other, references followed.
const MAX_DEPTH: usize = 200;
/// Steps of filters whose time depends on the image's size alone.
const FILTERS: [&str; 13] = [
    "feBlend",
    "feColorMatrix",
    "feComponentTransfer",
    "feComposite",
    "feDropShadow",
    "feFlood",
    "feGaussianBlur",
    "feMerge",
    "feMergeNode",
    "feOffset",
    "feTile",
    "feFuncA",
    "feFuncR",
];
const TRANSFER_FUNCTIONS: [&str; 2] = ["feFuncG", "feFuncB"];

/// An error about a drawing.
pub(crate) fn broken(reason: impl Into<String>) -> Error {
    Error::Broken {
        kind: "SVG".into(),
        reason: reason.into(),
    }
}

/// Refuses a document with scripts, steps of filters that take any time, or more elements than anybody draws.
pub(crate) fn check_elements(document: &Document) -> Result<()> {
    let mut cost = Cost {
        document,
        styles: Styles::of(document),
        named: HashMap::new(),
        known: HashMap::new(),
    };
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        if name == "script" || node.attributes().any(|attribute| attribute.name().starts_with("on")) {
            return Err(broken("it has scripts, which are never run"));
        }
        if name.starts_with("fe") && !FILTERS.contains(&name) && !TRANSFER_FUNCTIONS.contains(&name) {
            return Err(broken(format!(
                "it has a filter of the kind {name}, which is not drawn"
            )));
        }
        if let Some(id) = node.attribute("id") {
            cost.named.entry(id).or_insert(node.id());
        }
    }
    match cost.of(document.root_element(), 0)? > MAX_ELEMENTS {
        true => Err(broken("it unfolds to too many elements")),
        false => Ok(()),
    }
}

/// References in style sheets, by what they apply to: a class, an element's name, an id, or everything.
struct Styles<'a>(HashMap<&'a str, Vec<&'a str>>);

impl<'a> Styles<'a> {
    fn of(document: &'a Document) -> Self {
        let mut styles: HashMap<&str, Vec<&str>> = HashMap::new();
        let sheets = document
            .descendants()
            .filter(|node| node.has_tag_name("style") || node.tag_name().name() == "style");
        for sheet in sheets.flat_map(|node| node.children()).filter_map(|node| node.text()) {
            for rule in sheet.split('}') {
                let Some((selectors, declarations)) = rule.split_once('{') else {
                    continue;
                };
                let found: Vec<&str> = references(declarations).collect();
                if found.is_empty() {
                    continue;
                }
                for selector in selectors.split(',') {
                    // A rule applies to its last name.
                    let last = selector
                        .rsplit([' ', '>', '+', '~', '\n', '\t'])
                        .find(|part| !part.is_empty())
                        .unwrap_or("*");
                    let name = last.rsplit(['.', '#']).next().unwrap_or("*");
                    let name = name
                        .split([':', '['])
                        .next()
                        .filter(|name| !name.is_empty())
                        .unwrap_or("*");
                    styles.entry(name).or_default().extend(&found);
                }
            }
        }
        Self(styles)
    }

    fn apply<'b>(&'b self, node: &Node<'a, 'a>) -> impl Iterator<Item = &'a str> + use<'a, 'b> {
        let classes = node.attribute("class").unwrap_or_default().split_whitespace();
        let names = classes.chain(node.attribute("id")).chain([node.tag_name().name(), "*"]);
        let all: Vec<&str> = names.filter_map(|name| self.0.get(name)).flatten().copied().collect();
        all.into_iter()
    }
}

/// Ids within `url(#…)`.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("url(").filter_map(move |(at, _)| {
        let inner = text[at + 4..].trim_start_matches([' ', '"', '\'']);
        let end = inner.find([')', '"', '\'', ' '])?;
        inner[..end].strip_prefix('#')
    })
}

struct Cost<'a> {
    document: &'a Document<'a>,
    styles: Styles<'a>,
    named: HashMap<&'a str, NodeId>,
    /// Elements that one unfolds to; `None` while it is being counted.
    known: HashMap<NodeId, Option<u64>>,
}

impl<'a> Cost<'a> {
    fn of(&mut self, node: Node<'a, 'a>, depth: usize) -> Result<u64> {
        if depth > MAX_DEPTH {
            return Err(broken("its elements lie too deep within each other"));
        }
        match self.known.get(&node.id()) {
            Some(Some(cost)) => return Ok(*cost),
            // An element that uses itself is left out when it is drawn.
            Some(None) => return Ok(0),
            None => {}
        }
        self.known.insert(node.id(), None);
        let mut cost = 1u64;
        for child in node.children().filter(Node::is_element) {
            cost = cost.saturating_add(self.of(child, depth + 1)?);
        }
        let mut used: Vec<&str> = self.styles.apply(&node).collect();
        for attribute in node.attributes() {
            match attribute.name() {
                "href" => used.extend(attribute.value().strip_prefix('#')),
                _ => used.extend(references(attribute.value())),
            }
        }
        for id in used {
            let Some(target) = self.named.get(id).and_then(|id| self.document.get_node(*id)) else {
                continue;
            };
            cost = cost.saturating_add(self.of(target, depth + 1)?);
        }
        self.known.insert(node.id(), Some(cost));
        Ok(cost)
    }
}
