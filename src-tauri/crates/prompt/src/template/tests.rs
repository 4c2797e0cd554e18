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
    assert_eq!(protocol::Error::from(error).code, protocol::ErrorCode::TemplateRefused);
}

#[test]
fn a_template_that_does_not_end_is_stopped() {
    let source = "{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}";
    assert!(matches!(render(source, json!({})), Err(Error::TemplateEndless)));
    let source = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
    assert!(matches!(render(source, json!({})), Err(Error::TemplateFailed(_))));
}

/// Ways to fill the memory with few instructions: each is stopped after half a gigabyte at most.
#[test]
fn a_template_that_builds_too_much_is_stopped() {
    let double = |operation: &str| {
        format!("{{% set n = namespace(s='abcdefgh') %}}{{% for i in range(64) %}}{{% set n.s = {operation} %}}{{% endfor %}}{{{{ n.s|length }}}}")
    };
    for source in [
        double("n.s + n.s"),
        double("n.s ~ n.s"),
        double("n.s * 2"),
        double("[n.s, n.s]|join"),
        double("''.join([n.s, n.s])"),
        double("n.s|replace('a', n.s)"),
        double("n.s.replace('a', n.s)"),
        double("'%s%s' % (n.s, n.s)"),
        double("'%s%s'|format(n.s, n.s)"),
        double("'{}{}'.format(n.s, n.s)"),
        double("[n.s, n.s]|tojson"),
        double("([n.s] * 4)|string"),
        double("n.s|indent('        ', true) ~ n.s"),
        "{% set n = namespace(l=[1]) %}{% for i in range(64) %}{% set n.l = n.l + n.l %}{% endfor %}".into(),
        "{% set n = namespace(l=[1]) %}{% for i in range(64) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}".into(),
        "{% macro m(s, n) %}{% if n %}{{ m(s ~ s, n - 1) }}{% else %}{{ s }}{% endif %}{% endmacro %}{{ m('abcdefgh', 40) }}".into(),
        "{% set n = namespace(s='abcdefgh') %}{% for i in range(64) %}{% set x %}{{ n.s }}{{ n.s }}{% endset %}{% set n.s = x %}{% endfor %}".into(),
        "{{ 'a' * 10000000000 }}".into(),
        "{{ 'a'.ljust(10000000000) }}".into(),
        "{{ '%10000000000d' % 1 }}".into(),
        "{{ '{:>9999999999}'.format(1) }}".into(),
        "{{ 'a'|center(10000000000) }}".into(),
        "{{ ([1] * 10000000000)|length }}".into(),
        format!("{{% set x %}}{{% for i in range(99999) %}}{}{{% endfor %}}{{% endset %}}", "abc ".repeat(5000)),
        format!("{{% for i in range(99999) %}}{}{{% endfor %}}", "abc ".repeat(5000)),
        "{% for i in range(99999) %}{{ 'a' * 30000 }}{% endfor %}".into(),
        "{% set s = 'a' * 1000000 %}{% for x in [s] * 90000 %}{{ x|upper|length }}{% endfor %}".into(),
        "{% set s = 'a' * 1000000 %}{{ ([s] * 90000)|map('upper')|list|length }}".into(),
        "{% set s = 'a ' * 1000000 %}{% for x in [s] * 90000 %}{{ x.split()|length }}{% endfor %}".into(),
    ] {
        let started = std::time::Instant::now();
        let result = render(&source, json!({}));
        let shown: String = source.chars().take(120).collect();
        let outcome = format!("{:?}", result.as_ref().map(String::len));
        println!("{:.2} s {outcome} {shown}", started.elapsed().as_secs_f64());
        assert!(matches!(result, Err(Error::TemplateEndless | Error::TemplateFailed(_))), "{shown}: {outcome}");
        assert!(started.elapsed().as_secs() < 60, "{shown}");
    }
}

