//! Arguments in Gemma 4's own notation, as Lark rules. Values that the notation cannot express are refused.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::literal::{checked, quoted};

/// Rules within each other at most.
const DEPTH: usize = 16;

/// The rules of a tool's arguments, the first under this name.
///
/// # Errors
/// [`Error::Schema`] names the keyword that cannot be honored.
pub(crate) fn rules(name: &str, schema: &Value, quote: u32) -> Result<Vec<String>> {
    let mut writer = Writer {
        root: schema,
        prefix: name,
        quote: format!("<[{quote}]>"),
        rules: Vec::new(),
        named: 0,
    };
    let object = writer.value(schema, DEPTH)?;
    writer.rules.push(format!("{name}: {object}"));
    Ok(writer.rules)
}

struct Writer<'a> {
    root: &'a Value,
    prefix: &'a str,
    quote: String,
    rules: Vec<String>,
    named: usize,
}

impl<'a> Writer<'a> {
    /// Gives an expression a name.
    fn rule(&mut self, expression: &str) -> String {
        self.named += 1;
        let name = format!("{}_{}", self.prefix, self.named);
        self.rules.push(format!("{name}: {expression}"));
        name
    }

    /// The expression of a value that this schema allows.
    fn value(&mut self, schema: &'a Value, depth: usize) -> Result<String> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Error::Schema(format!("schemas nest deeper than {DEPTH}")));
        };
        let Value::Object(keywords) = schema else {
            return Err(Error::Schema("a value of any type".into()));
        };
        if let Some(target) = keywords.get("$ref").and_then(Value::as_str) {
            let found = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            let found = found.ok_or_else(|| Error::Schema(format!("\"$ref\": {target}")))?;
            return self.value(found, depth);
        }
        if let Some(values) = keywords.get("enum").and_then(Value::as_array) {
            return self.alternatives(values.iter().map(|value| (value, None)), depth);
        }
        if let Some(value) = keywords.get("const") {
            return self.literal(value);
        }
        if let Some(schemas) = ["anyOf", "oneOf"]
            .iter()
            .find_map(|name| keywords.get(*name)?.as_array())
        {
            let parts: Result<Vec<_>> = schemas.iter().map(|schema| self.value(schema, depth)).collect();
            return Ok(self.rule(&parts?.join(" | ")));
        }
        match keywords.get("type") {
            Some(Value::String(kind)) => self.typed(kind, keywords, depth),
            Some(Value::Array(kinds)) => self.alternatives(kinds.iter().map(|kind| (kind, Some(keywords))), depth),
            _ => Err(Error::Schema("a value without a \"type\"".into())),
        }
    }

    /// One of these: values, or types with these keywords.
    fn alternatives(
        &mut self,
        all: impl Iterator<Item = (&'a Value, Option<&'a Map<String, Value>>)>,
        depth: usize,
    ) -> Result<String> {
        let part = |(value, keywords): (&'a Value, Option<&'a Map<String, Value>>)| match (keywords, value.as_str()) {
            (Some(keywords), Some(kind)) => self.typed(kind, keywords, depth),
            _ => self.literal(value),
        };
        let parts = all.map(part).collect::<Result<Vec<_>>>()?;
        if parts.is_empty() {
            return Err(Error::Schema("there is nothing to choose from".into()));
        }
        Ok(self.rule(&parts.join(" | ")))
    }

    fn typed(&mut self, kind: &str, keywords: &'a Map<String, Value>, depth: usize) -> Result<String> {
        match kind {
            "object" => self.object(keywords, depth),
            "array" => self.array(keywords, depth),
            "string" => self.text(keywords),
            "null" => Ok(quoted("null")),
            "boolean" => Ok("(\"true\" | \"false\")".into()),
            "integer" | "number" => {
                let numeric = [
                    "minimum",
                    "maximum",
                    "exclusiveMinimum",
                    "exclusiveMaximum",
                    "multipleOf",
                ];
                let mut schema: Map<String, Value> = numeric
                    .iter()
                    .filter_map(|name| Some(((*name).to_owned(), keywords.get(*name)?.clone())))
                    .collect();
                schema.insert("type".into(), kind.into());
                let schema = checked(&schema.into())?;
                Ok(self.rule(&format!("%json {schema}")))
            }
            other => Err(Error::Schema(format!("\"type\": {other}"))),
        }
    }

    fn object(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Result<String> {
        const REFUSED: [&str; 4] = ["patternProperties", "minProperties", "maxProperties", "allOf"];
        refuse(keywords, &REFUSED)?;
        // In the order of the alphabet, as the template writes them.
        let properties = keywords.get("properties").and_then(Value::as_object);
        let properties: BTreeMap<&str, &Value> = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name.as_str(), schema))
            .collect();
        let required = keywords.get("required").and_then(Value::as_array);
        let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
        if let Some(unknown) = required.iter().find(|name| !properties.contains_key(*name)) {
            let reason = format!("\"required\": {unknown:?} is not among the properties");
            return Err(Error::Schema(reason));
        }
        // The rest after the first properties, if one of them was written and if none was.
        let (mut later, mut first) = (String::new(), String::new());
        for (name, schema) in properties.into_iter().rev() {
            if name.is_empty() || name.contains(|c: char| ":{}[],<>\"".contains(c) || c.is_whitespace()) {
                return Err(Error::Schema(format!("\"properties\": the name {name:?}")));
            }
            let value = self.value(schema, depth)?;
            let pair = format!("{} {value}", quoted(&format!("{name}:")));
            let (after, said) = (self.follow(&later), self.follow(&first));
            let alone = self.rule(&format!("{pair} {after}"));
            let joined = self.rule(&format!("\",\" {alone}"));
            (later, first) = match required.contains(&name) {
                true => (joined, alone),
                false => (format!("{joined} | {after}"), format!("{alone} | {said}")),
            };
        }
        let inner = self.follow(&first);
        Ok(self.rule(&format!("\"{{\" {inner} \"}}\"")))
    }

    /// A name for these alternatives, of which the last may be nothing.
    fn follow(&mut self, alternatives: &str) -> String {
        match alternatives {
            "" => "\"\"".into(),
            name if !name.contains(' ') => name.to_owned(),
            several => self.rule(several),
        }
    }

    fn array(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Result<String> {
        refuse(keywords, &["prefixItems", "additionalItems"])?;
        let Some(items) = keywords.get("items") else {
            return Err(Error::Schema("an array without \"items\"".into()));
        };
        let item = self.value(items, depth)?;
        let bound = |name: &str| keywords.get(name).and_then(Value::as_u64);
        let (least, most) = (bound("minItems").unwrap_or(0), bound("maxItems"));
        let more = match most {
            Some(0) => return Ok(quoted("[]")),
            Some(most) if most < least => return Err(Error::Schema("\"minItems\" is above \"maxItems\"".into())),
            // There is no repetition of none.
            Some(1) => None,
            Some(most) => Some(format!("{{{},{}}}", least.saturating_sub(1), most - 1)),
            None if least < 2 => Some("*".into()),
            None => Some(format!("{{{},}}", least - 1)),
        };
        let filled = match more {
            Some(more) => {
                let joined = self.rule(&format!("\",\" {item}"));
                self.rule(&format!("{item} ({joined}){more}"))
            }
            None => item,
        };
        let inner = if least == 0 { format!("{filled}?") } else { filled };
        Ok(self.rule(&format!("\"[\" {inner} \"]\"")))
    }

    fn text(&mut self, keywords: &Map<String, Value>) -> Result<String> {
        refuse(keywords, &["pattern", "format"])?;
        let bound = |name: &str| keywords.get(name).and_then(Value::as_u64);
        let inner = match (bound("minLength").unwrap_or(0), bound("maxLength")) {
            (0, None) => "/(?s:.*)/".to_owned(),
            (least, None) => format!("/(?s:.{{{least},}})/"),
            (least, Some(most)) if least <= most => format!("/(?s:.{{{least},{most}}})/"),
            _ => return Err(Error::Schema("\"minLength\" is above \"maxLength\"".into())),
        };
        let quote = self.quote.clone();
        Ok(self.rule(&format!("{quote} {inner} {quote}")))
    }

    fn literal(&mut self, value: &Value) -> Result<String> {
        match value {
            Value::String(text) => {
                let quote = self.quote.clone();
                Ok(self.rule(&format!("{quote} {} {quote}", quoted(text))))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(quoted(&value.to_string())),
            Value::Array(_) | Value::Object(_) => {
                Err(Error::Schema("\"const\" or \"enum\" of lists or objects".into()))
            }
        }
    }
}

/// Refuses keywords that this notation cannot be held to.
fn refuse(keywords: &Map<String, Value>, names: &[&str]) -> Result<()> {
    match names.iter().find(|name| keywords.contains_key(**name)) {
        Some(name) => Err(Error::Schema(format!("{name:?}"))),
        None => Ok(()),
    }
}
