//! Chat templates of public packages against transformers. The templates and what transformers makes of them are
//! fetched and made by tests/oracle/templates.py; `./dev test` does both.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use prompt::{Error, Template};
use serde_json::{json, Map, Value};

/// How a template and a conversation went, there and here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Equal,
    Different,
    /// `raise_exception` on both sides, with the same words.
    RefusedAlike,
    RefusedDifferently,
    BothFail,
    /// Renders there, fails here.
    FailsHere,
    /// Fails there, for a mistake of the template's; renders here.
    FailsThere,
}

fn compare(theirs: &Value, ours: Result<String, &Error>) -> Outcome {
    match (theirs["text"].as_str(), theirs["raised"].as_str(), ours) {
        (Some(text), _, Ok(ours)) if text == ours => Outcome::Equal,
        (Some(_), _, Ok(_)) => Outcome::Different,
        (Some(_), _, Err(_)) => Outcome::FailsHere,
        (_, Some(words), Err(Error::TemplateRefused(ours))) if words == ours => Outcome::RefusedAlike,
        (_, Some(_), _) => Outcome::RefusedDifferently,
        (_, _, Err(_)) => Outcome::BothFail,
        (_, _, Ok(_)) => Outcome::FailsThere,
    }
}

/// The folder of templates and what transformers makes of them; `None`, with a word why, if there are none.
fn oracle() -> Option<(PathBuf, Value)> {
    let (Some(python), Some(folder)) = (
        std::env::var_os("PONDER_ORACLE_PYTHON"),
        std::env::var_os("PONDER_TEMPLATES"),
    ) else {
        println!("skipped: PONDER_ORACLE_PYTHON and PONDER_TEMPLATES name no Python with transformers and no templates; `./dev test` does");
        return None;
    };
    let out = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/templates.py");
    let mut command = Command::new(python);
    command
        .arg(script)
        .arg("render")
        .arg(&folder)
        .arg(out.path().join("renders.json"));
    assert!(command.env_remove("LD_LIBRARY_PATH").status().unwrap().success());
    let renders = fs::read_to_string(out.path().join("renders.json")).unwrap();
    Some((folder.into(), serde_json::from_str(&renders).unwrap()))
}

/// One render, there and here.
struct Row<'a> {
    /// The template's file, or its source if it is one line that shows what Python does.
    template: &'a str,
    is_file: bool,
    outcome: Outcome,
    theirs: &'a Value,
    ours: Result<String, Error>,
}

fn rows<'a>(folder: &Path, oracle: &'a Value) -> Vec<Row<'a>> {
    let now: jiff::civil::DateTime = oracle["now"].as_str().unwrap().parse().unwrap();
    let now = now.to_zoned(jiff::tz::TimeZone::UTC).unwrap();
    let mut templates: BTreeMap<&str, Result<Template, Error>> = BTreeMap::new();
    let row = |theirs: &'a Value| {
        let is_file = theirs.get("template").is_some();
        let (name, variables) = if is_file {
            (
                &theirs["template"],
                &oracle["cases"][theirs["case"].as_u64().unwrap() as usize]["variables"],
            )
        } else {
            (&theirs["construct"], &oracle["variables"])
        };
        let name = name.as_str().unwrap();
        let template = templates.entry(name).or_insert_with(|| {
            let source = if is_file {
                fs::read_to_string(folder.join(name)).unwrap()
            } else {
                name.to_owned()
            };
            Template::new(&json!(source), Map::new()).map(|template| template.at(now.clone()))
        });
        let ours = match template {
            Ok(template) => template.render(variables.as_object().unwrap().clone()),
            Err(error) => Err(Error::TemplateSyntax(error.to_string())),
        };
        Row {
            template: name,
            is_file,
            outcome: compare(theirs, ours.as_ref().map(String::clone)),
            theirs,
            ours,
        }
    };
    oracle["renders"].as_array().unwrap().iter().map(row).collect()
}

fn count(rows: &[&Row]) -> BTreeMap<Outcome, usize> {
    let mut table = BTreeMap::new();
    rows.iter().for_each(|row| *table.entry(row.outcome).or_default() += 1);
    table
}

