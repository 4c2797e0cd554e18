//! The cost of compiling a schema. llguidance bounds grammars and masks; its work before there is a grammar is bounded
//! here.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Bytes of a schema as JSON.
const MOST_BYTES: usize = 256 << 10;

/// Schemas within each other, through references too.
const MOST_DEPTH: usize = 1000;

/// Bytes of a schema whose references are put in place wherever schemas are merged.
const MOST_WORK: u64 = 2 << 20;

/// The cost of comparing two branches of `oneOf`, in bytes.
const BRANCHES: u64 = 10;

/// The cost of comparing two patterns of `patternProperties`, in bytes.
const PATTERNS: u64 = 1000;

/// Patterns that one text has to match: llguidance looks at all combinations of what each of them may go on with.
const MOST_PATTERNS: u64 = 8;

/// Stack for the deepest schema: llguidance goes down through references as it does through the text.
pub(crate) const STACK: usize = 64 << 20;

/// Refuses a schema that would cost too much.
///
/// # Errors
/// [`Error::Schema`] says of what there is too much.
pub(crate) fn check(schema: &Value) -> Result<()> {
    if schema.to_string().len() > MOST_BYTES {
        return Err(Error::Schema(format!("it is longer than {MOST_BYTES} bytes")));
    }
    let mut survey = Survey {
        root: schema,
        known: HashMap::new(),
        level: 0,
        too_deep: false,
    };
    let cost = survey.schema(schema, false);
    if survey.too_deep || cost.depth > MOST_DEPTH {
        return Err(Error::Schema(format!(
            "\"$ref\": schemas nest deeper than {MOST_DEPTH}"
        )));
    }
    if cost.patterns > MOST_PATTERNS {
        return Err(Error::Schema(format!(
            "a text has to match more than {MOST_PATTERNS} of \"pattern\" and \"format\" at once"
        )));
    }
    if cost.work > MOST_WORK {
        return Err(Error::Schema(
            "it becomes too large where \"$ref\", \"allOf\", \"anyOf\", \"oneOf\" or \"patternProperties\" merge or compare schemas".into(),
        ));
    }
    Ok(())
}

/// The cost of a schema, and its depth.
#[derive(Clone, Copy, Default)]
struct Cost {
    work: u64,
    depth: usize,
    /// Patterns that one value may have to match.
    patterns: u64,
}

impl Cost {
    const ONE: Self = Self {
        work: 1,
        depth: 0,
        patterns: 0,
    };

    /// Adds what the same value has to follow too.
    fn add(&mut self, other: Cost) {
        self.patterns = self.patterns.saturating_add(other.patterns);
        self.beside(other);
    }

    /// Adds what another value has to follow.
    fn beside(&mut self, other: Cost) {
        self.work = self.work.saturating_add(other.work);
        self.depth = self.depth.max(other.depth + 1);
    }
}

struct Survey<'a> {
    root: &'a Value,
    /// The cost of followed references, whether schemas are merged or not; nothing while they are being followed.
    known: HashMap<(&'a str, bool), Cost>,
    level: usize,
    too_deep: bool,
}

impl<'a> Survey<'a> {
    /// The cost of a schema, which is copied wherever it is named if it is to be merged with another.
    fn schema(&mut self, schema: &'a Value, merged: bool) -> Cost {
        let Value::Object(keywords) = schema else {
            return Cost::ONE;
        };
        if self.level > MOST_DEPTH {
            self.too_deep = true;
            return Cost::default();
        }
        self.level += 1;
        let merged = merged || merges(keywords);
        let (mut cost, mut inside) = (Cost::ONE, 0);
        for (keyword, value) in keywords {
            self.keyword(&mut cost, &mut inside, keyword, value, merged);
        }
        // If objects or lists are merged, so are their parts.
        cost.patterns = cost.patterns.saturating_add(inside);
        self.level -= 1;
        cost
    }

    /// Adds a keyword to the cost of its schema; `inside` is the most of what the parts of a value have to match.
    fn keyword(&mut self, cost: &mut Cost, inside: &mut u64, keyword: &str, value: &'a Value, merged: bool) {
        match (keyword, value) {
            ("$ref", Value::String(target)) => cost.add(self.reference(target, merged)),
            ("properties" | "patternProperties", Value::Object(inner)) => {
                if keyword == "patternProperties" {
                    cost.work = cost.work.saturating_add(pairs(inner.len(), PATTERNS));
                }
                for (name, part) in inner {
                    cost.work += name.len() as u64;
                    self.part(cost, inside, part, merged);
                }
            }
            ("allOf", Value::Array(all)) => {
                for schema in all {
                    cost.add(self.schema(schema, merged));
                }
            }
            ("anyOf" | "oneOf", Value::Array(branches)) => {
                if keyword == "oneOf" {
                    cost.work = cost.work.saturating_add(pairs(branches.len(), BRANCHES));
                }
                let mut most = 0;
                for branch in branches {
                    self.part(cost, &mut most, branch, merged);
                }
                cost.patterns = cost.patterns.saturating_add(most);
            }
            ("prefixItems" | "items", Value::Array(parts)) => {
                for part in parts {
                    self.part(cost, inside, part, merged);
                }
            }
            ("items" | "additionalProperties" | "additionalItems", part) => self.part(cost, inside, part, merged),
            ("format", _) => cost.patterns += 1,
            ("const" | "enum" | "pattern" | "required", value) => {
                cost.work += value.to_string().len() as u64;
                cost.patterns += u64::from(keyword == "pattern");
            }
            _ => {}
        }
    }

    /// Adds the schema of another value; `most` is the most patterns of them.
    fn part(&mut self, cost: &mut Cost, most: &mut u64, schema: &'a Value, merged: bool) {
        let part = self.schema(schema, merged);
        cost.beside(part);
        *most = part.patterns.max(*most);
    }

    fn reference(&mut self, target: &'a str, merged: bool) -> Cost {
        if let Some(cost) = self.known.get(&(target, merged)) {
            // Named alone it is compiled once.
            return if merged { *cost } else { Cost::default() };
        }
        self.known.insert((target, merged), Cost::default());
        let cost = match target
            .strip_prefix('#')
            .and_then(|pointer| self.root.pointer(&percent_decode_str(pointer).decode_utf8_lossy()))
        {
            Some(schema) => self.schema(schema, merged),
            // By an anchor or an address: whatever is meant, it is a part of the whole.
            None => Cost {
                work: self.root.to_string().len() as u64,
                ..Cost::default()
            },
        };
        self.known.insert((target, merged), cost);
        cost
    }
}

/// The cost of comparing each with each other.
fn pairs(count: usize, cost: u64) -> u64 {
    let count = count as u64;
    (count * count.saturating_sub(1) / 2).saturating_mul(cost)
}

/// True if several of these keywords describe a value, so that the schemas that they name become one.
pub(crate) fn merges(keywords: &Map<String, Value>) -> bool {
    const APPLICATORS: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];
    const ANNOTATIONS: [&str; 11] = [
        "$anchor",
        "$comment",
        "$defs",
        "$id",
        "$schema",
        "default",
        "definitions",
        "description",
        "examples",
        "id",
        "title",
    ];
    let applies = APPLICATORS.iter().any(|name| keywords.contains_key(*name));
    let says = keywords.keys().filter(|name| !ANNOTATIONS.contains(&name.as_str()));
    let all = keywords.get("allOf").and_then(Value::as_array);
    all.is_some_and(|all| all.len() > 1) || (applies && says.count() > 1)
}