#[test]
fn generation_blocks_are_plain_blocks() {
    assert_eq!(
        render("[{% generation %}\n  x{%- endgeneration %}]", json!({})).unwrap(),
        "[  x]"
    );
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
        render(
            "{{ none is iterable }} {{ 'ab' is iterable }} {{ 1.0 | string + 'x' }}",
            json!({})
        )
        .unwrap(),
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
    assert_eq!(
        render("{% if true %}\n  a\n  {% endif %}\nb\n", json!({})).unwrap(),
        "  a\nb"
    );
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
    let sources =
        json!([{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain {{ bos_token }}"}]);
    let variables =
        special_tokens(&json!({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "model_max_length": 5}));
    let template = Template::new(&sources, variables).unwrap();
    assert_eq!(template.render(Map::new()).unwrap(), "plain <s>");
    assert_eq!(
        template
            .render(json!({"tools": [{}]}).as_object().unwrap().clone())
            .unwrap(),
        "tools"
    );
    assert_eq!(template.hash().len(), 64);
}

#[test]
fn templates_lie_in_several_files() {
    let dir = tempfile::tempdir().unwrap();
    let open = |config: Value| Template::open(dir.path(), &config).unwrap();
    let tools = json!({"tools": [{}]});
    let with_tools = |template: &Template| template.render(tools.as_object().unwrap().clone()).unwrap();
    assert_eq!(
        with_tools(&open(json!({"chat_template": "from the config"}))),
        "from the config"
    );
    std::fs::write(
        dir.path().join("chat_template.json"),
        r#"{"chat_template": "from the processor"}"#,
    )
    .unwrap();
    assert_eq!(
        with_tools(&open(json!({"chat_template": "from the config"}))),
        "from the processor"
    );
    std::fs::write(dir.path().join("chat_template.jinja"), "from its file").unwrap();
    assert_eq!(
        with_tools(&open(json!({"chat_template": "from the config"}))),
        "from its file"
    );
    std::fs::create_dir(dir.path().join("additional_chat_templates")).unwrap();
    std::fs::write(dir.path().join("additional_chat_templates/tool_use.jinja"), "for tools").unwrap();
    let template = open(json!({}));
    assert_eq!(with_tools(&template), "for tools");
    assert_eq!(template.render(Map::new()).unwrap(), "from its file");

    let config = dir.path().join("tokenizer_config.json");
    std::fs::write(&config, r#"{"bos_token": "<s>", "chat_template": "{{ bos_token }}!"}"#).unwrap();
    assert_eq!(
        Template::open_file(&config).unwrap().render(Map::new()).unwrap(),
        "<s>!"
    );
    assert_eq!(
        with_tools(&Template::open_file(&dir.path().join("chat_template.jinja")).unwrap()),
        "from its file"
    );
}

#[test]
fn a_model_without_a_template_says_so() {
    assert!(matches!(
        Template::new(&Value::Null, Map::new()),
        Err(Error::NoTemplate)
    ));
    assert!(matches!(
        Template::new(&json!("{% if %}"), Map::new()),
        Err(Error::TemplateSyntax(_))
    ));
}

/// A loop of cheap steps, which fuel alone ends late.
const SLOW: &str =
    "{% for a in range(99999) %}{% for b in range(20) %}{% if b is odd %}{% endif %}{% endfor %}{% endfor %}";

#[test]
fn renderings_end_when_their_time_is_over_or_nobody_waits() {
    let template = Template::new(&json!(SLOW), Map::new()).unwrap();
    let render = |limits: RenderLimits| {
        let started = std::time::Instant::now();
        let rendered = limits.within(|| [template.render(Map::new()), template.render(Map::new())]);
        assert!(started.elapsed().as_secs() < 5);
        rendered
    };
    let short = RenderLimits::request().lasting(std::time::Duration::from_millis(5));
    for rendered in render(short) {
        assert!(matches!(rendered, Err(Error::TemplateEndless)), "{rendered:?}");
    }
    for rendered in render(RenderLimits::request().cancelled_by(|| true)) {
        assert!(matches!(rendered, Err(Error::TemplateCancelled)), "{rendered:?}");
    }
    let error = protocol::Error::from(Error::TemplateCancelled);
    assert_eq!(error.code, protocol::ErrorCode::Stopped);
}

#[test]
fn values_are_nested_to_a_depth() {
    let nested = |levels: usize| {
        let source = format!(
            "{{% set n = namespace(l=[]) %}}{{% for i in range({levels}) %}}{{% set n.l = [n.l] %}}{{% endfor %}}{{{{ n.l }}}}{{{{ n.l|tojson }}}}"
        );
        render(&source, json!({}))
    };
    assert_eq!(nested(100).unwrap().len(), 2 * 202);
    assert!(matches!(nested(300), Err(Error::TemplateFailed(_))));
    let mut deep = json!(1);
    for _ in 0..1000 {
        deep = json!([deep]);
    }
    assert!(render("{{ messages }}", json!({"messages": deep})).is_err());
}

#[test]
fn a_long_source_is_prepared_at_once() {
    for source in [
        format!("{{{{ 1{} }}}}", "-1".repeat(500_000)),
        "{{ 1-1 }}".repeat(110_000),
    ] {
        let started = std::time::Instant::now();
        let _ = Template::new(&json!(source), Map::new());
        assert!(started.elapsed().as_secs() < 5);
    }
    assert!(Template::new(&json!("a".repeat(3 << 20)), Map::new()).is_err());
}
