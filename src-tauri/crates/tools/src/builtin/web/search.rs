//! A search by one of three kinds of engines.

use api::SearchProvider;
use net::{public_host, Net, Purpose, RequestBuilder, Response};
use serde_json::{json, Value};
use tokio::time::timeout;
use url::Url;

use super::engine::SearchEngine;
use crate::builtin::sources::Sources;
use crate::visible::readable;

/// Bytes of an answer at most.
const MOST_READ: u64 = 2_000_000;

/// Results that a model is told of.
const MOST: usize = 10;

/// Characters of a query, a title and an excerpt at most, and bytes of an address.
const LONGEST_QUERY: usize = 400;
const LONGEST_TITLE: usize = 150;
const LONGEST_EXCERPT: usize = 400;
const LONGEST_ADDRESS: usize = 500;

/// The list of an answer that has none.
static NO_RESULTS: Value = Value::Null;

/// Up to ten results as title, address and excerpt.
pub async fn search(sources: &Sources, engine: &SearchEngine, query: &str) -> Result<String, String> {
    let query: String = query.trim().chars().take(LONGEST_QUERY).collect();
    if query.is_empty() {
        return Err("there is nothing to search for".to_owned());
    }
    let host = engine.host()?;
    let time = sources.time / 2;
    let found = timeout(time, ask(&sources.net, engine, &query)).await;
    let found = found.unwrap_or_else(|_| Err(format!("{host} took more than {} seconds", time.as_secs())))?;
    let lines: Vec<String> = found.iter().filter_map(line).take(MOST).collect();
    Ok(match lines.is_empty() {
        true => format!("{host} found nothing."),
        false => format!("Results of {host}:\n\n{}", lines.join("\n\n")),
    })
}

async fn ask(net: &Net, engine: &SearchEngine, query: &str) -> Result<Vec<Value>, String> {
    let key = match engine.needs_key() {
        true => {
            let kept = net
                .secret(&engine.secret_name()?)
                .await
                .map_err(|error| error.to_string())?;
            Some(kept.ok_or("there is no key for the search engine; the person sets it under Settings › Tools")?)
        }
        false => None,
    };
    let sent = request(net, engine, query, key.as_deref())?.stay_on_host().send().await;
    let response = sent.map_err(|error| error.to_string())?;
    let host = response.host();
    if !(200..300).contains(&response.status()) {
        return Err(refusal(engine.provider, response).await);
    }
    let answer: Value = response
        .json_capped(MOST_READ)
        .await
        .map_err(|error| error.to_string())?;
    let results = match engine.provider {
        // Without results there is no list of them.
        SearchProvider::Brave => answer
            .pointer("/web/results")
            .or(answer.get("query").map(|_| &NO_RESULTS)),
        SearchProvider::Tavily | SearchProvider::Searxng => answer.get("results"),
    };
    match results {
        Some(Value::Array(results)) => Ok(results.clone()),
        Some(Value::Null) => Ok(Vec::new()),
        _ => Err(format!("{host} answered with something that is no list of results")),
    }
}

fn request(net: &Net, engine: &SearchEngine, query: &str, key: Option<&str>) -> Result<RequestBuilder, String> {
    let endpoint = engine.endpoint()?;
    let with = |parts: &[&str], pairs: &[(&str, &str)]| {
        let address = Url::parse_with_params(&endpoint.at(parts), pairs);
        address.map(String::from).map_err(|error| error.to_string())
    };
    let count = MOST.to_string();
    Ok(match engine.provider {
        SearchProvider::Brave => {
            let pairs = [("q", query), ("count", count.as_str()), ("text_decorations", "false")];
            let address = with(&["res", "v1", "web", "search"], &pairs)?;
            net.get(&address, Purpose::WebSearch)
                .key_header("x-subscription-token", key.unwrap_or_default())
        }
        SearchProvider::Tavily => net
            .post(&endpoint.at(&["search"]), Purpose::WebSearch)
            .json(&json!({ "query": query, "max_results": MOST }))
            .bearer(key.unwrap_or_default()),
        SearchProvider::Searxng => {
            let address = with(&["search"], &[("q", query), ("format", "json")])?;
            net.get(&address, Purpose::WebSearch)
        }
    })
}

/// Why an engine did not search, and what to do about it.
async fn refusal(provider: SearchProvider, response: Response) -> String {
    let (host, status) = (response.host(), response.status());
    let wrong_key = || format!("{host} did not accept the key; the person sets another one under Settings › Tools");
    match (provider, status) {
        (SearchProvider::Searxng, 403) => format!(
            "{host} does not answer in JSON; whoever runs it adds `json` to `search.formats` in its settings.yml"
        ),
        (_, 401 | 403) => wrong_key(),
        // Brave says so with the status of arguments that are wrong.
        (SearchProvider::Brave, 422) => match response.text_capped(MOST_READ).await {
            Ok(said) if said.contains("SUBSCRIPTION_TOKEN_INVALID") => wrong_key(),
            _ => format!("{host} does not take this query"),
        },
        (_, 402 | 429 | 432 | 433) => {
            format!("the quota of the key for {host} is used up, or searches came too fast; try again later")
        }
        (_, 300..=399) => format!("{host} redirects elsewhere, which was not followed; check its address"),
        (_, 404) => format!("{host} has no search at this address; the person sets another one under Settings › Tools"),
        (_, 500..) => format!("{host} has a problem at the moment (status {status}); try again later"),
        _ => format!("{host} refused the search with status {status}"),
    }
}

/// A result in three lines; `None` for one without the address of a page.
fn line(result: &Value) -> Option<String> {
    let text = |names: &[&str], most: usize| {
        let value = names
            .iter()
            .find_map(|name| result.get(name)?.as_str())
            .unwrap_or_default();
        let line = readable(value).split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(most) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    };
    let address = result.get("url")?.as_str()?;
    if address.len() > LONGEST_ADDRESS || public_host(address).is_err() {
        return None;
    }
    let title = text(&["title"], LONGEST_TITLE);
    let excerpt = text(&["description", "content"], LONGEST_EXCERPT);
    Some(format!("{title}\n{}\n{excerpt}", readable(address)))
}
