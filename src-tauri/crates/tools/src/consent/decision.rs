//! The precedence of what a person said of a tool, of its server, and of none.

/// A person's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Calls run.
    Allow,
    /// Every call is asked about.
    Ask,
    /// No call runs.
    Deny,
}

/// A person's words about a tool, and about its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// Of the tool itself.
    pub tool: Option<Rule>,
    /// Of all tools of its server. Nobody can allow a whole server: what it offers may change.
    pub server: Option<Rule>,
}

/// The rule that holds.
///
/// | tool | server: deny | server: ask | server: nothing |
/// |---|---|---|---|
/// | deny | deny | deny | deny |
/// | ask | deny | ask | ask |
/// | allow | deny | allow | allow |
/// | nothing | deny | ask | ask |
///
/// Deny stands above everything; then the tool's own rule above its server's, and asking is what holds otherwise.
pub fn decide(rules: Rules) -> Rule {
    match (rules.tool, rules.server) {
        (Some(Rule::Deny), _) | (_, Some(Rule::Deny)) => Rule::Deny,
        (Some(rule), _) => rule,
        (None, _) => Rule::Ask,
    }
}

#[cfg(test)]
mod tests {
    use super::Rule::{Allow, Ask, Deny};
    use super::*;

    #[test]
    fn the_table_holds() {
        let table = [
            (Some(Deny), [Deny, Deny, Deny]),
            (Some(Ask), [Deny, Ask, Ask]),
            (Some(Allow), [Deny, Allow, Allow]),
            (None, [Deny, Ask, Ask]),
        ];
        for (tool, row) in table {
            for (server, expected) in [Some(Deny), Some(Ask), None].into_iter().zip(row) {
                assert_eq!(decide(Rules { tool, server }), expected, "{tool:?} {server:?}");
            }
            // A server that is allowed as a whole says nothing.
            let server = Some(Allow);
            assert_eq!(decide(Rules { tool, server }), row[2], "{tool:?}");
        }
    }
}
