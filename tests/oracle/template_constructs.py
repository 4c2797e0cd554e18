"""One line of template each: what Python's jinja2 gives the word for. Rendered with VARIABLES."""

VARIABLES = {
    "n": None, "t": True, "f": 1.0, "tiny": 1e-07, "big": 12345678901234567890123, "i": -7, "s": "Hello wörld, it's <b>\n two", "empty": "",
    "l": [3, 1, 2], "words": ["b", "a", "C"], "d": {"b": 1, "a": {"x": [1.5, None, False]}}, "e": {}, "none_list": [None, "x"],
    "people": [{"name": "Ann", "age": 30}, {"name": "Bob", "age": 25}, {"name": "cy", "age": 30}], "messages": [{"role": "user", "content": "Hi"}],
}
METHODS = """
s.upper() s.lower() s.title() s.capitalize() s.swapcase() s.casefold() s.strip() s.split() s.split('l') s.split(',',1) s.rsplit(' ',1) s.split(None,1)
s.splitlines() s.splitlines(true) 'a\\r\\nb\\rc\\n'.splitlines() s.partition(', ') s.rpartition('l') s.find('w') s.find('zz') s.rfind('l') s.index('w') s.count('l')
s.replace('l','L') s.replace('l','L',1) s.replace('','-') s.startswith('Hello') s.startswith(('x','Hell')) s.endswith('two') s.endswith(('a','o')) s.startswith('w',6)
s.removeprefix('Hello') s.removesuffix('two') s.zfill(40) '7'.zfill(3) '-7'.zfill(4) 'ab'.center(7,'*') 'ab'.center(7) 'ab'.ljust(5)~'|' 'ab'.rjust(5,'.') s.isalpha()
'abc'.isalpha() 'ab1'.isalnum() '12'.isdigit() '½'.isnumeric() '½'.isdigit() '²'.isdecimal() ' '.isspace() 'Ab'.istitle() 'AB'.isupper() 'ab'.islower() 'é'.isascii() 'a1'.isidentifier()
'-'.join(words) ''.join(['a','b']) '{} {}'.format('a',1) '{0}-{x}'.format(1,x=2) '{:>5}|{:<4}|{:^5}'.format('a','b','c') '{:.2f}'.format(3.14159) '{:05d}'.format(42) '{:,}'.format(1234567) '{!r}'.format('a')
'xxaxx'.strip('x') 'xxaxx'.lstrip('x') 'xxaxx'.rstrip('x') ' a '.lstrip()~'|' ' a '.rstrip()~'|' 'a\\tb'.expandtabs(4) '\\x1ca\\x1c'.strip()|length 'ab'.encode('utf-8')|string|length
d.keys()|list d.values()|list d.items()|list d.get('zz') d.get('zz',5) d.get('b') d.items() d.keys() l.index(1) l.count(1) 'abc'.translate({97:98}) (5).bit_length() (1.5).is_integer()
'ß'.upper() 'İ'.lower() 'ǆ'.title() "it's".title() 'a-b_c'.title() 'éa'.capitalize() 'ŉ'.upper() 'ΑΣ'.lower()
""".split("\n")
EXPRESSIONS = """
n|t|f|tiny|big|i|l|d|e|none_list|messages|s|undefined_thing
n ~ f ~ t ~ tiny ~ l ~ d
'a' ~ none ~ 1.0 ~ true
1/2|4/2|7//2|-7//2|7%3|-7%3|2**10|2**-1|2.0**3|7.5//2|1e3|1e16|1e15|123456789.123|0.1+0.2|1e-5|1e22|-0.0
1 + 1.0|true + 1|i|abs
3|string|3.0|string|none|string|true|string|l|string|d|string
3.7|int|'3'|int|'x'|int|'3.9'|int|'3.5'|float|'x'|float|3|float|none|int|'12abc'|int(5)|'ff'|int(0,16)
3.456|round(1)|3.5|round|2.5|round|3.456|round(1,'ceil')|3.456|round(1,'floor')|3|round|1234.5|round(-2)
l|sort|l|sort(reverse=true)|words|sort|words|sort(case_sensitive=true)|people|map(attribute='name')|list|people|sort(attribute='age')|map(attribute='name')|join(',')
l|sum|l|min|l|max|l|first|l|last|l|length|l|reverse|list|s|reverse|l|join|l|join('-')|people|join(', ', attribute='name')|[1.0,none,true]|join(' ')
words|map('upper')|list|words|map('replace','a','z')|list|words|select('equalto','a')|list|l|select('odd')|list|l|reject('gt',1)|list|people|selectattr('age','eq',30)|list|people|rejectattr('age','lt',30)|map(attribute='name')|list
people|groupby('age')|list|people|groupby('age')|map('first')|list|d|dictsort|d|items|list|[1,2,3,4,5]|batch(2)|list|[1,2,3,4,5]|batch(2,'x')|list|[1,2,3,4,5]|slice(2)|list|[1,1,2]|unique|list
s|upper|s|lower|s|title|s|capitalize|s|trim|'xax'|trim('x')|s|replace('l','L')|s|replace('l','L',1)|s|indent|s|indent(2,true)|s|wordcount|s|truncate(8)|s|truncate(8,true,'…',0)|s|center(40)|s|escape|s|e|s|safe|s|striptags|s|length|s|list|s|first|s|last|s|wordwrap(5)|s|urlencode|s|forceescape
'%s and %d'|format('a',3)|'%s' % 'x'|'%05.2f' % 3.14159|'%s %s' % ('a', 1.0)|'%r' % 'a'|'%d%%' % 5|'%(a)s' % {'a': 1}
d|tojson|d|tojson(indent=2)|d|tojson(separators=(',',':'))|d|tojson(sort_keys=true)|s|tojson|s|tojson(ensure_ascii=true)|n|tojson|f|tojson|tiny|tojson|big|tojson|l|tojson(indent=0)|l|tojson(none,'>')|(1,2)|tojson|'</script>&'|tojson|'\\u007f\\u0001'|tojson|d|tojson(indent='\\t')
l[0]|l[-1]|l[1:]|l[::-1]|l[:-1]|l[::2]|s[0]|s[-3:]|s[::-1]|s[1:4]|s[5]|d['a']['x']|d.a.x[0]|d['zz']|l[9]|[][::-1]|[][1:]|l[-1:0:-1]|l[5:1:-1]|''[::-1]|'ab'[5:]
l is iterable|s is iterable|n is iterable|d is mapping|l is sequence|s is sequence|d is sequence|f is number|i is integer|f is float|t is boolean|t is number|t is integer|n is none|zz is defined|zz is undefined|s is string|3 is odd|4 is even|9 is divisibleby 3|'A' is upper|'a' is lower|1 is sameas 1|1 is in [1,2]|'x' is eq 'x'|upper is filter|'upper' is filter|'zz' is filter|'odd' is test|range is callable|l is callable|true is true|false is false|s is escaped
1 in l|'b' in d|'ell' in s|1 not in l|'zz' in e|l == [3,1,2]|d == {}|1 == 1.0|true == 1|'1' == 1|none == none|1 < 2 < 3|'a' < 'b'|[1,2] < [1,3]|1 != 2|not n|n or 'x'|'' or 'y'|1 and 2|0 and 2|'a' if t else 'b'|'a' if n|(1,2)|()|(1,)|[1,'a',none]|{'a':1,2:'b'}|{'k':none}
l + [4]|l * 2|'ab' * 3|3 * 'ab'|(1,) + (2,)|[] + []|'a' 'b'|"it's"|'say "x"'|'\\x41\\u00e9\\n'|'tab\\t'|'\\\\'
range(3)|range(3)|list|range(1,4)|list|range(5,0,-2)|list|range(0)|list|range(3)|length|dict(a=1,b=2)|dict(a=1).a|namespace(a=1).a|joiner('x')|cycler(1,2).next()|dict([('a',1)])|dict(d, z=1)
n|default('x')|zz|default('x')|n|default('x',true)|''|default('x',true)|zz|d('y')|zz|default|e|default({},true)|false|default('q',boolean=true)
none|length|none|list|5|list|s.nothing|n.x|zz.x|d.zz.x|l|attr('x')|'a' + 1|1 + 'a'|n + 'a'|'a' + n|zz + 'a'|'a' - 1|zz|upper|n|upper|5|upper|zz|tojson|n|trim|5|trim|zz ~ 'a'|zz|length|zz|join|none|join|l|items|zz|list|zz|string|[zz]|f()|s()|zz()
strftime_now('%Y-%m-%d')|strftime_now('%d %B %Y')|strftime_now('%d %b %Y %H:%M:%S')|strftime_now('%A, %-d. %-m. %y %I %p %j %U %W %w %Z|%%')|strftime_now('%e|%s|%c|%x|%X|%f|%G-%V|%k|%D|%F|%T|%h|%n|%u|%C')
raise_exception('no ' ~ 1)|raise_exception()|raise_exception(5)
""".strip("\n")
BLOCKS = [
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a','b') }}{{ loop.depth }}{{ loop.changed(x) }};{% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.index }}{{ x }}{% else %}none{% endfor %}{% for x in [] %}{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'äb' %}{{ c }}.{% endfor %}",
    "{% for x in [1,2,3,4] %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% set x = 1 %}{% for i in l %}{% set x = x + i %}{% endfor %}{{ x }}{% set ns = namespace(x=1) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set text %} body {{ a }}{% endset %}[{{ text }}]{% set up | upper %}abc{% endset %}{{ up }}",
    "{% macro m(a, b='d', c=none) %}[{{ a }}{{ b }}{{ c }}{{ varargs }}{{ kwargs }}]{% endmacro %}{{ m(1) }}{{ m(1, c=2) }}{{ m(1, 2, 3, 4, x=5) }}",
    "{% macro m(a) %}[{{ a }}{{ caller() }}]{% endmacro %}{% call m(1) %}body{% endcall %}{{ m.name }}{{ m.arguments }}",
    "{% filter upper %}abc{% endfilter %}{% with a = 1 %}{{ a }}{% endwith %}{{ a }}{% block x %}block{% endblock %}{% raw %}{{ x }}{% endraw %}{# note #}!",
    "{% if n is none and not zz %}a{% elif t %}b{% else %}c{% endif %}{% if zz is defined and zz.x %}d{% endif %}{% if l|length > 2 and d.a.x[0] == 1.5 %}e{% endif %}",
    "{%- if t -%}\n  a  \n{%- endif %}\n  b\n\t{%- set x = 1 +%}\n c {%+ if t %}d{% endif +%}\n{{- ' e ' -}}\n\n f\n",
    "  {% if t %}\n    x\n  {% endif %}  \n  {# c #}\n y {{ 1 }}\n\n",
    "a\r\nb\rc{% if t %}\r\nd{% endif %}{{ 'x\r\ny' }}",
    "{% generation %}a{% endgeneration %}{%- generation -%} b {%- endgeneration -%} c",
    "{% for m in messages %}{{ m.role }}{{ m['content'] }}{{ m.zz }}{{ m.zz is defined }}{{ m.get('tool_calls') }}{% endfor %}",
    "{% for p in people recursive %}{{ p.name }}{% if p.kids %}{{ loop(p.kids) }}{% endif %}{% endfor %}",
    "{% set ns = namespace(l=[]) %}{% for i in l %}{% set ns.l = ns.l + [i * 2] %}{% endfor %}{{ ns.l }}{{ ns.l|length }}",
    "{% set x = {'a': 1} %}{% set x = dict(x, b=2) %}{{ x }}{{ x|tojson }}{{ {**x} if false else x }}",
    "{% if 'a' in 'abc' and 'role' in messages[0] and messages[0].role in ['user'] %}y{% endif %}{{ messages[0]['role'] == 'user' }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ (messages|last).content }}{{ messages|map(attribute='content')|join(' ') }}",
    "{% do l.append(4) %}{{ l }}", "{{ l.append(4) }}", "{{ d.update({'a': 1}) }}", "{{ l.pop() }}", "{{ ''.__class__ }}", "{{ d.__class__.__name__ }}", "{{ messages.__len__() }}",
    "{% include 'x' %}", "{% import 'x' as y %}", "{% autoescape true %}{{ s }}{% endautoescape %}", "{% autoescape true %}{{ '<' ~ 'a'|safe }}{% endautoescape %}", "{{ 'a'|safe ~ '<' }}{{ 'a'|safe + '<' }}{{ s|e ~ '<' }}",
    "{% unknown %}", "{{ 1 + }}", "{% if %}", "{{ s|nofilter }}", "{{ s|e }}", "{{ zz|d('y') }}", "{{ s is notest }}", "{{ nofunction(1) }}", "{% for %}", "{{ 'open", "{% if t %}", "{{ 5 // 0 }}", "{{ 1 % 0 }}", "{% set s.x = 1 %}", "{{ lipsum is defined }}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b is defined }}{{ ns }}", "{{ self is defined }}{{ loop is defined }}{{ caller is defined }}", "{{ true }}{{ True }}{{ none }}{{ None }}{{ false }}{{ False }}",
    "{{ l|map('string')|join(',') }}{{ [1,[2,3]]|string }}{{ {'a':'b\\'c'}|string }}{{ ['é', '\\n', '\\u200b', '\\x7f', '\\u00a0']|string }}", "{{ (l|map('abs'))|tojson }}", "{{ d.items()|tojson }}", "{{ range(3)|tojson }}", "{{ l|select }}", "{{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}",
    "{{ 'x'.join(l) }}", "{{ '1'.join(['a', none]) }}", "{{ {'a': 1}.items() }}", "{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }}{% endfor %}", "{% for a in d|dictsort %}{{ a }}{% endfor %}", "{{ l[0] ~ l[1] + 2 }}", "{{ 'a' ~ 1 + 2 }}", "{{ -2 ** 2 }}{{ 2 ** 3 ** 2 }}{{ not 1 == 2 }}{{ 1 - -1 }}{{ 6 / 2 * 3 }}{{ 1 if 0 else 2 if 0 else 3 }}",
    "{{ {'a': {'b': 1}}['a']['b'] }}{{ [1, 2][1] }}{{ (1, 2)[0] }}{{ 'abc'[1] }}{{ ('a', 'b')|join }}{{ people[0]['name'][0] }}{{ people|map(attribute='name')|first }}", "{{ \"a\nb\" }}{{ 'it\\'s' }}{{ '\\q' }}", "{% set x = 5 %}{% if x == 5 %}{% set x = 6 %}{% endif %}{{ x }}{% for i in [1] %}{% set x = 7 %}{% endfor %}{{ x }}",
]


