//! JSON as Python's `json.dumps` writes it. Templates were written and models trained with that.

use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Error, ErrorKind};

use super::held::DEPTH;
use super::meter::{charged, too_long};
use super::python::{number, too_deep};

/// The layout of `json.dumps`.
struct Layout {
    item_separator: String,
    key_separator: String,
    indent: Option<String>,
    ensure_ascii: bool,
    sort_keys: bool,
}

/// The filter `tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false)` of transformers.
pub(super) fn tojson(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let named = |position: usize, name: &str| -> Result<Option<Value>, Error> {
        let given = args
            .get(position)
            .cloned()
            .map_or_else(|| kwargs.get::<Option<Value>>(name), |value| Ok(Some(value)));
        Ok(given?.filter(|value| !value.is_none()))
    };
    let text = dumps(value, named)?;
    kwargs.assert_all_used()?;
    charged(text)
}

/// `named` gives the arguments, by place or name.
fn dumps(value: &Value, named: impl Fn(usize, &str) -> Result<Option<Value>, Error>) -> Result<String, Error> {
    let indent = match named(1, "indent")? {
        Some(indent) if indent.as_str().is_some() => Some(indent.to_string().chars().take(64).collect()),
        Some(indent) => Some(" ".repeat(usize::try_from(indent)?.min(64))),
        None => None,
    };
    let separators: Option<Vec<String>> = match named(2, "separators")? {
        Some(both) => Some(both.try_iter()?.map(|one| one.to_string()).collect()),
        None => None,
    };
    let (item_separator, key_separator) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        Some(_) => return Err(Error::new(ErrorKind::InvalidOperation, "separators must be two texts")),
        None if indent.is_some() => (",".into(), ": ".into()),
        None => (", ".into(), ": ".into()),
    };
    let layout = Layout {
        item_separator,
        key_separator,
        indent,
        ensure_ascii: named(0, "ensure_ascii")?.is_some_and(|yes| yes.is_true()),
        sort_keys: named(3, "sort_keys")?.is_some_and(|yes| yes.is_true()),
    };
    let mut text = String::new();
    write_json(&mut text, value, &layout, 0)?;
    Ok(text)
}

fn write_json(out: &mut String, value: &Value, layout: &Layout, depth: usize) -> Result<(), Error> {
    too_long(out.len())?;
    if depth > DEPTH {
        return Err(too_deep());
    }
    match value.kind() {
        ValueKind::None | ValueKind::Undefined => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&match number(value).as_str() {
            "inf" => "Infinity".to_owned(),
            "-inf" => "-Infinity".to_owned(),
            "nan" => "NaN".to_owned(),
            plain => plain.to_owned(),
        }),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            write_items(out, ('[', ']'), items.iter(), layout, depth, |out, item| {
                write_json(out, item, layout, depth + 1)
            })?;
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if layout.sort_keys {
                keys.sort();
            }
            write_items(out, ('{', '}'), keys.iter(), layout, depth, |out, key| {
                let name = match key.kind() {
                    ValueKind::None => "null".to_owned(),
                    ValueKind::Bool => key.is_true().to_string(),
                    _ => key.to_string(),
                };
                write_json_string(out, &name, layout.ensure_ascii);
                out.push_str(&layout.key_separator);
                write_json(out, &value.get_item(key)?, layout, depth + 1)
            })?;
        }
        _ => write_json_string(out, &value.to_string(), layout.ensure_ascii),
    }
    Ok(())
}

fn write_items<'a>(
    out: &mut String,
    (open, close): (char, char),
    items: impl Iterator<Item = &'a Value>,
    layout: &Layout,
    depth: usize,
    mut write: impl FnMut(&mut String, &Value) -> Result<(), Error>,
) -> Result<(), Error> {
    let new_line = |out: &mut String, depth: usize| {
        if let Some(indent) = &layout.indent {
            out.push('\n');
            out.push_str(&indent.repeat(depth));
        }
    };
    out.push(open);
    let mut empty = true;
    for item in items {
        if !empty {
            out.push_str(&layout.item_separator);
        }
        empty = false;
        new_line(out, depth + 1);
        write(out, item)?;
    }
    if !empty {
        new_line(out, depth);
    }
    out.push(close);
    Ok(())
}

fn write_json_string(out: &mut String, text: &str, ensure_ascii: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (ensure_ascii && c > '~') => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::value::Serde;
    use serde_json::json;

    fn dumps(value: serde_json::Value, kwargs: &[(&str, Value)]) -> String {
        let named = |_: usize, name: &str| {
            let given = kwargs.iter().find(|(key, _)| *key == name);
            Ok(given.map(|(_, value)| value.clone()))
        };
        super::dumps(&Value::from(Serde(&value)), named).unwrap()
    }

    // The expected texts are what Python 3's json.dumps(…, ensure_ascii=False) prints.
    #[test]
    fn json_is_laid_out_as_python_does() {
        let value =
            json!({"b": [1, 2.0, 1e-7, 1e16, -0.5, true, null], "a": {"ü": "<&'\"\\\n\u{1}>"}, "e": [], "o": {}});
        assert_eq!(
            dumps(value.clone(), &[]),
            r#"{"b": [1, 2.0, 1e-07, 1e+16, -0.5, true, null], "a": {"ü": "<&'\"\\\n\u0001>"}, "e": [], "o": {}}"#
        );
        assert_eq!(
            dumps(
                value.clone(),
                &[
                    ("separators", Value::from(vec![",", ":"])),
                    ("sort_keys", Value::from(true)),
                    ("ensure_ascii", Value::from(true))
                ]
            ),
            r#"{"a":{"\u00fc":"<&'\"\\\n\u0001>"},"b":[1,2.0,1e-07,1e+16,-0.5,true,null],"e":[],"o":{}}"#
        );
        assert_eq!(
            dumps(json!({"a": [1, {}], "b": []}), &[("indent", Value::from(2))]),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}"
        );
        assert_eq!(
            dumps(json!("🐱"), &[("ensure_ascii", Value::from(true))]),
            r#""\ud83d\udc31""#
        );
    }
}
