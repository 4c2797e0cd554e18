//! Sources that are hard to compile, and what a template is not to see.

use super::pattern::{ends, forever, refused, Pattern};

pub const PATTERNS: &[Pattern] = &[
    ends("deep brackets", |random| {
        let (open, close) = [
            ("(", ")"),
            ("[", "]"),
            ("{'a': ", "}"),
            ("f(", ")"),
            ("a[", "]"),
            ("x|f(", ")"),
            ("-", ""),
            ("not ", ""),
            ("x.y(", ")"),
            ("x is in [", "]"),
            ("1 if ", ""),
        ][random.within(0, 11)];
        // Some at the limits of what is compiled, some far beyond.
        let depth = [random.within(50, 500), random.within(50, 200_000)][random.within(0, 2)];
        format!("{{{{ {}1{} }}}}", open.repeat(depth), close.repeat(depth))
    }),
    ends("deep statements", |random| {
        let (open, close) = [
            ("{% if true %}", "{% endif %}"),
            ("{% for x in [1] %}", "{% endfor %}"),
            ("{% with x = 1 %}", "{% endwith %}"),
            ("{% macro m() %}", "{% endmacro %}"),
            ("{% filter upper %}", "{% endfilter %}"),
            ("{% set x %}", "{% endset %}"),
            ("{% call m() %}", "{% endcall %}"),
            ("{% generation %}", "{% endgeneration %}"),
            ("{% autoescape true %}", "{% endautoescape %}"),
            ("{% block a %}", "{% endblock %}"),
            ("{% if x %}{% elif y %}", "{% endif %}"),
            ("{% for x in [1] recursive %}", "{% endfor %}"),
        ][random.within(0, 12)];
        let depth = random.within(50, 30_000);
        format!("{}{}", open.repeat(depth), close.repeat(depth))
    }),
    ends("long chains", |random| {
        let link = random.one(&[
            "-1",
            "+1",
            "~1",
            "*1",
            "/1",
            "%2",
            "**1",
            "//1",
            " or x",
            " and x",
            "|string",
            ".a",
            "[0]",
            "['a']",
            "[x]",
            "[1:]",
            "()",
            " is defined",
            " == 1",
            " < 1",
            " in x",
            " if x else 1",
            "|default(1)",
            ".a()",
            " 'a'",
            ", 1",
            " not in x",
            "~'a'",
        ]);
        format!(
            "{{{{ 1{} }}}}",
            link.repeat([random.within(80, 500), 1_000_000 / link.len()][random.within(0, 2)])
        )
    }),
    ends("many of one", |random| {
        let one = random.one(&[
            "{{ 1 }}",
            "{% if 1 %}{% endif %}",
            "{# x #}",
            "{",
            "{ %",
            "\n",
            "{% raw %}{% endraw %}",
            "{{ 'a' }}\n",
            "{%- set x = 1 -%}",
            "x{{ y }}",
            "{% elif x %}",
            "{% else %}",
            "{% block a %}{% endblock %}",
            "{% macro m() %}{% endmacro %}",
            "  \n",
            "{% set x = [1, 2] %}",
            "a{% for x in y %}{% endfor %}",
            "{{ '\\'' }}",
            "{% raw %}",
            "{{ {}|tojson }}",
            "é\r\n",
            "{% call m() %}{% endcall %}",
        ]);
        one.repeat(900_000 / one.len() + random.within(0, 5))
    }),
    ends("long literals", |random| {
        let one = random.one(&[
            "1,", "'a',", "x,", "[],", "[x],", "'a': 1,", "'a': x,", "(1,),", "*x,", "a=1,",
        ]);
        let (open, close) = [
            ("[", "]"),
            ("{", "}"),
            ("(", ")"),
            ("f(", ")"),
            ("namespace(", ")"),
            ("x|f(", ")"),
        ][random.within(0, 6)];
        format!("{{% set y = {open}{}{close} %}}", one.repeat(900_000 / one.len()))
    }),
    ends("long names and numbers", |random| {
        let name = random
            .one(&["a", "9", "é", "_", "0x9", "1e9", "'a'", "a.b"])
            .repeat(random.within(1000, 300_000));
        let body = random.one(&[
            "{{ N }}",
            "{% set N = 1 %}{{ N }}",
            "{{ x.N }}",
            "{{ x|N }}",
            "{{ 1 is N }}",
            "{{ messages[0]['N'] }}",
            "{% macro N() %}{% endmacro %}",
            "{{ f(N=1) }}",
            "{% for N in [1] %}{% endfor %}",
        ]);
        format!(
            "{{% for i in range(99999) %}}{}{{% endfor %}}",
            body.replace('N', &name)
        )
    }),
    refused("closures and macros in loops", |random| {
        let body = random.one(&[
            "{% macro m() %}{{ s }}{{ a }}{% endmacro %}",
            "{% call(x) m2() %}{{ s }}{{ b }}{% endcall %}",
            "{% macro m(a, b, c=s) %}{{ s }}{% endmacro %}{% set x = m(1, 2) %}",
        ]);
        format!(
            "{{% macro m2() %}}{{{{ caller(1) }}}}{{% endmacro %}}{{% set s = 'a' * 1000 %}}{}",
            forever(body)
        )
    }),
    refused("what others see", |random| {
        random
            .one(&[
                "{% include 'default' %}",
                "{% import 'default' as x %}",
                "{% from 'default' import x %}",
                "{% extends 'default' %}",
                "{{ debug() }}",
                "{{ raise_exception('a' * 9999999) }}",
                "{{ raise_exception(messages * 99999) }}",
                "{{ strftime_now('%c' * 4000000) }}",
                "{{ self }}{{ x.y.z }}",
                "{{ ('a' * 9000000)|zz }}",
                "{{ 1 // 0 }}",
                "{{ [1]|batch(0) }}",
                "{{ loop.cycle() }}",
                "{% for x in [1] %}{{ loop.cycle() }}{% endfor %}",
                "{{ __ponder_keep(1) }}",
                "{{ 9223372036854775807 * 9223372036854775807 * 9223372036854775807 * 9223372036854775807 }}",
                "{{ -9223372036854775808 // -1 ~ zz.y }}",
                "{{ range(-9223372036854775807, 9223372036854775807) }}",
                "{{ 'a'[:9223372036854775807:0] }}",
            ])
            .to_owned()
    }),
    ends("odd letters", |random| {
        let letters = random
            .one(&[
                "\u{0}",
                "\u{FEFF}",
                "\u{202E}",
                "ﬃ",
                "İ",
                "ß",
                "\u{10FFFF}",
                "\u{FDD0}",
                "a\u{300}",
                "𝒳",
                "\u{2028}",
                "%}",
                "{{",
                "#}",
            ])
            .repeat(random.within(1, 20_000));
        let filter = random.one(&[
            "upper",
            "lower",
            "title",
            "capitalize",
            "tojson",
            "urlencode",
            "e",
            "trim",
            "wordcount",
            "length",
            "reverse",
            "indent",
            "list",
            "int",
            "striptags",
            "truncate(9)",
            "center(99)",
        ]);
        format!(
            "{{% set s = '{}' %}}{{{{ s|{filter} }}}}{}",
            letters.replace('\'', ""),
            forever(&format!("{{% set x = s|{filter} %}}"))
        )
    }),
    ends("tags that do not end", |random| {
        let open = random.one(&[
            "{{ ",
            "{% ",
            "{# ",
            "{{ '",
            "{% raw %}",
            "{% if x %}",
            "{% for x in y %}",
            "{{ (",
            "{{ [",
            "{% set x %}",
            "{{ \"\\",
            "{%- if",
            "{{ {",
        ]);
        open.repeat(random.within(1, 100_000))
    }),
];
