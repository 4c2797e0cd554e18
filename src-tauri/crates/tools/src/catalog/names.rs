//! Names by which a model calls tools of several servers.

use std::collections::HashSet;

use crate::catalog::ToolRef;

/// Characters of a name at most: what OpenAI's API and the templates of most models take.
const LONGEST: usize = 64;

/// A name `server__tool` for each of these, in their order: letters, digits, `_` and `-`, no two alike.
pub fn model_names(tools: &[ToolRef]) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut names = Vec::with_capacity(tools.len());
    for id in tools {
        let whole = format!("{}__{}", plain(&id.server), plain(&id.tool));
        let mut name: String = whole.chars().take(LONGEST).collect();
        let mut number = 2;
        while !taken.insert(name.clone()) {
            let end = format!("_{number}");
            name = whole.chars().take(LONGEST - end.len()).collect::<String>() + &end;
            number += 1;
        }
        names.push(name);
    }
    names
}

/// The text with `_` in place of every other character.
fn plain(text: &str) -> String {
    let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    text.chars()
        .map(|character| if allowed(character) { character } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_plain_and_differ() {
        let id = |server: &str, tool: &str| ToolRef {
            server: server.to_owned(),
            tool: tool.to_owned(),
        };
        let long = "x".repeat(90);
        let tools = [
            id("time", "now"),
            id("time", "n.w"),
            id("time", "n/w"),
            id("my files", "läs"),
            id("a", &long),
            id("a", &format!("{long}y")),
        ];
        let names = model_names(&tools);
        assert_eq!(names[..4], ["time__now", "time__n_w", "time__n_w_2", "my_files__l_s"]);
        assert!(names.iter().all(|name| name.len() <= LONGEST && name.is_ascii()));
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), tools.len());
    }
}
