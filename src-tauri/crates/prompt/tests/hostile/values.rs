//! Values that grow, nest and are read without end.

use super::pattern::{ends, forever, long, namespace, refused, Pattern};

pub const PATTERNS: &[Pattern] = &[
    refused("a nest in a namespace", |random| {
        let nest = random.one(&[
            "[n.l]",
            "{'a': n.l}",
            "(n.l,)",
            "[[n.l]]",
            "dict(a=n.l)",
            "[n.l]|list",
            "{'a': n.l}|items|list",
            "[n.l]|map('list')|list",
            "[n.l, 1]|batch(1)|list",
            "[[n.l]]|sum(start=[])|batch(2)|list",
            "[n.l]|reverse",
            "[n.l]|reverse|list|reverse",
            "(n.l, 1)",
            "[n.l]|slice(1)|list",
            "[n.l]|zip([1])|list",
            "[n.l]|chain([1])",
            "[n.l] + [1]",
            "[n.l][0:]",
            "[n.l] * 1",
            "{'a': n.l}.items()",
            "{'a': n.l}.values()",
            "[{'k': 1, 'v': n.l}]|groupby('k')",
            "{'a': n.l}|dictsort",
            "[n.l]|unique(attribute='x')",
            "[n.l]|select|reject('none')|list",
            "{**n.l}",
            "[n.l]|map('default', [1])|list",
            "((n.l, 1), 2)",
        ]);
        namespace("l=[]", &format!("{{% set n.l = {nest} %}}"))
    }),
    refused("a nest that is printed", |random| {
        let print = random.one(&[
            "n.l",
            "n.l|tojson",
            "n.l|string",
            "n.l ~ 'a'",
            "n.l|pprint",
            "[n.l]|join",
            "n.l|length",
            "n.l == [n.l]",
            "n.l in [n.l]",
            "n.l|upper",
            "'%s' % n.l",
        ]);
        let times = random.within(1000, 90_000);
        format!("{{% set n = namespace(l=[]) %}}{{% for a in range({times}) %}}{{% for b in range(30) %}}{{% set n.l = [n.l] %}}{{% endfor %}}{{% endfor %}}{{{{ {print} }}}}")
    }),
    refused("a nest in a row", |random| {
        let nest = random.one(&["[x]", "{'a': x}", "x, 1", "(x,)", "dict(a=x)", "[x]|list"]);
        format!(
            "{{% set x = 1 %}}{}{{{{ x }}}}",
            format!("{{% set x = {nest} %}}").repeat(random.within(2000, 20_000))
        )
    }),
    refused("a nest of namespaces", |random| {
        let nest = random.one(&[
            "n.x = m",
            "n.x = [m]",
            "n.x = n",
            "n.x = [n]",
            "n.x, n.y = n, [n]",
            "n.x = namespace(x=n)",
            "n.x = {'a': (n, 1)}",
            "n.x = cycler(n)",
        ]);
        namespace(
            "",
            &format!("{{% set m = namespace(x=n.x) %}}{{% set {nest} %}}{{% set n = m %}}{{{{ n }}}}"),
        )
    }),
    refused("a loop that holds itself", |random| {
        let kept = random.one(&["n.l", "[n.l]", "n.l, loop", "*[loop]", "[loop]"]);
        format!("{{% set n = namespace(l=[]) %}}{{% for a in range(99999) %}}{{% for b in [1, 2] %}}{{% set x = loop.changed({kept}) %}}{{% set n.l = [loop] %}}{{% endfor %}}{{% endfor %}}")
    }),
    refused("a list that doubles", |random| {
        let twice = random.one(&[
            "[n.l, n.l]",
            "(n.l, n.l)",
            "{'a': n.l, 'b': n.l}",
            "n.l + n.l",
            "n.l * 2",
            "[n.l]|chain([n.l])|list",
            "[n.l, n.l]|list",
        ]);
        let after = random.one(&[
            "",
            "{{ n.l == m.l }}",
            "{{ n.l }}",
            "{{ n.l|tojson }}",
            "{{ [n.l, m.l]|unique|list|length }}",
            "{{ [n.l, m.l]|sort }}",
            "{{ {n.l: 1} }}",
            "{{ n.l in [m.l] }}",
        ]);
        format!("{{% set n = namespace(l=[1]) %}}{{% set m = namespace(l=[1]) %}}{{% for i in range(120) %}}{{% set n.l = {twice} %}}{{% set m.l = {} %}}{{% endfor %}}{after}", twice.replace("n.l", "m.l"))
    }),
    refused("a macro that calls itself", |random| {
        let call = random.one(&["m([x])", "m(x)", "m(x) ~ m(x)", "m({'a': x})", "caller()", "m(x=[x])"]);
        format!("{{% macro m(x) %}}{{{{ {call} }}}}{{% endmacro %}}{{% call m([1]) %}}{{{{ m([1]) }}}}{{% endcall %}}")
    }),
    refused("a tree of macros", |random| {
        let body = "{{ m(n - 1) }}".repeat(random.within(2, 12));
        format!("{{% macro m(n) %}}{{% if n > 0 %}}{body}{{% endif %}}{{% endmacro %}}{{{{ m(40) }}}}")
    }),
    refused("macros that call the next one twice", |random| {
        let count = random.within(30, 45);
        let macros: String = (0..count)
            .map(|number| {
                format!(
                    "{{% macro m{number}() %}}{{{{ m{0}() }}}}{{{{ m{0}() }}}}{{% endmacro %}}",
                    number + 1
                )
            })
            .collect();
        format!("{macros}{{% macro m{count}() %}}x{{% endmacro %}}{{{{ m0() }}}}")
    }),
    ends("a loop that recurses", |random| {
        let body = random.one(&["{{ loop([1, 2]) }}", "{{ loop(x) }}", "{{ loop([x]) }}"]);
        format!("{{% for x in [[1, 2], [3]] recursive %}}{body}{{% endfor %}}")
    }),
    refused("loops without end", |random| {
        let body = random.one(&[
            "",
            "{% if zz %}{% endif %}",
            "{% set x = a %}",
            "{{ a }}",
            "{% if a == b %}{% endif %}",
            "{% for c in [1,2,3] %}{% if c is odd %}{% endif %}{% endfor %}",
            "{% with y = 1 %}{% if y %}{% endif %}{% endwith %}",
        ]);
        forever(body)
    }),
    refused("deep frames and lookups", |random| {
        let depth = random.within(60, 100);
        let body = forever("{% if x0 == zz %}{% endif %}");
        format!(
            "{{% set x0 = 1 %}}{}{body}{}",
            "{% with y = 1 %}".repeat(depth),
            "{% endwith %}".repeat(depth)
        )
    }),
    refused("long texts, looked through without end", |random| {
        let look = random.one(&[
            "s|wordcount",
            "s|length",
            "s|int",
            "s|float",
            "s[1:]",
            "s[-1]",
            "s[5:-3:2]",
            "s == t",
            "s != t",
            "s < t",
            "'zz' in s",
            "s in t",
            "s.find('zz')",
            "s.count('zz')",
            "s.strip()",
            "s.strip(t)",
            "s|trim(t)",
            "s.split('zz')",
            "s.splitlines()",
            "s.upper()|length",
            "s|upper|length",
            "s|e|length",
            "s|reverse|length",
            "s is upper",
            "s is eq(t)",
            "s is in(t)",
            "s.endswith('b')",
            "s.startswith(t)",
            "s|replace('zz', 'y')|length",
            "s|urlencode|length",
            "s|tojson|length",
            "s|string|length",
            "s|title|length",
            "s.title()|length",
            "s.isalnum()",
            "s|first",
            "s|last",
            "s|list|length",
            "s|hash",
            "s|indent|length",
            "s|striptags",
            "s|truncate(5)",
            "s|center(5)|length",
            "'%s' % s",
            "'{}'.format(s)",
            "s.replace('zz', '')|length",
            "s.rsplit('zz')",
            "s.partition('zz')",
            "s.casefold()|length",
            "s is startingwith(t)",
            "{s: 1}[s]",
            "[s, t]|unique|length",
            "[s, t]|sort|length",
            "[s]|join(t)|length",
            "[s, t]|max",
            "{'a': s} == {'a': t}",
            "[s] == [t]",
            "s|safe|length",
            "s|capitalize|length",
            "s.removeprefix(t)",
            "s.zfill(5)|length",
            "s.expandtabs()|length",
            "s.isidentifier()",
            "s[99999999]",
            "s.index('zz')",
        ]);
        let long = long(random);
        let body = random
            .one(&["{% if LOOK %}{% endif %}", "{% set x = LOOK %}", "{{ LOOK }}"])
            .replace("LOOK", look);
        format!("{long}{}{}", long.replace("set s", "set t"), forever(&body))
    }),
    ends("long texts, looked through in a row", |random| {
        let look = random.one(&[
            "s[-1]",
            "s == t",
            "'zz' in s",
            "s|length",
            "s is upper",
            "s[1:]",
            "s|int",
            "s in t",
            "s < t",
            "[s] == [t]",
            "s|wordcount",
        ]);
        let long = long(random);
        let rows = format!("{{% if {look} %}}{{% endif %}}").repeat(random.within(5000, 30_000));
        format!("{long}{}{rows}", long.replace("set s", "set t"))
    }),
    refused("long texts, kept", |random| {
        let keep = random.one(&[
            "[n.l, s[1:]]",
            "n.l + [s[1:]]",
            "n.l + [s|reverse]",
            "[n.l, s|upper]",
            "n.l + [s|safe]",
            "n.l + s.split('zz')",
            "n.l + [s ~ '']",
            "n.l + [s|capitalize]",
            "n.l + [s.title()]",
            "n.l + [s|list]",
        ]);
        format!(
            "{}{}",
            long(random),
            namespace("l=[]", &format!("{{% set n.l = {keep} %}}"))
        )
    }),
    refused("a text that doubles", |random| {
        let twice = random.one(&[
            "n.s + n.s",
            "n.s ~ n.s",
            "n.s * 2",
            "[n.s, n.s]|join",
            "n.s|replace('a', n.s)",
            "'%s%s' % (n.s, n.s)",
            "'{}{}'.format(n.s, n.s)",
            "n.s.replace('a', n.s)",
            "[n.s, n.s]|tojson",
            "[n.s, n.s]|string",
            "n.s.join([n.s, n.s, n.s])",
            "[n.s, n.s]|sum(start='')",
            "n.s|indent(n.s, true) ~ n.s",
            "(n.s ~ '\\n' ~ n.s)|indent(n.s)",
        ]);
        let times = random.within(40, 99_000);
        format!("{{% set n = namespace(s='abcdefgh') %}}{{% for i in range({times}) %}}{{% set n.s = {twice} %}}{{% endfor %}}{{{{ n.s|length }}}}")
    }),
    refused("a huge count", |random| {
        let count = random.one(&["9999999999", "999999999", "99999999999999999999", "4294967296"]);
        random
            .one(&[
                "'a' * N",
                "'a'.ljust(N)",
                "'a'.zfill(N)",
                "'a'|center(N)",
                "([1] * N)|length",
                "'%Nd' % 1",
                "'{:>N}'.format(1)",
                "[1]|batch(N, 'x')|list",
                "[1]|slice(N)|list",
                "range(N)|list",
                "range(0, N, 1)|length",
                "'a\\nb'|indent(N)|length ~ ('a' * N)",
                "'\\t'.expandtabs(N)",
                "('a' * 9999999).split('') ~ ('a' * N)",
            ])
            .replace('N', count)
            .replace("|length ~", "|length ~ ")
            .split("@@")
            .map(|expression| format!("{{{{ {expression} }}}}"))
            .collect()
    }),
    refused("output without end", |random| {
        let text = random.one(&["abc ", "🐱", "\n", " "]).repeat(random.within(1, 4000));
        forever(
            &random
                .one(&[
                    "TEXT",
                    "{{ 'a' * 30000 }}",
                    "{{ messages }}",
                    "{% set x %}TEXT{% endset %}",
                    "{% filter upper %}TEXT{% endfilter %}",
                ])
                .replace("TEXT", &text),
        )
    }),
    refused("sums and sorts of much", |random| {
        let much = random.one(&[
            "range(90000)|list",
            "[messages] * 90000",
            "['abcdefgh'] * 90000",
            "('a b ' * 200000).split()",
            "([[1, 2]] * 90000)",
            "('a' * 900000)|list",
        ]);
        let work = random.one(&[
            "l|sort",
            "l|unique|list",
            "l|map('string')|list",
            "l|sum(start=[])",
            "l|join(', ')",
            "l|tojson",
            "l|groupby(0)",
            "l == l[0:]",
            "99999999 in l",
            "l|reverse|list",
            "l|max",
            "l|batch(3)|list",
            "l|select('in', l)|list",
            "l|map('upper')|list",
            "l[::-1]",
            "l + l",
            "l|string",
            "l.count(1)",
            "l|map(attribute='a.b.c')|list",
            "l|dictsort",
            "l.index('zz')",
        ]);
        format!("{{% set l = {much} %}}{}", forever(&format!("{{% set x = {work} %}}")))
    }),
    refused("names of attributes", |random| {
        let filter = random.one(&[
            "map(attribute=p)",
            "sort(attribute=p)",
            "groupby(p)",
            "sum(attribute=p)",
            "selectattr(p)",
            "rejectattr(p)",
            "unique(attribute=p)",
            "join('', attribute=p)",
        ]);
        format!(
            "{{% set p = 'a.' * 4000000 %}}{{% set l = [messages[0]] * 90000 %}}{}",
            forever(&format!("{{% set x = l|{filter}|list %}}"))
        )
    }),
];
