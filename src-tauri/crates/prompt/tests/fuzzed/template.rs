//! A template of any text: a prompt or an error, in time and without a panic. tests/fuzz has the same for cargo-fuzz.

use std::time::{Duration, Instant};

use prompt::{RenderLimits, Template};
use serde_json::{json, Map};

use super::words::spelled;

const WORDS: &[&str] = &[
    "{{ ",
    " }}",
    "{% ",
    " %}",
    "{# ",
    " #}",
    "for m in messages",
    "endfor",
    "if ",
    "else",
    "elif ",
    "endif",
    "set x = ",
    "set n.l = ",
    "set n = namespace(l=[])",
    "macro f(a)",
    "endmacro",
    "call f(1)",
    "endcall",
    "filter upper",
    "endfilter",
    "raw",
    "endraw",
    "generation",
    "endgeneration",
    "break",
    "continue",
    "m",
    "m.content",
    "m['role']",
    "messages",
    "tools",
    "x",
    "n.l",
    "[n.l]",
    "loop",
    "loop.index",
    "loop(m)",
    "recursive",
    "range(99999)",
    "'a'",
    "'a' * 9999",
    "1",
    "-1",
    "9999999999",
    "none",
    "true",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    ":",
    ".",
    "|",
    "~",
    " + ",
    " - ",
    " * ",
    " ** ",
    " // ",
    " % ",
    " == ",
    " in ",
    " is ",
    " not ",
    " and ",
    " or ",
    "|tojson",
    "|length",
    "|join",
    "|list",
    "|trim",
    "|map('upper')",
    "|selectattr('role')",
    "|items",
    "[1:]",
    "[::-1]",
    ".split('a')",
    ".strip()",
    ".items()",
    "|default('')",
    "is defined",
    "strftime_now('%d')",
    "raise_exception('x')",
    "add_generation_prompt",
    "\n",
    " ",
    "<|im_start|>",
];
/// Time for one, and how far a busy computer may be beyond it.
const TIME: Duration = Duration::from_millis(500);
const SLACK: Duration = Duration::from_secs(8);

/// One template.
pub fn run(data: &[u8]) {
    let source = String::from_utf8_lossy(&spelled(data, WORDS)).into_owned();
    let variables = json!({
        "messages": [{"role": "user", "content": "How is it in Oslo?"}, {"role": "assistant", "content": "Cold."}],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
        "add_generation_prompt": true,
    });
    let begun = Instant::now();
    // A refusal is as good as a text; what counts is that one of them comes.
    let _ = RenderLimits::look().lasting(TIME).within(|| {
        let template = Template::new(&json!(source), Map::new())?;
        template.render(variables.as_object().cloned().unwrap_or_default())
    });
    assert!(begun.elapsed() < TIME + SLACK, "{source}");
}
