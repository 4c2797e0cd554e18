//! Tool calls as models write them, read into names and JSON arguments.
//!
//! What stands inside of a call shows in which form it is written, so that a model is understood even if its template
//! asks for another form than the one it was trained on.

mod elements;
mod gemma4;
mod json;
mod labelled;
mod namespaced;
mod nesting;
mod open_call;
mod pairs;
mod python;
mod schema;
mod tag;
mod tags;

use serde_json::{Map, Value};

pub(crate) use json::object;
use nesting::Notation;
pub(crate) use open_call::OpenCall;
use open_call::Shape;
pub(crate) use schema::Tools;

/// A call that was read: the tool's name and its arguments, a JSON object.
pub(crate) type Call = (String, Value);

/// What a text was found to hold.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedCalls {
    /// The calls, in order; at least one.
    pub calls: Vec<Call>,
    /// Where the last one ends in the text, in bytes.
    pub end: usize,
}

/// Deeper nesting is taken for broken.
const DEPTH: usize = 64;

/// What stands around a call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Surroundings {
    /// Whether the closing marker came: without it some forms cannot be told from cut-off ones, and words may follow.
    pub closed: bool,
    /// Whether there are no markers, so that the call ends by itself.
    pub unwrapped: bool,
    /// Whether the format writes values right between their tags, so that line ends belong to them.
    pub verbatim: bool,
}

/// The calls in what stands between the markers; `None` if it is not one complete call after the other.
pub(crate) fn read(body: &str, tools: &Tools, around: Surroundings) -> Option<ParsedCalls> {
    let closed = around.closed;
    let text = body.trim_start();
    let skipped = body.len() - text.len();
    let reading = match OpenCall::form_of(text, around.unwrapped) {
        Shape::Nested(Notation::Gemma) => gemma4::read(text),
        Shape::Nested(Notation::Json) => json::read(text, tools),
        Shape::Nested(Notation::Python) => python::calls(text),
        Shape::Nested(Notation::LabelledJson) => labelled::read(text),
        Shape::Elements => {
            let elements = text.strip_prefix(open_call::STEP3).unwrap_or(text);
            let skipped = text.len() - elements.len();
            let reading = elements::read(elements, tools, around);
            reading.map(|reading| ParsedCalls {
                end: reading.end + skipped,
                ..reading
            })
        }
        Shape::Namespaced => namespaced::read(text, tools),
        Shape::Pairs => pairs::read(text, tools).filter(|_| closed),
        Shape::Tags => tags::read(text, tools).filter(|_| closed),
        Shape::Name => pairs::name_alone(text, tools).filter(|_| closed),
    }?;
    let end = reading.end + skipped;
    (!closed || body[end..].trim().is_empty()).then_some(ParsedCalls { end, ..reading })
}

/// Adds an argument. One that is there already shows that a text was taken for the call's own words.
fn insert(arguments: &mut Map<String, Value>, key: &str, value: Value) -> Option<()> {
    arguments.insert(key.to_owned(), value).is_none().then_some(())
}

/// What closes a text in forms that cannot escape it.
const CLOSINGS: [&str; 28] = [
    "</parameter>",
    "</param>",
    "</function>",
    "</invoke>",
    "</arg_key>",
    "</arg_value>",
    "</｜DSML｜parameter>",
    "</｜DSML｜invoke>",
    "</｜DSML｜function>",
    "</｜DSML｜ parameter>",
    "</｜DSML｜ invoke>",
    "</atem:parameter>",
    "</atem:invoke>",
    "</atem:function>",
    "</longcat_arg_key>",
    "</longcat_arg_value>",
    "</steptml:parameter>",
    "</steptml:invoke>",
    "</ifm|arg_key>",
    "</ifm|arg_type>",
    "</ifm|arg_value>",
    "</arg_key:opensource>",
    "</arg_value:opensource>",
    "<|\"|>",
    "<escape>",
    "<|close|>argument",
    "<|close|>json",
    "]<]minimax[>[</",
];

