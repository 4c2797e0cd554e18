use serde_json::json;

use super::*;

fn render(source: &str, variables: Value) -> Result<String> {
    Template::new(&json!(source), Map::new())?.render(variables.as_object().cloned().unwrap_or_default())
}

#[test]
fn a_refusal_keeps_its_words() {
    let error = render(
        "{% macro m() %}{{ raise_exception('Roles must alternate') }}{% endmacro %}{{ m() }}",
        json!({}),
    )
    .unwrap_err();
    assert!(
        matches!(&error, Error::TemplateRefused(message) if message == "Roles must alternate"),
        "{error:?}"
    );
    assert_eq!(protocol::Error::from(error).code, protocol::Code::TemplateRefused);
}

#[test]
fn a_template_that_does_not_end_is_stopped() {
    let source = "{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}";
    assert!(matches!(render(source, json!({})), Err(Error::TemplateEndless)));
    let source = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
    assert!(matches!(render(source, json!({})), Err(Error::TemplateFailed(_))));
}

#[test]
fn generation_blocks_are_plain_blocks() {
    let source = "a {%- generation -%} b {% endgeneration %}\nc {{ '{% generation %}' }}";
    assert_eq!(
        without_generation_tags(source),
        "a {%- if true -%} b {% endif %}\nc {{ '{% if true %}' }}"
    );
    assert_eq!(render("[{% generation %}\n  x{%- endgeneration %}]", json!({})).unwrap(), "[  x]");
}

#[test]
fn python_habits_hold() {
    assert_eq!(
        render(
            "{{ none }} {{ true }} {{ x }} {{ y }} {{ [1, 'a', none] }}",
            json!({"x": 1e-7, "y": 2.0})
        )
        .unwrap(),
        "None True 1e-07 2.0 [1, 'a', None]"
    );
    assert_eq!(
        render("{{ none is iterable }} {{ 'ab' is iterable }} {{ 1.0 | string + 'x' }}", json!({})).unwrap(),
        "False True 1.0x"
    );
    assert_eq!(
        render(
            "{{ m | tojson }} {{ 'a-b'.split('-')[1].upper() }}",
            json!({"m": {"q": "<'&ü>", "a": [1]}})
        )
        .unwrap(),
        r#"{"q": "<'&ü>", "a": [1]} B"#
    );
    assert_eq!(render("{% if true %}\n  a\n  {% endif %}\nb\n", json!({})).unwrap(), "  a\nb");
    assert_eq!(
        render(
            "{% for i in [1,2,3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}",
            json!({})
        )
        .unwrap(),
        "1"
    );
}

#[test]
fn indent_keeps_the_last_newline() {
    let source = r"{{ '{\n'|indent(4, first=true) }}|{{ 'a\n\nb'|indent(2) }}|{{ 'a\n\nb'|indent('>', blank=true) }}|{{ 'a\nb'|indent }}";
    assert_eq!(render(source, json!({})).unwrap(), "    {\n|a\n\n  b|a\n>\n>b|a\n    b");
}

#[test]
fn the_date_is_todays() {
    let date = render("{{ strftime_now('%Y-%m-%d') }}", json!({})).unwrap();
    assert_eq!(date, jiff::Zoned::now().date().to_string());
}

#[test]
fn the_tool_template_is_for_tools() {
    let sources = json!([{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain {{ bos_token }}"}]);
    let variables = special_tokens(&json!({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "model_max_length": 5}));
    let template = Template::new(&sources, variables).unwrap();
    assert_eq!(template.render(Map::new()).unwrap(), "plain <s>");
    assert_eq!(
        template.render(json!({"tools": [{}]}).as_object().unwrap().clone()).unwrap(),
        "tools"
    );
    assert_eq!(template.hash().len(), 64);
}

#[test]
fn a_model_without_a_template_says_so() {
    assert!(matches!(Template::new(&Value::Null, Map::new()), Err(Error::NoTemplate)));
    assert!(matches!(
        Template::new(&json!("{% if %}"), Map::new()),
        Err(Error::TemplateSyntax(_))
    ));
}
