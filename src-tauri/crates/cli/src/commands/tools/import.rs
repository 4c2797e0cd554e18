use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{ensure, Context, Result};
use serde_json::json;
use tools::host::Tools;

use crate::output::{self, visible_line};

/// Bytes of a configuration, and one more: what is longer is refused by its length.
const LONGEST: u64 = (1 << 20) + 1;

/// Adds the servers of another program's configuration, each switched off.
///
/// # Errors
/// When the file cannot be read, is no configuration, or has no server that can be added.
pub async fn import(tools: &Tools, file: &Path, json: bool) -> Result<()> {
    let text = read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let found = tools.read_configuration(&text).map_err(protocol::Error::from)?;
    let (mut added, mut left_out) = (Vec::new(), Vec::new());
    for server in found {
        let name = server.setup.name.clone();
        let problem = match server.problem {
            // A sentence about one that cannot be read, which names it.
            Some(problem) if server.setup.command.is_empty() => {
                left_out.push(problem);
                continue;
            }
            Some(missing) => Some(format!("it needs a value for {missing}")),
            None => tools.add(server.setup).await.err().map(|error| error.to_string()),
        };
        match problem {
            Some(problem) => left_out.push(format!("“{name}” was left out: {problem}")),
            None => added.push(name),
        }
    }
    tell(&added, &left_out, json)?;
    ensure!(!added.is_empty(), "no server was added");
    Ok(())
}

fn tell(added: &[String], left_out: &[String], json: bool) -> Result<()> {
    if json {
        return Ok(output::line(&json!({"added": added, "left_out": left_out}))?);
    }
    for name in added {
        let name = visible_line(name, usize::MAX);
        output::text(&format!(
            "Added {name}. It is off. 'ponder tools enable {name}' switches it on.\n"
        ))?;
    }
    for problem in left_out {
        output::text(&format!("{}\n", visible_line(problem, usize::MAX)))?;
    }
    Ok(())
}

/// The text of a file, or of standard input for `-`.
fn read(file: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    match file.as_os_str() == "-" {
        true => std::io::stdin().take(LONGEST).read_to_end(&mut bytes)?,
        false => File::open(file)?.take(LONGEST).read_to_end(&mut bytes)?,
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