/// Whether a call that was written like this may hold a text: something was opened in it after its first tag, or a quotation mark not closed.
pub(crate) fn may_hold_text(body: &str) -> bool {
    let body = body.trim_start();
    let inner = body.strip_prefix('<').unwrap_or(body).replace("</", "");
    let open = |mark| inner.matches(mark).count() % 2 == 1;
    inner.contains(['{', '[', '(', '<']) || open('"') || open('\'')
}

/// Whether what stands beside calls closes something that none of them opened; `closings` are the format's own, of which one may stand right
/// after a call, or several if they may be `repeated`.
pub(crate) fn is_torn(beside: &str, closings: &[&str], repeated: bool) -> bool {
    let after_closing = |text: &str| {
        let text = text.trim_start();
        closings.iter().find_map(|closing| text.strip_prefix(closing)).map(str::len)
    };
    let mut rest = beside.len();
    while let Some(after) = after_closing(&beside[beside.len() - rest..]) {
        rest = after;
        if !repeated {
            break;
        }
    }
    let rest = &beside[beside.len() - rest..];
    closings.iter().chain(&CLOSINGS).any(|closing| rest.contains(closing))
}

/// The one call of a tool that is named elsewhere.
pub(crate) fn read_arguments(name: &str, body: &str) -> Option<ParsedCalls> {
    let (arguments, end) = json::object(body)?;
    let whole = body[end..].trim().is_empty() && !name.is_empty();
    whole.then(|| ParsedCalls {
        calls: vec![(name.to_owned(), arguments)],
        end,
    })
}

/// Whether text without a marker before it is a call, as Llama 3 writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BareCall {
    /// It is not.
    No,
    /// More text will tell.
    Maybe,
    /// The name of a tool stands where one has to stand.
    Yes,
}

/// A call without a marker names its tool within so many bytes.
const LONGEST_BEGINNING: usize = 256;

