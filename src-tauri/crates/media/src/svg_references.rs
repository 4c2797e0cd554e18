//! The references of an element of a drawing, read with the libraries that `usvg` reads it with: another reading of the
//! same text would be a way past every limit.

use std::collections::HashMap;

use resvg::usvg::roxmltree::{Document, Node, NodeId};
use simplecss::{AttributeOperator, DeclarationTokenizer, Element, PseudoClass, Rule, StyleSheet};
use svgtypes::{FuncIRI, IRI};

/// Elements whose `href` is followed. That of a link or an animation may name an element around it.
const FOLLOWED: [&str; 7] = [
    "use",
    "linearGradient",
    "radialGradient",
    "pattern",
    "filter",
    "textPath",
    "tref",
];

/// How often what a reference names is drawn for the element that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// As its content, which inherits from it.
    Content,
    /// Once for the element.
    Once,
    /// Once for each element within it, because the property is inherited.
    Shapes,
    /// Once for each point of each path within it.
    Points,
}

/// A reference to an element by its id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference<'a> {
    pub(crate) id: &'a str,
    pub(crate) times: Times,
}

/// The references of all elements.
pub(crate) struct References<'a> {
    document: &'a Document<'a>,
    /// Rules of style sheets that refer to something.
    rules: Vec<Rule<'a>>,
    /// First and last elements by their ids. `usvg` takes the first for some references and the last for others.
    named: HashMap<&'a str, (NodeId, NodeId)>,
    /// True if a property that is not inherited says `inherit` somewhere.
    inherits: bool,
}

impl<'a> References<'a> {
    pub(crate) fn of(document: &'a Document<'a>) -> Self {
        let elements = || document.descendants().filter(Node::is_element);
        let mut sheet = StyleSheet::new();
        for style in elements().filter(|node| node.tag_name().name() == "style") {
            for text in style.children().filter_map(|node| node.text()) {
                sheet.parse_more(text);
            }
        }
        let mut named: HashMap<&str, (NodeId, NodeId)> = HashMap::new();
        let mut inherits = false;
        for node in elements() {
            for attribute in node.attributes() {
                if attribute.name() == "id" {
                    named
                        .entry(attribute.value())
                        .and_modify(|ids| ids.1 = node.id())
                        .or_insert((node.id(), node.id()));
                }
            }
            for (name, value) in declarations(&node) {
                inherits |= says_inherit(name, value);
            }
        }
        for declaration in sheet.rules.iter().flat_map(|rule| &rule.declarations) {
            inherits |= says_inherit(declaration.name, declaration.value);
        }
        sheet
            .rules
            .retain(|rule| rule.declarations.iter().any(|one| one.value.contains("url(")));
        Self {
            document,
            rules: sheet.rules,
            named,
            inherits,
        }
    }

    /// The number of rules that are compared with every element.
    pub(crate) fn rules(&self) -> usize {
        self.rules.len()
    }

    /// Elements that an id names.
    pub(crate) fn targets(&self, id: &str) -> impl Iterator<Item = Node<'a, 'a>> + use<'a> {
        let (first, last) = self.named.get(id).map_or((None, None), |(first, last)| {
            (Some(*first), (last != first).then_some(*last))
        });
        let document = self.document;
        [first, last]
            .into_iter()
            .flatten()
            .filter_map(move |id| document.get_node(id))
    }

    /// The references of an element: those of its attributes, its style, and the rules that apply to it.
    pub(crate) fn from(&self, node: &Node<'a, 'a>) -> Vec<Reference<'a>> {
        let mut found = Vec::new();
        let followed = FOLLOWED.contains(&node.tag_name().name());
        for attribute in node.attributes().filter(|one| one.name() == "href" && followed) {
            if let Ok(IRI(id)) = IRI::from_str(attribute.value()) {
                let times = Times::Content;
                found.push(Reference { id, times });
            }
        }
        let rules = self.rules.iter().filter(|rule| rule.selector.matches(&Styled(*node)));
        let of_rules = rules.flat_map(|rule| rule.declarations.iter().map(|one| (one.name, one.value)));
        for (name, value) in declarations(node).into_iter().chain(of_rules) {
            let times = self.times(name);
            found.extend(addresses(value).map(|id| Reference { id, times }));
        }
        found
    }

    fn times(&self, property: &str) -> Times {
        match property {
            "marker" | "marker-mid" => Times::Points,
            "marker-start" | "marker-end" | "fill" | "stroke" => Times::Shapes,
            _ if self.inherits => Times::Shapes,
            _ => Times::Once,
        }
    }
}

/// The properties of an element by its attributes and its own style.
fn declarations<'a>(node: &Node<'a, 'a>) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    for attribute in node.attributes() {
        match attribute.name() {
            "style" => found.extend(DeclarationTokenizer::from(attribute.value()).map(|one| (one.name, one.value))),
            name => found.push((name, attribute.value())),
        }
    }
    found
}

fn says_inherit(property: &str, value: &str) -> bool {
    matches!(property, "mask" | "clip-path" | "filter") && value.trim() == "inherit"
}

/// Ids within `url(#…)`.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("url(").filter_map(move |(at, opening)| {
        let inside = &text[at + opening.len()..];
        // A name in quotes may hold what ends one without.
        let named = inside.trim_start();
        let rest = match named.chars().next() {
            Some(quote @ ('"' | '\'')) => named[1..].split_once(quote)?.1,
            _ => inside,
        };
        let end = text.len() - rest.len() + rest.find(')')?;
        FuncIRI::from_str(&text[at..=end]).ok().map(|FuncIRI(id)| id)
    })
}

/// An element as style sheets see it.
struct Styled<'a>(Node<'a, 'a>);

impl Element for Styled<'_> {
    fn parent_element(&self) -> Option<Self> {
        self.0.parent_element().map(Self)
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.0.prev_sibling_element().map(Self)
    }

    fn has_local_name(&self, name: &str) -> bool {
        self.0.tag_name().name() == name
    }

    fn attribute_matches(&self, name: &str, operator: AttributeOperator<'_>) -> bool {
        self.0.attribute(name).is_some_and(|value| operator.matches(value))
    }

    fn pseudo_class_matches(&self, class: PseudoClass<'_>) -> bool {
        class == PseudoClass::FirstChild && self.prev_sibling_element().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::addresses;

    #[test]
    fn addresses_are_read_as_svgtypes_reads_them() {
        let found = |text| addresses(text).collect::<Vec<_>>();
        for text in [
            "url(#a)",
            "url(\t#a)",
            "url( '#a' )",
            " url(\"\n#a \") red",
            "url('#a')",
        ] {
            assert_eq!(found(text), ["a"], "{text:?}");
        }
        assert_eq!(found("url(')#b')"), [""; 0]);
        assert_eq!(found("url('#a)b') url(#c)"), ["a)b", "c"]);
        assert_eq!(found("url(#a) url(# b) url(a) url(#"), ["a"]);
    }
}
