//! A pattern of hostile templates, and the parts that many have.

use super::Random;

/// A way to do harm.
pub struct Pattern {
    pub name: &'static str,
    /// It cannot end well: whoever renders it must be told.
    pub refused: bool,
    pub write: fn(&mut Random) -> String,
}

pub const fn refused(name: &'static str, write: fn(&mut Random) -> String) -> Pattern {
    Pattern {
        name,
        refused: true,
        write,
    }
}

/// It ends in time, with a text or without.
pub const fn ends(name: &'static str, write: fn(&mut Random) -> String) -> Pattern {
    Pattern {
        name,
        refused: false,
        write,
    }
}

/// Loops around a body, too many to end by themselves.
pub fn forever(body: &str) -> String {
    format!("{{% for a in range(99999) %}}{{% for b in range(9999) %}}{body}{{% endfor %}}{{% endfor %}}")
}

/// The same with values in a namespace.
pub fn namespace(start: &str, body: &str) -> String {
    format!("{{% set n = namespace({start}) %}}{}", forever(body))
}

/// A long text, in a variable.
pub fn long(random: &mut Random) -> String {
    let letter = random.one(&["a", " ", "ü", "🐱", "\\n", "1", "-", "<", "a b ", "_"]);
    let count = 12_000_000 / letter.len();
    format!("{{% set s = '{letter}' * {count} %}}")
}
