use std::path::Path;

use anyhow::Result;
use api::{BundleValue, ServerVariable, ToolBundle};
use serde_json::json;
use tools::host::Tools;

use crate::output::{self, visible_line};

/// True if the name of a file is that of a bundle.
pub fn is_bundle(file: &Path) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["mcpb", "dxt"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Adds the server of a bundle, switched off, with these values of its fields. Nothing of it runs.
///
/// # Errors
/// When the file is no bundle that can be used, a value is missing or none of its field, or the keychain refuses.
pub async fn import(tools: &Tools, file: &Path, values: Vec<ServerVariable>, json: bool) -> Result<()> {
    let looked_into = tools.look_into_bundle(file.to_owned()).await;
    let bundle = looked_into.map_err(protocol::Error::from)?;
    let id = tools
        .add_bundle(&bundle.hash, "", by_field(values))
        .await
        .map_err(protocol::Error::from)?;
    if json {
        return Ok(output::line(
            &json!({"added": [&bundle.name], "left_out": [], "id": id, "bundle": bundle}),
        )?);
    }
    Ok(output::text(&told(&bundle))?)
}

/// The values of each field, which may be given several times.
fn by_field(values: Vec<ServerVariable>) -> Vec<BundleValue> {
    let mut fields: Vec<BundleValue> = Vec::new();
    for ServerVariable { name, value } in values {
        let value = value.unwrap_or_default();
        match fields.iter_mut().find(|field| field.key == name) {
            Some(field) => field.values.push(value),
            None => fields.push(BundleValue {
                key: name,
                values: vec![value],
            }),
        }
    }
    fields
}

fn told(bundle: &ToolBundle) -> String {
    let line = |text: &str| visible_line(text, usize::MAX);
    let name = line(&bundle.name);
    let mut said = format!("Added {name} {}", line(&bundle.version));
    if !bundle.author.is_empty() {
        said += &format!(" by {}", line(&bundle.author));
    }
    said += &format!(": {}. It is off.", line(&bundle.command));
    if let Some(missing) = &bundle.missing {
        said += &format!(" It needs {}, which was not found on this computer.", line(missing));
    }
    said + &format!(" 'ponder tools enable {name}' switches it on.\n")
}
