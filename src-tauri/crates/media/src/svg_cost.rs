//! How many elements a drawing unfolds to: an element may be used by others, which are used by others, so that a few
//! lines are billions.

use std::collections::HashMap;

use resvg::usvg::roxmltree::{Attribute, Document, Node, NodeId};
use svgtypes::{PathParser, PathSegment, PointsParser};

use crate::error::{Error, Result};
use crate::svg_references::{References, Times};

/// Elements that a drawing may unfold to.
const MAX_ELEMENTS: u64 = 200_000;
/// How deep elements may lie within each other, references followed.
const MAX_DEPTH: usize = 200;
/// Comparisons of rules of style sheets with elements.
const MAX_STYLING: usize = 20_000_000;
/// The most curves that an arc becomes.
const ARC_CURVES: u64 = 64;
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
    let mut elements = 0;
    for node in document.descendants().filter(Node::is_element) {
        elements += 1;
        let name = node.tag_name().name();
        if name == "script" || node.attributes().any(|attribute| attribute.name().starts_with("on")) {
            return Err(broken("it has scripts, which are never run"));
        }
        if name.starts_with("fe") && !FILTERS.contains(&name) && !TRANSFER_FUNCTIONS.contains(&name) {
            return Err(broken(format!(
                "it has a filter of the kind {name}, which is not drawn"
            )));
        }
    }
    let references = References::of(document);
    if references.rules().saturating_mul(elements) > MAX_STYLING {
        return Err(broken("its style sheet would take too long to apply"));
    }
    let mut cost = Cost {
        references,
        known: HashMap::new(),
    };
    match cost.of(document.root_element(), 0)?.elements > MAX_ELEMENTS {
        true => Err(broken("it unfolds to too many elements")),
        false => Ok(()),
    }
}

/// The drawing that an element unfolds to.
#[derive(Debug, Clone, Copy, Default)]
struct Unfolded {
    /// Elements, with everything that is drawn for them.
    elements: u64,
    /// Elements and letters within it, of which each draws what it inherits.
    shapes: u64,
    /// Points of paths within it.
    points: u64,
}

impl Unfolded {
    /// An element without those within it.
    fn alone(node: &Node) -> Self {
        let letters = node.children().filter(Node::is_text).filter_map(|text| text.text());
        let curves = |segment| match segment {
            PathSegment::EllipticalArc { .. } => ARC_CURVES,
            _ => 2,
        };
        let points = |attribute: Attribute| match attribute.name() {
            "d" => PathParser::from(attribute.value())
                .map_while(|segment| segment.ok())
                .map(curves)
                .sum::<u64>(),
            "points" => PointsParser::from(attribute.value()).count() as u64,
            _ => 0,
        };
        Self {
            elements: 1,
            shapes: 1 + match node.tag_name().name() {
                "text" | "tspan" | "textPath" | "tref" | "a" => letters.map(|text| text.len() as u64).sum::<u64>(),
                _ => 0,
            },
            points: 2 + node.attributes().map(points).sum::<u64>(),
        }
    }

    fn add(&mut self, other: Self) {
        self.elements = self.elements.saturating_add(other.elements);
        self.shapes = self.shapes.saturating_add(other.shapes);
        self.points = self.points.saturating_add(other.points);
    }
}

struct Cost<'a> {
    references: References<'a>,
    /// The drawings that elements unfold to; `None` while it is being counted.
    known: HashMap<NodeId, Option<Unfolded>>,
}

impl<'a> Cost<'a> {
    fn of(&mut self, node: Node<'a, 'a>, depth: usize) -> Result<Unfolded> {
        if depth > MAX_DEPTH {
            return Err(broken("its elements lie too deep within each other"));
        }
        match self.known.get(&node.id()) {
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => return Err(broken("one of its elements is a part of itself")),
            None => {}
        }
        self.known.insert(node.id(), None);
        let mut cost = Unfolded::alone(&node);
        for child in node.children().filter(Node::is_element) {
            cost.add(self.of(child, depth + 1)?);
        }
        let references = self.references.from(&node);
        let of_content = |times: Times| times == Times::Content;
        for reference in references.iter().filter(|one| of_content(one.times)) {
            for target in self.references.targets(reference.id) {
                cost.add(self.of(target, depth + 1)?);
            }
        }
        for reference in references.iter().filter(|one| !of_content(one.times)) {
            let times = match reference.times {
                Times::Points => cost.points,
                Times::Shapes => cost.shapes,
                Times::Once | Times::Content => 1,
            };
            for target in self.references.targets(reference.id) {
                let drawn = self.of(target, depth + 1)?.elements.saturating_mul(times);
                cost.elements = cost.elements.saturating_add(drawn);
            }
        }
        self.known.insert(node.id(), Some(cost));
        Ok(cost)
    }
}