def constructs():
    """All of them as templates."""
    lines = [f"{{{{ {expression} }}}}" for line in METHODS for expression in split_methods(line)]
    for line in EXPRESSIONS.split("\n"):
        lines.extend(f"{{{{ {expression} }}}}" for expression in split_expressions(line))
    return list(dict.fromkeys(lines)) + BLOCKS


def split_methods(line):
    """Calls stand side by side, with blanks only inside of quotation marks and brackets."""
    return [part for part in pieces(line, " ") if part]


def split_expressions(line):
    """Expressions stand side by side behind bars; what is the name of a filter belongs to the one before."""
    out = []
    for part in pieces(line, "|"):
        if out and part.split("(")[0] in FILTERS:
            out[-1] += "|" + part
        else:
            out.append(part)
    return out


FILTERS = set(
    "abs attr batch capitalize center count default dictsort escape filesizeformat first float forceescape format groupby indent int items join last "
    "length list lower map max min pprint reject rejectattr replace reverse round safe select selectattr slice sort string striptags sum title tojson trim "
    "truncate unique upper urlencode wordcount wordwrap".split()
)


def pieces(line, separator):
    """Splits where neither quotation marks nor brackets are open."""
    parts, depth, quote, start, at = [], 0, None, 0, 0
    while at < len(line):
        letter = line[at]
        if quote:
            if letter == "\\":
                at += 1
            elif letter == quote:
                quote = None
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == separator and depth == 0:
            parts.append(line[start:at])
            start = at + 1
        at += 1
    parts.append(line[start:])
    return parts
