//! Looking for models on the hub.

use api::{FitVerdict, HubModel, SearchPage, SearchQuery, Sort};
use futures::stream::{self, StreamExt};
use net::Purpose;
use protocol::ThinkingControl;
use serde_json::Value;

use crate::huggingface::address::ModelAddress;
use crate::huggingface::api::next_cursor;
use crate::huggingface::card::unreachable;
use crate::huggingface::response_cache::CacheKind;
use crate::huggingface::summary::HubSummary;
use crate::{Error, Hub};

/// The most of a page that is read, in bytes.
const LARGEST_PAGE: u64 = 16 << 20;
/// Models on a page of the hub.
const PAGE: usize = 30;
/// A page is filled up to so many models if filters leave few.
const ENOUGH: usize = 10;
/// At most so many of the hub's pages are asked for to fill one.
const MOST_PAGES: usize = 4;
/// How many models are looked at at once for a filter.
const AT_ONCE: usize = 4;
/// The longest text that is looked for, in characters.
const LONGEST_TEXT: usize = 200;
/// What is asked about each model, so that a row can be shown without another request.
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

impl Hub {
    /// A page of models in MLX's format that may write text. An id or an address leads to that one model.
    ///
    /// If the hub cannot be reached, the page as it was seen last is given, or every known model that matches the words, with the
    /// reason in [`SearchPage::cached_because`].
    ///
    /// # Errors
    /// [`Error::Address`] and [`Error::Name`] for what leads nowhere; whatever keeps the hub from answering, if nothing is remembered.
    pub async fn search(&self, query: &SearchQuery) -> Result<SearchPage, Error> {
        let mut query = query.clone();
        query.text = query.text.trim().chars().take(LONGEST_TEXT).collect();
        match ModelAddress::parse(&query.text, self.net().endpoint())? {
            Some(ModelAddress::Model { id, revision }) => match self.describe_at(&id, &revision).await {
                // It may have been words with a slash between them.
                Err(Error::NotOnHub { .. }) if !query.text.contains(':') => {}
                Err(error) if unreachable(&error) => return self.page_from_memory(&query, error).await,
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
        match self.page(&query).await {
            Ok(page) => {
                self.response_cache().put(CacheKind::Search, &key(&query), &page);
                Ok(page)
            }
            Err(error) if unreachable(&error) => self.page_from_memory(&query, error).await,
            Err(error) => Err(error),
        }
    }

    async fn page(&self, query: &SearchQuery) -> Result<SearchPage, Error> {
        let mut page = SearchPage {
            cursor: query.cursor.clone(),
            ..SearchPage::default()
        };
        for _ in 0..MOST_PAGES {
            let (summaries, next) = self.hubs_page(query, page.cursor.as_deref()).await?;
            let found = summaries.len();
            let models = summaries
                .into_iter()
                .filter(|summary| summary.writes)
                .map(|summary| self.row(summary))
                .collect();
            let kept = self.filtered(query, models).await?;
            page.left_out += u32::try_from(found.saturating_sub(kept.len())).unwrap_or(u32::MAX);
            page.models.extend(kept);
            page.cursor = next;
            // The hub knows no order by size, so that the smallest are looked for on as many pages as are read.
            if page.cursor.is_none() || (page.models.len() >= ENOUGH && query.sort != Sort::Size) {
                break;
            }
        }
        order(query.sort, &mut page.models);
        Ok(page)
    }

    /// One page as the hub gives it; descriptions that cannot be read are skipped.
    async fn hubs_page(
        &self,
        query: &SearchQuery,
        cursor: Option<&str>,
    ) -> Result<(Vec<HubSummary>, Option<String>), Error> {
        let address = format!(
            "{}?{}",
            self.net().endpoint().at(&["api", "models"]),
            asked(query, cursor)
        );
        let answer = self
            .net()
            .get(&address, Purpose::Search)
            .send()
            .await?
            .error_for_status()?;
        let next = next_cursor(&answer).filter(|next| Some(next.as_str()) != cursor);
        let page: Vec<Value> = answer.json_capped(LARGEST_PAGE).await?;
        let summaries: Vec<HubSummary> = page
            .iter()
            .take(PAGE)
            .filter_map(|entry| HubSummary::read(entry).ok())
            .collect();
        summaries.iter().for_each(|summary| self.keep_summary(summary));
        Ok((summaries, next))
    }

    /// A row of the list: its summary, and whether the model is here.
    fn row(&self, summary: HubSummary) -> HubModel {
        HubModel {
            here: self.folder().find(&summary.model.id).is_ok(),
            commit: summary.commit.map(|commit| commit.to_string()),
            ..summary.model
        }
    }

    async fn filtered(&self, query: &SearchQuery, models: Vec<HubModel>) -> Result<Vec<HubModel>, Error> {
        let looked = if query.fits_only || query.thinks_only || query.quantization.is_some() {
            let looks = models.into_iter().map(|model| async move {
                match self.describe(&model.id).await {
                    Ok(described) => Ok(described),
                    Err(error) if unreachable(&error) => Err(error),
                    // One model that cannot be looked at does not spoil the page.
                    Err(_) => Ok(model),
                }
            });
            let looked: Vec<Result<HubModel, Error>> = stream::iter(looks).buffered(AT_ONCE).collect().await;
            looked.into_iter().collect::<Result<_, _>>()?
        } else {
            models
        };
        Ok(looked.into_iter().filter(|model| passes(query, model)).collect())
    }

    async fn page_from_memory(&self, query: &SearchQuery, because: Error) -> Result<SearchPage, Error> {
        if let Some((mut page, at)) = self.response_cache().get::<SearchPage>(CacheKind::Search, &key(query)) {
            for model in &mut page.models {
                model.here = self.folder().find(&model.id).is_ok();
            }
            page.cached_at = Some(at);
            page.cached_because = Some(because.into());
            return Ok(page);
        }
        let sought = query.text.to_lowercase();
        let words: Vec<&str> = sought.split_whitespace().collect();
        let mut models = self.known_models().await;
        models.retain(|model| {
            let id = model.id.to_lowercase();
            words.iter().all(|word| id.contains(word))
                && query
                    .author
                    .as_ref()
                    .is_none_or(|author| model.author.eq_ignore_ascii_case(author))
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

/// The query of a search's address. Apart from the request, because the writer of it cannot be sent between threads.
fn asked(query: &SearchQuery, cursor: Option<&str>) -> String {
    let sort = match query.sort {
        Sort::Downloads | Sort::Size => "downloads",
        Sort::Updated => "lastModified",
        Sort::Likes => "likes",
    };
    let mut asked = url::form_urlencoded::Serializer::new(String::new());
    if !query.text.is_empty() {
        asked.append_pair("search", &query.text);
    }
    if let Some(author) = query
        .author
        .as_deref()
        .map(str::trim)
        .filter(|author| !author.is_empty())
    {
        asked.append_pair("author", author);
    }
    asked
        .append_pair("filter", "mlx")
        .append_pair("sort", sort)
        .append_pair("direction", "-1");
    asked.append_pair("limit", &PAGE.to_string());
    for field in FIELDS {
        asked.append_pair("expand", field);
    }
    if let Some(cursor) = cursor {
        asked.append_pair("cursor", cursor);
    }
    asked.finish()
}

fn passes(query: &SearchQuery, model: &HubModel) -> bool {
    let fits = model.problem.is_none() && model.fit.is_some_and(|fit| fit.word != FitVerdict::WillNotFit);
    let thinks = model
        .thinking
        .as_ref()
        .is_some_and(|control| *control != ThinkingControl::Never);
    let quantised = |wanted: &str| {
        model
            .quantization
            .as_deref()
            .is_some_and(|own| own.eq_ignore_ascii_case(wanted.trim()))
    };
    (!query.fits_only || fits) && (!query.thinks_only || thinks) && query.quantization.as_deref().is_none_or(quantised)
}

fn order(sort: Sort, models: &mut [HubModel]) {
    match sort {
        // Those of unknown size come last.
        Sort::Size => models.sort_by_key(|model| model.bytes.unwrap_or(u64::MAX)),
        Sort::Downloads => models.sort_by_key(|model| std::cmp::Reverse(model.downloads)),
        Sort::Likes => models.sort_by_key(|model| std::cmp::Reverse(model.likes)),
        Sort::Updated => models.sort_by_key(|model| std::cmp::Reverse(model.updated_at)),
    }
}

/// What was asked, as a text.
fn key(query: &SearchQuery) -> String {
    serde_json::to_string(query).unwrap_or_else(|_| format!("{query:?}"))
}
