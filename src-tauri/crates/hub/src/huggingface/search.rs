//! The search for models on the hub.

use std::sync::Arc;

use api::{FitVerdict, HubModel, SearchPage, SearchQuery, Sort};
use futures::stream::{self, StreamExt};
use net::Purpose;
use protocol::ThinkingControl;
use serde_json::Value;

use crate::error::Error;
use crate::huggingface::address::ModelAddress;
use crate::huggingface::catalog::Catalog;
use crate::huggingface::hub_api::{next_cursor, HubApi};
use crate::huggingface::response_cache::CacheKind;
use crate::huggingface::summary::HubSummary;
use crate::local::model_folder::ModelFolder;

/// Limit of a page, in bytes.
const LARGEST_PAGE: u64 = 16 << 20;
/// Models on a page of the hub.
const PAGE: usize = 30;
/// Models on a page of ours; if filters leave fewer, more of the hub's pages are read.
const ENOUGH: usize = 10;
/// Limit of the hub's pages that are read for one of ours.
const MOST_PAGES: usize = 4;
/// Models that are described at the same time for a filter.
const DESCRIBED_AT_ONCE: usize = 4;
/// Limit of the search text, in characters.
const LONGEST_TEXT: usize = 200;
/// Fields of each model that a row shows, so that no row needs a request of its own.
const FIELDS: [&str; 9] = [
    "author",
    "downloads",
    "gated",
    "lastModified",
    "likes",
    "pipeline_tag",
    "safetensors",
    "sha",
    "tags",
];

/// The search for models in MLX's format that may write text.
#[derive(Debug)]
pub struct Search {
    api: HubApi,
    local: ModelFolder,
    catalog: Arc<Catalog>,
}

impl Search {
    pub(crate) fn new(api: HubApi, local: ModelFolder, catalog: Arc<Catalog>) -> Self {
        Self { api, local, catalog }
    }

    /// A page of search results. An id or an address leads to that one model.
    ///
    /// If the hub cannot be reached, the last page of the same query is returned, or every described model that matches
    /// the words, with the reason in [`SearchPage::cached_because`].
    ///
    /// # Errors
    /// [`Error::Address`] and [`Error::Name`] for an address of something else; whatever keeps the hub from answering,
    /// if nothing is cached.
    pub async fn page(&self, query: &SearchQuery) -> Result<SearchPage, Error> {
        let mut query = query.clone();
        query.text = query.text.trim().chars().take(LONGEST_TEXT).collect();
        match ModelAddress::parse(&query.text, self.api.net().endpoint())? {
            Some(ModelAddress::Model { id, revision }) => match self.catalog.describe_at(&id, &revision).await {
                // It may have been words with a slash between them.
                Err(Error::NotOnHub(_)) if !query.text.contains(':') => {}
                Err(error) if error.is_unreachable() => return self.cached_page(&query, error).await,
                found => {
                    return Ok(SearchPage {
                        models: vec![found?],
                        ..SearchPage::default()
                    })
                }
            },
            Some(ModelAddress::Owner(owner)) => {
                query.author = Some(owner);
                query.text = String::new();
            }
            None => {}
        }
        match self.fetch_page(&query).await {
            Ok(page) => {
                self.catalog.responses().put(CacheKind::Search, &key(&query), &page);
                Ok(page)
            }
            Err(error) if error.is_unreachable() => self.cached_page(&query, error).await,
            Err(error) => Err(error),
        }
    }

    async fn fetch_page(&self, query: &SearchQuery) -> Result<SearchPage, Error> {
        let mut page = SearchPage {
            cursor: query.cursor.clone(),
            ..SearchPage::default()
        };
        for _ in 0..MOST_PAGES {
            let (summaries, next) = self.hub_page(query, page.cursor.as_deref()).await?;
            let found = summaries.len();
            let writers = summaries.into_iter().filter(|summary| summary.writes);
            let models = writers.map(|summary| self.row(summary)).collect();
            let kept = self.filtered(query, models).await?;
            page.left_out += u32::try_from(found.saturating_sub(kept.len())).unwrap_or(u32::MAX);
            page.models.extend(kept);
            page.cursor = next;
            // The hub cannot sort by size, so the smallest are taken from as many pages as are read at most.
            if page.cursor.is_none() || (page.models.len() >= ENOUGH && query.sort != Sort::Size) {
                break;
            }
        }
        order(query.sort, &mut page.models);
        Ok(page)
    }

    /// One of the hub's pages and the cursor of the next. Entries that cannot be read are skipped.
    async fn hub_page(
        &self,
        query: &SearchQuery,
        cursor: Option<&str>,
    ) -> Result<(Vec<HubSummary>, Option<String>), Error> {
        let net = self.api.net();
        let models = net.endpoint().at(&["api", "models"]);
        let address = format!("{models}?{}", address_query(query, cursor));
        let answer = net.get(&address, Purpose::Search).send().await?.error_for_status()?;
        let next = next_cursor(&answer).filter(|next| Some(next.as_str()) != cursor);
        let page: Vec<Value> = answer.json_capped(LARGEST_PAGE).await?;
        let summaries = page.iter().take(PAGE).filter_map(|entry| HubSummary::read(entry).ok());
        let summaries: Vec<HubSummary> = summaries.collect();
        summaries.iter().for_each(|summary| self.catalog.keep_summary(summary));
        Ok((summaries, next))
    }