/// Looks at the beginning of an answer: `{"name": "f"`, with a type before it or not, in a list or not, or `[f(`.
pub(crate) fn bare(text: &str, tools: &Tools) -> BareCall {
    let beginning = &text[..text.floor_char_boundary(LONGEST_BEGINNING)];
    let found = match beginning.trim_start() {
        "" => BareCall::Maybe,
        text if text.starts_with('{') => json::bare(text, tools),
        text if text.starts_with('[') => match text[1..].trim_start() {
            "" => BareCall::Maybe,
            inner if inner.starts_with('{') => json::bare(inner, tools),
            _ => python::bare(text, tools),
        },
        _ => BareCall::No,
    };
    if found == BareCall::Maybe && beginning.len() < text.len() {
        return BareCall::No;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tools() -> Tools {
        Tools::new(&[
            json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
            "s": {"type": "string"}, "i": {"type": "integer"}, "x": {"type": ["number", "null"]}, "b": {"type": "boolean"},
            "l": {"type": "array"}, "o": {"anyOf": [{"type": "object"}, {"type": "null"}]}}}}}),
        ])
    }

    fn closed(text: &str) -> Option<Value> {
        let around = Surroundings {
            closed: true,
            ..Surroundings::default()
        };
        read(text, &tools(), around).map(|reading| json!(reading.calls))
    }

    fn open(text: &str) -> Option<Value> {
        read(text, &tools(), Surroundings::default()).map(|reading| json!([reading.calls, &text[reading.end..]]))
    }

    #[test]
    fn elements_take_their_types_from_the_tools() {
        let coder = "\n<function=f>\n<parameter=s>\n12\n</parameter>\n<parameter=i>\n-12\n</parameter>\n<parameter=x>\nnull\n</parameter>\n<parameter=b>\nTrue\n</parameter>\n<parameter=l>\n['a', 1, None]\n</parameter>\n<parameter=o>\n{\"k\": [1]}\n</parameter>\n</function>\n";
        let read = json!([["f", {"s": "12", "i": -12, "x": null, "b": true, "l": ["a", 1, null], "o": {"k": [1]}}]]);
        assert_eq!(closed(coder), Some(read.clone()));
        let glm = "f\n<arg_key>s</arg_key>\n<arg_value>12</arg_value>\n<arg_key>i</arg_key>\n<arg_value>-12</arg_value>\n<arg_key>x</arg_key><arg_value>null</arg_value><arg_key>b</arg_key><arg_value>true</arg_value><arg_key>l</arg_key><arg_value>[\"a\", 1, null]</arg_value><arg_key>o</arg_key><arg_value>{\"k\": [1]}</arg_value>\n";
        assert_eq!(closed(glm), Some(read.clone()));
        // Cut off, it may have wanted to say more.
        assert_eq!(open(glm), None);
        let minimax = "\n<invoke name=\"f\">\n<parameter name=\"s\">12</parameter>\n<parameter name=\"i\">-12</parameter><parameter name=\"x\">null</parameter><parameter name=\"b\">true</parameter><parameter name=\"l\">[\"a\",1,null]</parameter><parameter name=\"o\">{\"k\": [1]}</parameter>\n</invoke>\n";
        assert_eq!(closed(minimax), Some(read));
    }

    #[test]
    fn element_values_may_hold_anything() {
        let code = "<function=f>\n<parameter=s>\n  if a < b:\n    return \"</parameter>\"\n\n</parameter>\n</function>";
        assert_eq!(
            closed(code),
            Some(json!([["f", {"s": "  if a < b:\n    return \"</parameter>\"\n"}]]))
        );
        // A closing tag that was forgotten.
        assert_eq!(
            closed("<function=f><parameter=s>\na\n<parameter=i>\n1\n</parameter></function>"),
            Some(json!([["f", {"s": "a", "i": 1}]]))
        );
        let dsml = "\n<｜DSML｜invoke name=\"g\">\n<｜DSML｜parameter name=\"a\" string=\"true\">1</｜DSML｜parameter>\n<｜DSML｜parameter name=\"b\" string=\"false\">[1]</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>\n";
        assert_eq!(closed(dsml), Some(json!([["g", {"a": "1", "b": [1]}], ["now", {}]])));
        assert_eq!(closed("<function=f>{\"i\": 1}</function>"), Some(json!([["f", {"i": 1}]])));
        assert_eq!(
            closed("<function name=\"g\"><param name=\"a\">x</param></function>"),
            Some(json!([["g", {"a": "x"}]]))
        );
        for text in [
            "<function=f>",
            "<function=f>\n<parameter=s>\na\n",
            "<function=>\n</function>",
            "<function",
            "<invoke name=\"f\">",
        ] {
            assert_eq!(closed(text), None, "{text}");
        }
    }

    #[test]
    fn a_tool_without_arguments_is_known_by_its_name() {
        assert_eq!(closed("f\n"), Some(json!([["f", {}]])));
        assert_eq!(closed("hello"), None);
        assert_eq!(open("f"), None);
    }

    #[test]
    fn labels_name_the_tool_before_its_arguments() {
        for (text, calls) in [
            ("g[ARGS]{\"a\": 1}", json!([["g", {"a": 1}]])),
            ("g[CALL_ID]123456789[ARGS]{\"a\": 1}", json!([["g", {"a": 1}]])),
            ("g{\"a\": 1}", json!([["g", {"a": 1}]])),
            (
                "[{\"name\": \"g\", \"arguments\": {\"a\": 1}, \"id\": \"123456789\"}]",
                json!([["g", {"a": 1}]]),
            ),
            ("functions.g:0<|tool_call_argument_begin|>{\"a\": 1}", json!([["g", {"a": 1}]])),
            ("a.g:12<|tool_call_argument_begin|>{}", json!([["a.g", {}]])),
            ("function<｜tool▁sep｜>g\n```json\n{\"a\": 1}\n```", json!([["g", {"a": 1}]])),
            ("g<｜tool▁sep｜>{\"a\": 1}", json!([["g", {"a": 1}]])),
            ("id1<|tool_call:name|>g<|tool_call:args|>{\"a\": 1}", json!([["g", {"a": 1}]])),
        ] {
            assert_eq!(closed(text), Some(calls), "{text}");
        }
        for text in [
            "g[ARGS]{\"a\"",
            "[ARGS]{}",
            "g[ARGS]",
            "functions.g:0<|tool_call_argument_begin|>1",
            "g<｜tool▁sep｜>",
        ] {
            assert_eq!(closed(text), None, "{text}");
        }
    }

    #[test]
    fn tags_say_the_types_themselves() {
        let text = "tool=\"g\" index=\"1\"<|sep|><|open|>argument key=\"a\" type=\"string\"<|sep|>1<|close|>argument<|sep|><|open|>argument key=\"b\" type=\"array\"<|sep|>[1]<|close|>argument<|sep|>";
        assert_eq!(closed(text), Some(json!([["g", {"a": "1", "b": [1]}]])));
        let text = "tool=\"g\" index=\"1\"<|sep|><|open|>json type=\"object\"<|sep|>{\"a\": 1}<|close|>json<|sep|>";
        assert_eq!(closed(text), Some(json!([["g", {"a": 1}]])));
        assert_eq!(closed("tool=\"g\" index=\"1\"<|sep|><|open|>argument key=\"a\""), None);
    }

    #[test]
    fn pythonic_calls_are_read() {
        for (text, calls) in [
            (
                "[g(a=1, b=\"x\\n\", c='it\\'s', d=[1, 2.5, None], e={'k': True}), now()]",
                json!([["g", {"a": 1, "b": "x\n", "c": "it's", "d": [1, 2.5, null], "e": {"k": true}}], ["now", {}]]),
            ),
            ("[g(a={\"k\": true, \"l\": null})]", json!([["g", {"a": {"k": true, "l": null}}]])),
            ("brave_search.call(query=\"x y\")", json!([["brave_search", {"query": "x y"}]])),
            ("[a.b(c=-1e3,)]", json!([["a.b", {"c": -1e3}]])),
        ] {
            assert_eq!(closed(text), Some(calls), "{text}");
        }
        for text in ["[g(1)]", "[g(a=1)", "[]", "[g]", "g(a=b)", "[g(a='x)]", "[1, 2]"] {
            assert_eq!(closed(text), None, "{text}");
        }
        assert_eq!(closed(&format!("[g(a={}", "[".repeat(100_000))), None);
    }

    #[test]
    fn words_may_follow_calls_that_nothing_closes() {
        assert_eq!(open("g[ARGS]{} done"), Some(json!([[["g", {}]], " done"])));
        assert_eq!(
            open("{\"name\": \"g\"}; {\"name\": \"h\"}\nx"),
            Some(json!([[["g", {}], ["h", {}]], "\nx"]))
        );
        assert_eq!(closed("{\"name\": \"g\"} x"), None);
    }

    #[test]
    fn bare_calls_name_a_tool_that_exists() {
        let (unknown, known) = (Tools::default(), tools());
        for (text, without, with) in [
            ("", BareCall::Maybe, BareCall::Maybe),
            ("{", BareCall::Maybe, BareCall::Maybe),
            ("{\"na", BareCall::Maybe, BareCall::Maybe),
            ("{\"name\": \"f\"", BareCall::Yes, BareCall::Yes),
            ("{ \"type\" : \"function\", \"name\": \"f\",", BareCall::Yes, BareCall::Yes),
            ("{\"type\": \"functio", BareCall::Maybe, BareCall::Maybe),
            ("{\"name\": \"Bob\"", BareCall::Yes, BareCall::No),
            ("{\"age\"", BareCall::No, BareCall::No),
            ("{}", BareCall::No, BareCall::No),
            ("[f", BareCall::Maybe, BareCall::Maybe),
            ("[f(", BareCall::Yes, BareCall::Yes),
            ("[bob(", BareCall::Yes, BareCall::No),
            ("[1", BareCall::No, BareCall::No),
            ("[link](x)", BareCall::No, BareCall::No),
            ("Hello", BareCall::No, BareCall::No),
        ] {
            assert_eq!((bare(text, &unknown), bare(text, &known)), (without, with), "{text}");
        }
    }
}
