use anyhow::{ensure, Result};
use api::{SearchProvider, WebSearchSetup};
use clap::{Args, ValueEnum};
use protocol::{Error, ErrorCode};
use serde_json::json;
use tools::builtin::{self, Builtin};
use tools::host::Tools;

use super::named::tool_named;
use super::servers::read_secrets;
use crate::output;

#[derive(Args)]
pub struct SearchEngineArgs {
    /// Search engine (none removes it and its key)
    #[arg(value_name = "brave|tavily|searxng|none", hide_possible_values = true)]
    engine: EngineArg,
    /// Address of a SearXNG server, for example http://localhost:8888
    #[arg(long, value_name = "URL", default_value = "")]
    address: String,
    /// Keep the key that is stored, and read none from standard input
    #[arg(long)]
    keep_key: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineArg {
    Brave,
    Tavily,
    Searxng,
    None,
}

/// Switches one of Ponder's own tools on or off, if the name is one; false if it names something else.
///
/// # Errors
/// When the tool has no switch.
pub fn switch(tools: &Tools, name: &str, on: bool, json: bool) -> Result<bool> {
    let own = match name.contains('/') {
        true => tool_named(tools, name)
            .ok()
            .filter(|tool| tool.server == builtin::SERVER),
        false => None,
    };
    let Some(own) = own else { return Ok(false) };
    tools.switch_own_tool(&own.tool, on).map_err(protocol::Error::from)?;
    let text = match (on, Builtin::named(&own.tool)) {
        (false, _) => format!("{name} is off."),
        (true, Some(Builtin::SearchWeb)) => format!("{name} is on. 'ponder tools search-engine' chooses its engine."),
        (true, _) => format!("{name} is on. It reads pages of the internet that are allowed, host by host."),
    };
    let said = match on {
        true => json!({"enabled": name}),
        false => json!({"disabled": name}),
    };
    output::report(json, &said, &text)?;
    Ok(true)
}

/// Chooses the search engine. Its key comes by standard input, because every program on this computer can read arguments.
///
/// # Errors
/// When the address or the key is none, or the keychain refuses.
pub async fn choose_engine(tools: &Tools, args: SearchEngineArgs, json: bool) -> Result<()> {
    let provider = match args.engine {
        EngineArg::Brave => Some(SearchProvider::Brave),
        EngineArg::Tavily => Some(SearchProvider::Tavily),
        EngineArg::Searxng => Some(SearchProvider::Searxng),
        EngineArg::None => None,
    };
    let wants_key = matches!(provider, Some(SearchProvider::Brave | SearchProvider::Tavily)) && !args.keep_key;
    let key = match wants_key {
        true => read_secrets(vec!["API_KEY".to_owned()])?
            .pop()
            .and_then(|part| part.value),
        false => None,
    };
    if wants_key {
        let is_said = key.as_ref().is_some_and(|key| !key.is_empty());
        ensure!(
            is_said,
            Error::new(ErrorCode::BadRequest, "there is no key on standard input")
        );
    }
    let setup = provider.map(|provider| WebSearchSetup {
        provider,
        address: args.address,
        key,
    });
    tools.set_web_search(setup).await.map_err(protocol::Error::from)?;
    let chosen = tools.view().await.map_err(protocol::Error::from)?.web_search;
    let text = match provider {
        Some(_) => "The search engine is set. 'ponder tools enable ponder/search_web' switches searching on.",
        None => "There is no search engine now.",
    };
    Ok(output::report(json, &json!({"search_engine": chosen}), text)?)
}
