//! Random schemas, bounded in size, and a judge of what was written under them that shares no code with the grammar.

#![allow(dead_code)]

use serde_json::{json, Map, Value};

/// A stream of random numbers that a seed repeats (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

const NAMES: [&str; 6] = ["city", "count", "tags", "größe", "is open", "a\"b"];
const WORDS: [&str; 5] = ["red", "green", "dark blue", "ÄÖ", ""];

/// A schema of an object whose answers are short.
pub fn random(random: &mut Random) -> Value {
    let mut schema = object(random, 2);
    if random.chance(30) {
        schema["$defs"] = json!({"part": scalar(random)});
        schema["properties"]["part"] = json!({"$ref": "#/$defs/part"});
        schema["required"].as_array_mut().unwrap().push("part".into());
    }
    schema
}

fn object(random: &mut Random, depth: usize) -> Value {
    let mut properties = Map::new();
    for name in NAMES.iter().take(1 + random.below(4)) {
        properties.insert((*name).to_owned(), part(random, depth));
    }
    let required: Vec<Value> = properties
        .keys()
        .filter(|_| random.chance(80))
        .map(|name| name.as_str().into())
        .collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn part(random: &mut Random, depth: usize) -> Value {
    match random.below(8) {
        0 if depth > 0 => object(random, depth - 1),
        1 if depth > 0 => {
            json!({"type": "array", "items": part(random, depth - 1), "minItems": random.below(2), "maxItems": 1 + random.below(3)})
        }
        2 => json!({"anyOf": [scalar(random), {"type": "null"}]}),
        _ => scalar(random),
    }
}

fn scalar(random: &mut Random) -> Value {
    let low = random.below(200) as i64 - 100;
    match random.below(7) {
        0 => json!({"type": "boolean"}),
        1 => json!({"type": "integer", "minimum": low, "maximum": low + random.below(300) as i64}),
        2 => json!({"type": "number", "minimum": low, "maximum": low + 7}),
        3 => json!({"enum": WORDS[random.below(3)..].to_vec()}),
        4 => json!({"const": WORDS[random.below(WORDS.len())]}),
        5 => json!({"type": "string", "pattern": "^[a-c]{2,5}$"}),
        _ => json!({"type": "string", "minLength": random.below(2), "maxLength": 2 + random.below(10)}),
    }
}

/// The violations of one of these schemas by a value.
pub fn fault(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        return fault(root, root.pointer(&reference[1..]).unwrap(), value);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let fits = choices.iter().any(|choice| fault(root, choice, value).is_none());
        return (!fits).then(|| format!("{value} is none of {schema}"));
    }
    let fits = schema.get("const").is_none_or(|only| only == value)
        && schema["enum"].as_array().is_none_or(|all| all.contains(value))
        && match (schema["type"].as_str(), value) {
            (None, _) | (Some("boolean"), Value::Bool(_)) | (Some("null"), Value::Null) => true,
            // A number written as -0 is read as a fraction.
            (Some("integer"), Value::Number(number)) => {
                number.as_f64()?.fract() == 0.0 && within(schema, number.as_f64()?)
            }
            (Some("number"), Value::Number(number)) => within(schema, number.as_f64()?),
            (Some("string"), Value::String(text)) => {
                let length = text.chars().count() as u64;
                let word = || (2..=5).contains(&text.len()) && text.chars().all(|c| ('a'..='c').contains(&c));
                length >= schema["minLength"].as_u64().unwrap_or(0)
                    && length <= schema["maxLength"].as_u64().unwrap_or(u64::MAX)
                    && (schema.get("pattern").is_none() || word())
            }
            (Some("array"), Value::Array(items)) => {
                let length = items.len() as u64;
                if let Some(fault) = items.iter().find_map(|item| fault(root, &schema["items"], item)) {
                    return Some(fault);
                }
                length >= schema["minItems"].as_u64().unwrap_or(0)
                    && length <= schema["maxItems"].as_u64().unwrap_or(u64::MAX)
            }
            (Some("object"), Value::Object(fields)) => {
                for (name, value) in fields {
                    let Some(property) = schema["properties"].get(name) else {
                        return Some(format!("{name:?} is not in {schema}"));
                    };
                    if let Some(fault) = fault(root, property, value) {
                        return Some(fault);
                    }
                }
                let required = schema["required"].as_array().unwrap();
                required.iter().all(|name| fields.contains_key(name.as_str().unwrap()))
            }
            _ => false,
        };
    (!fits).then(|| format!("{value} does not fit {schema}"))
}

fn within(schema: &Value, number: f64) -> bool {
    number >= schema["minimum"].as_f64().unwrap() && number <= schema["maximum"].as_f64().unwrap()
}