    /// A row of the list.
    fn row(&self, summary: HubSummary) -> HubModel {
        HubModel {
            here: self.local.has(&summary.model.id),
            commit: summary.commit.map(|commit| commit.to_string()),
            ..summary.model
        }
    }

    async fn filtered(&self, query: &SearchQuery, models: Vec<HubModel>) -> Result<Vec<HubModel>, Error> {
        let described = if query.fits_only || query.thinks_only || query.quantization.is_some() {
            let described = models.into_iter().map(|model| async move {
                match self.catalog.describe(&model.id).await {
                    Ok(described) => Ok(described),
                    Err(error) if error.is_unreachable() => Err(error),
                    // One model that cannot be described does not spoil the page.
                    Err(_) => Ok(model),
                }
            });
            let described: Vec<Result<HubModel, Error>> =
                stream::iter(described).buffered(DESCRIBED_AT_ONCE).collect().await;
            described.into_iter().collect::<Result<_, _>>()?
        } else {
            models
        };
        Ok(described.into_iter().filter(|model| passes(query, model)).collect())
    }

    async fn cached_page(&self, query: &SearchQuery, because: Error) -> Result<SearchPage, Error> {
        let responses = self.catalog.responses();
        if let Some((mut page, at)) = responses.get::<SearchPage>(CacheKind::Search, &key(query)) {
            for model in &mut page.models {
                model.here = self.local.has(&model.id);
            }
            page.cached_at = Some(at);
            page.cached_because = Some(because.into());
            return Ok(page);
        }
        let text = query.text.to_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut models = self.catalog.described().await;
        models.retain(|model| {
            let id = model.id.to_lowercase();
            let by_author = |author: &String| model.author.eq_ignore_ascii_case(author);
            words.iter().all(|word| id.contains(word))
                && query.author.as_ref().is_none_or(by_author)
                && passes(query, model)
        });
        if models.is_empty() || query.cursor.is_some() {
            return Err(because);
        }
        order(query.sort, &mut models);
        Ok(SearchPage {
            cached_at: models.iter().filter_map(|model| model.cached_at).min(),
            models,
            cached_because: Some(because.into()),
            ..SearchPage::default()
        })
    }
}

/// The query of a search's address. Outside the request's future, because its writer is not `Send`.
fn address_query(query: &SearchQuery, cursor: Option<&str>) -> String {
    let sort = match query.sort {
        Sort::Downloads | Sort::Size => "downloads",
        Sort::Updated => "lastModified",
        Sort::Likes => "likes",
    };
    let mut address = url::form_urlencoded::Serializer::new(String::new());
    if !query.text.is_empty() {
        address.append_pair("search", &query.text);
    }
    let author = query.author.as_deref().unwrap_or_default().trim();
    if !author.is_empty() {
        address.append_pair("author", author);
    }
    let limit = PAGE.to_string();
    address.extend_pairs([
        ("filter", "mlx"),
        ("sort", sort),
        ("direction", "-1"),
        ("limit", &limit),
    ]);
    address.extend_pairs(FIELDS.map(|field| ("expand", field)));
    address.extend_pairs(cursor.map(|cursor| ("cursor", cursor)));
    address.finish()
}

fn passes(query: &SearchQuery, model: &HubModel) -> bool {
    let fits = model.problem.is_none() && model.fit.is_some_and(|fit| fit.word != FitVerdict::WillNotFit);
    let thinks = !matches!(model.thinking, None | Some(ThinkingControl::Never));
    let own = model.quantization.as_deref();
    let quantized = |wanted: &str| own.is_some_and(|own| own.eq_ignore_ascii_case(wanted.trim()));
    (!query.fits_only || fits) && (!query.thinks_only || thinks) && query.quantization.as_deref().is_none_or(quantized)
}

fn order(sort: Sort, models: &mut [HubModel]) {
    match sort {
        // Models of unknown size come last.
        Sort::Size => models.sort_by_key(|model| model.bytes.unwrap_or(u64::MAX)),
        Sort::Downloads => models.sort_by_key(|model| std::cmp::Reverse(model.downloads)),
        Sort::Likes => models.sort_by_key(|model| std::cmp::Reverse(model.likes)),
        Sort::Updated => models.sort_by_key(|model| std::cmp::Reverse(model.updated_at)),
    }
}

/// The query as the key of a cached page.
fn key(query: &SearchQuery) -> String {
    serde_json::to_string(query).unwrap_or_else(|_| format!("{query:?}"))
}
