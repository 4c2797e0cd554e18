//! The hub's descriptions and lists of repositories, in the fields and shapes of its API.

use serde_json::{json, Map, Value};

use crate::repository::{Access, Commit, State};

/// Entries on a page of a tree.
const TREE_PAGE: usize = 1_000;
/// Models on a page of a search, if the request names no number.
const SEARCH_PAGE: usize = 1_000;

/// One page, and the cursor of the next one.
pub(crate) struct Page {
    pub(crate) items: Vec<Value>,
    pub(crate) next: Option<usize>,
}

/// A request's query, in order, with names that can come more than once.
pub(crate) struct Query(pub(crate) Vec<(String, String)>);

impl Query {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let named = |key: &str| key.strip_suffix("[]").unwrap_or(key) == name;
        self.0
            .iter()
            .find(|(key, _)| named(key))
            .map(|(_, value)| value.as_str())
    }

    /// The values of a name; `name[]=a`, `name=a&name=b` and `name=a,b` are equivalent.
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(key, _)| key.strip_suffix("[]").unwrap_or(key) == name)
            .flat_map(|(_, value)| value.split(','))
    }

    fn is(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
    }

    fn cursor(&self) -> usize {
        self.get("cursor").and_then(|cursor| cursor.parse().ok()).unwrap_or(0)
    }
}

/// The description of a repository at a commit; `blobs` adds sizes and hashes to its files.
pub(crate) fn description(state: &State, commit: &Commit, blobs: bool) -> Map<String, Value> {
    let (author, _) = state.id.split_once('/').unwrap_or(("", &state.id));
    let config = commit
        .files
        .get("config.json")
        .and_then(|file| serde_json::from_slice::<Value>(&file.content.read(0..1_000_000)).ok())
        .map(|config| json!({"architectures": config["architectures"], "model_type": config["model_type"]}));
    let siblings: Vec<Value> = commit
        .files
        .iter()
        .map(|(path, file)| {
            let mut sibling = json!({"rfilename": path});
            if blobs {
                sibling["size"] = file.content.len().into();
                sibling["blobId"] = file.oid().into();
                if file.large {
                    sibling["lfs"] = json!({"sha256": file.sha256(), "size": file.content.len(), "pointerSize": file.pointer().len()});
                }
            }
            sibling
        })
        .collect();
    let stored: u64 = commit.files.values().map(|file| file.content.len()).sum();
    let all = json!({
        "_id": &commit.sha[..24],
        "id": state.id,
        "modelId": state.id,
        "author": author,
        "sha": commit.sha,
        "lastModified": "2026-11-01T12:00:00.000Z",
        "createdAt": "2026-10-01T12:00:00.000Z",
        "private": state.access == Access::Private,
        "gated": if state.access == Access::Gated { json!("manual") } else { json!(false) },
        "disabled": false,
        "downloads": 0,
        "likes": 0,
        "trendingScore": 0,
        "tags": [],
        "siblings": siblings,
        "config": config,
        "cardData": {},
        "spaces": [],
        "usedStorage": stored,
    });
    let Value::Object(mut all) = all else {
        return Map::new();
    };
    if let Some(parameters) = parameters(commit) {
        all.insert("safetensors".into(), parameters);
    }
    all.extend(state.fields.clone());
    all
}

/// Parameters by type, from the headers of the safetensors files.
fn parameters(commit: &Commit) -> Option<Value> {
    let mut counts = Map::new();
    for (_, file) in commit.files.iter().filter(|(path, _)| path.ends_with(".safetensors")) {
        let length = u64::from_le_bytes(file.content.read(0..8).try_into().ok()?);
        if length > 10_000_000 {
            return None;
        }
        let header: Map<String, Value> = serde_json::from_slice(&file.content.read(8..8 + length)).ok()?;
        for tensor in header
            .iter()
            .filter(|(name, _)| *name != "__metadata__")
            .map(|(_, tensor)| tensor)
        {
            let shape = tensor["shape"].as_array()?;
            let elements: u64 = shape.iter().filter_map(Value::as_u64).product();
            let count = counts.entry(tensor["dtype"].as_str()?).or_insert(json!(0));
            *count = json!(count.as_u64().unwrap_or(0) + elements);
        }
    }
    let total: u64 = counts.values().filter_map(Value::as_u64).sum();
    (total > 0).then(|| json!({"parameters": counts, "total": total}))
}