#[test]
fn templates_render_as_in_transformers() {
    let Some((folder, oracle)) = oracle() else { return };
    let rows = rows(&folder, &oracle);
    let (files, constructs): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.is_file);
    let names: BTreeSet<&str> = files.iter().map(|row| row.template).collect();
    println!(
        "report: templates: {} of public packages x {} conversations, transformers {}, jinja2 {}",
        names.len(),
        oracle["cases"].as_array().unwrap().len(),
        oracle["versions"]["transformers"].as_str().unwrap(),
        oracle["versions"]["jinja2"].as_str().unwrap(),
    );
    for (label, table) in [
        ("renders", count(&files)),
        ("constructs of Python's jinja2", count(&constructs)),
    ] {
        println!("report: templates: {label}: {table:?}");
    }

    // Templates that render differently there, each with its reason.
    let unequal = |row: &&&Row| {
        matches!(
            row.outcome,
            Outcome::Different | Outcome::FailsHere | Outcome::RefusedDifferently
        )
    };
    for row in files.iter().chain(&constructs).filter(unequal) {
        println!(
            "{:?} {} case {}\n  there {}\n  here {:?}",
            row.outcome, row.template, row.theirs["case"], row.theirs, row.ours
        );
    }
    assert_eq!(count(&files), BTreeMap::from(RENDERS));
    assert_eq!(count(&constructs), BTreeMap::from(CONSTRUCTS));
    let differing: BTreeSet<&str> = constructs.iter().filter(unequal).map(|row| row.template).collect();
    assert_eq!(
        differing,
        BTreeSet::from_iter(KNOWN.iter().map(|(construct, _)| *construct))
    );

    // Mistakes of templates that are errors in Python and not here.
    let mut lenient: BTreeMap<&str, usize> = BTreeMap::new();
    for row in files.iter().filter(|row| row.outcome == Outcome::FailsThere) {
        *lenient.entry(row.theirs["failed"].as_str().unwrap()).or_default() += 1;
    }
    println!("report: templates: more lenient than Python: {lenient:?}");
    assert_eq!(lenient, BTreeMap::from(LENIENT));
}

/// The table of renders, pinned; raise_exception with other words and renders that differ are none.
const RENDERS: [(Outcome, usize); 4] = [
    (Outcome::Equal, 13311),
    (Outcome::RefusedAlike, 585),
    (Outcome::BothFail, 1295),
    (Outcome::FailsThere, 149),
];
const CONSTRUCTS: [(Outcome, usize); 6] = [
    (Outcome::Equal, 375),
    (Outcome::Different, 18),
    (Outcome::RefusedAlike, 2),
    (Outcome::BothFail, 38),
    (Outcome::FailsHere, 11),
    (Outcome::FailsThere, 8),
];
/// Mistakes that are errors in Python only: a conversation that can be rendered is.
const LENIENT: [(&str, usize); 3] = [
    ("TypeError: Object of type Undefined is not JSON serializable", 7),
    ("TypeError: 'NoneType' object is not iterable", 128),
    ("TypeError: Object of type generator is not JSON serializable", 14),
];
/// Constructs that no template of the packages uses, and why they are left out.
const KNOWN: [(&str, &str); 29] = [
    ("{{ '²'.isdecimal() }}", "superscripts are numbers in Rust"),
    ("{{ '{!r}'.format('a') }}", "repr in format strings"),
    ("{{ 'ab'.encode('utf-8')|string|length }}", "bytes"),
    ("{{ d.items() }}", "a view is printed as a list of its pairs"),
    ("{{ d.keys() }}", "a view is printed as a list"),
    ("{{ 'abc'.translate({97:98}) }}", "methods that no template uses"),
    ("{{ (5).bit_length() }}", "methods that no template uses"),
    ("{{ 'ǆ'.title() }}", "letters with a form of their own for titles"),
    ("{{ big }}", "whole numbers beyond 64 bits are read as floats"),
    ("{{ people|groupby('age')|list }}", "pairs of groupby are printed as lists"),
    ("{{ s|wordwrap(5) }}", "a filter that no template uses"),
    ("{{ '%r' % 'a' }}", "repr in format strings"),
    ("{{ big|tojson }}", "whole numbers beyond 64 bits are read as floats"),
    ("{{ upper is filter }}", "a name that is no text"),
    ("{{ range(3) }}", "a range is printed as its numbers"),
    ("{{ joiner('x') }}", "an address in memory"),
    ("{{ cycler(1,2).next() }}", "a method of cyclers"),
    ("{{ dict([('a',1)]) }}", "dict of pairs"),
    ("{{ l|items }}", "an address in memory"),
    ("{{ [zz] }}", "an undefined value inside of a list"),
    ("{% macro m(a, b='d', c=none) %}[{{ a }}{{ b }}{{ c }}{{ varargs }}{{ kwargs }}]{% endmacro %}{{ m(1) }}{{ m(1, c=2) }}{{ m(1, 2, 3, 4, x=5) }}", "macros with more arguments than they name"),
    ("{% macro m(a) %}[{{ a }}{{ caller() }}]{% endmacro %}{% call m(1) %}body{% endcall %}{{ m.name }}{{ m.arguments }}", "a list where Python has a tuple"),
    ("{% autoescape true %}{{ s }}{% endautoescape %}", "a quotation mark's code"),
    ("{{ lipsum is defined }}", "a global that no template uses"),
    ("{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b is defined }}{{ ns }}", "a namespace printed"),
    ("{{ self is defined }}{{ loop is defined }}{{ caller is defined }}", "a global that no template uses"),
    ("{{ l|select }}", "an address in memory"),
    ("{{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}", "1 and true are one key in Python"),
    ("{{ {'a': 1}.items() }}", "a view is printed as a list of its pairs"),
];
