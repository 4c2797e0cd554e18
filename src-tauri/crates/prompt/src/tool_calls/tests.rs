use serde_json::{json, Value};

use super::*;

fn tools() -> Tools {
    Tools::new(&[
        json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
        "s": {"type": "string"}, "i": {"type": "integer"}, "x": {"type": ["number", "null"]}, "b": {"type": "boolean"},
        "l": {"type": "array"}, "o": {"anyOf": [{"type": "object"}, {"type": "null"}]}}}}}),
        json!({"type": "function", "function": {"name": "needy", "parameters": {"required": ["s", "more"]}}}),
    ])
}

fn closed(text: &str) -> Option<Value> {
    let around = CallContext {
        closed: true,
        ..CallContext::default()
    };
    read(text, &tools(), around).map(|reading| json!(reading.calls))
}

fn open(text: &str) -> Option<Value> {
    read(text, &tools(), CallContext::default()).map(|reading| json!([reading.calls, &text[reading.end..]]))
}

#[test]
fn elements_take_their_types_from_the_tools() {
    let coder = "\n<function=f>\n<parameter=s>\n12\n</parameter>\n<parameter=i>\n-12\n</parameter>\n<parameter=x>\nnull\n</parameter>\n<parameter=b>\nTrue\n</parameter>\n<parameter=l>\n['a', 1, None]\n</parameter>\n<parameter=o>\n{\"k\": [1]}\n</parameter>\n</function>\n";
    let read = json!([["f", {"s": "12", "i": -12, "x": null, "b": true, "l": ["a", 1, null], "o": {"k": [1]}}]]);
    assert_eq!(closed(coder), Some(read.clone()));
    let glm = "f\n<arg_key>s</arg_key>\n<arg_value>12</arg_value>\n<arg_key>i</arg_key>\n<arg_value>-12</arg_value>\n<arg_key>x</arg_key><arg_value>null</arg_value><arg_key>b</arg_key><arg_value>true</arg_value><arg_key>l</arg_key><arg_value>[\"a\", 1, null]</arg_value><arg_key>o</arg_key><arg_value>{\"k\": [1]}</arg_value>\n";
    assert_eq!(closed(glm), Some(read.clone()));
    // Without its closing marker it is whole if nothing is missing that the tool needs.
    assert_eq!(open(glm), Some(json!([read, ""])));
    assert_eq!(open(&glm.replacen('f', "needy", 1)), None);
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
    assert_eq!(
        closed("<function=f>{\"i\": 1}</function>"),
        Some(json!([["f", {"i": 1}]]))
    );
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
        (
            "functions.g:0<|tool_call_argument_begin|>{\"a\": 1}",
            json!([["g", {"a": 1}]]),
        ),
        ("a.g:12<|tool_call_argument_begin|>{}", json!([["a.g", {}]])),
        (
            "function<｜tool▁sep｜>g\n```json\n{\"a\": 1}\n```",
            json!([["g", {"a": 1}]]),
        ),
        ("g<｜tool▁sep｜>{\"a\": 1}", json!([["g", {"a": 1}]])),
        (
            "id1<|tool_call:name|>g<|tool_call:args|>{\"a\": 1}",
            json!([["g", {"a": 1}]]),
        ),
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
        (
            "[g(a={\"k\": true, \"l\": null})]",
            json!([["g", {"a": {"k": true, "l": null}}]]),
        ),
        (
            "brave_search.call(query=\"x y\")",
            json!([["brave_search", {"query": "x y"}]]),
        ),
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
        (
            "{ \"type\" : \"function\", \"name\": \"f\",",
            BareCall::Yes,
            BareCall::Yes,
        ),
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