/// A page of a folder of a commit, or of the folder and all below it.
pub(crate) fn tree(state: &State, commit: &Commit, folder: &str, query: &Query) -> Page {
    let recursive = query.is("recursive");
    let mut entries = Vec::new();
    let mut last_folder = String::new();
    for path in commit.files.keys() {
        let Some(below) = strip_folder(path, folder) else {
            continue;
        };
        if let (Some((first, _)), false) = (below.split_once('/'), recursive) {
            let path = path[..path.len() - below.len() + first.len()].to_owned();
            if path != last_folder {
                entries.push(json!({"type": "directory", "oid": commit.sha, "size": 0, "path": path}));
                last_folder = path;
            }
            continue;
        }
        // A file is hashed only for the page it is on, because a listing may be long.
        entries.push(json!({ "path": path }));
    }
    entries.extend(commit.entries.iter().cloned());
    let from = query.cursor();
    let limit = query
        .get("limit")
        .and_then(|limit| limit.parse().ok())
        .unwrap_or(TREE_PAGE);
    let next = (entries.len() > from + limit).then_some(from + limit);
    let items = entries
        .into_iter()
        .skip(from)
        .take(limit)
        .map(
            |entry| match entry["path"].as_str().and_then(|path| commit.files.get_key_value(path)) {
                Some((path, file)) if entry.get("type").is_none() => {
                    let mut said = json!({"type": "file", "oid": file.oid(), "size": file.content.len(), "path": path});
                    if file.large {
                        said["lfs"] = json!({"oid": file.sha256(), "size": file.content.len(), "pointerSize": file.pointer().len()});
                    }
                    if query.is("expand") {
                        said["lastCommit"] = json!({"id": commit.sha, "title": "Upload", "date": "2026-11-01T12:00:00.000Z"});
                    }
                    if let (Some(fields), Value::Object(said)) = (state.listed.get(path), &mut said) {
                        said.extend(fields.clone());
                    }
                    said
                }
                _ => entry,
            },
        )
        .collect();
    Page { items, next }
}

fn strip_folder<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() {
        return Some(path);
    }
    path.strip_prefix(folder)?.strip_prefix('/')
}

/// A page of a search over the repositories that the client may see.
pub(crate) fn search<'a>(repositories: impl Iterator<Item = &'a State>, query: &Query) -> Page {
    let words: Vec<String> = query
        .get("search")
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_lowercase)
        .collect();
    let mut found: Vec<Map<String, Value>> = repositories
        .filter(|state| state.renamed_to.is_none())
        .map(|state| description(state, state.head(), false))
        .filter(|model| {
            let text = |name: &str| model.get(name).and_then(Value::as_str).unwrap_or_default();
            let id = text("id").to_lowercase();
            let has_tag = |tag: &str| {
                let tags = model.get("tags").and_then(Value::as_array);
                tags.is_some_and(|tags| tags.iter().any(|own| own == tag))
                    || text("library_name") == tag
                    || text("pipeline_tag") == tag
            };
            words.iter().all(|word| id.contains(word.as_str()))
                && query
                    .get("author")
                    .is_none_or(|author| text("author").eq_ignore_ascii_case(author))
                && query.get("pipeline_tag").is_none_or(|tag| text("pipeline_tag") == tag)
                && query.all("filter").chain(query.all("library")).all(has_tag)
        })
        .collect();
    let sort = query.get("sort").unwrap_or("trendingScore");
    found.sort_by(|a, b| {
        let key = |model: &Map<String, Value>| {
            let value = model.get(sort).cloned().unwrap_or_default();
            (
                value.as_i64().unwrap_or(0),
                value.as_str().unwrap_or_default().to_owned(),
            )
        };
        key(b).cmp(&key(a))
    });
    if query.get("direction") == Some("1") {
        found.reverse();
    }
    let expand: Vec<&str> = query.all("expand").collect();
    let from = query.cursor();
    let limit = query
        .get("limit")
        .and_then(|limit| limit.parse().ok())
        .unwrap_or(SEARCH_PAGE)
        .min(SEARCH_PAGE);
    let next = (found.len() > from + limit).then_some(from + limit);
    let items = found
        .into_iter()
        .skip(from)
        .take(limit)
        .map(|model| {
            let wanted = |name: &str| match name {
                "_id" | "id" => true,
                _ if !expand.is_empty() => expand.contains(&name),
                "modelId" => true,
                "siblings" | "sha" | "lastModified" | "author" | "gated" => query.is("full"),
                "config" => query.is("config"),
                "cardData" => query.is("cardData"),
                "safetensors" | "usedStorage" | "spaces" | "disabled" => false,
                _ => true,
            };
            Value::Object(model.into_iter().filter(|(name, _)| wanted(name)).collect())
        })
        .collect();
    Page { items, next }
}
