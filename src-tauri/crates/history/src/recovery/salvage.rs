//! Rows out of every page of a file that can be read, wherever it belongs. The trees that hold pages together may be
//! destroyed; a row is told by its values.

use std::collections::HashSet;

use sqlx::SqliteConnection;

use crate::file::database::newest_version;
use crate::file::pages::{LogOwner, PageVersion, Pages};
use crate::recovery::entries::{entries, Entry, Value};
use crate::recovery::tables::Table;
use crate::Result;

/// The indexes of chats by their ids.
const CHAT_INDEXES: [&[u8]; 2] = [b"sqlite_autoindex_chats_1", b"messages_by_chat"];

/// The readable rows of a file.
#[derive(Default)]
pub(super) struct Salvaged {
    /// The ids of all chats that the file names somewhere.
    pub chats: HashSet<Vec<u8>>,
    /// The tables of the version of the file.
    tables: Vec<Table>,
    /// Rows whose end is lost, each with the place of its table. They are added last: a backup may have them whole.
    cut_off: Vec<(usize, Vec<Value>)>,
}

/// Adds the rows of a file, as far as they can be read whole, to `file`, which has a transaction open and keeps its own
/// row if there are two of one key.
///
/// # Errors
/// [`crate::Error::DiskFull`].
pub(super) async fn salvage(pages: &Pages, file: &mut SqliteConnection) -> Result<Salvaged> {
    let map = Map::of(pages);
    let newest = newest_version();
    let version = pages.version().filter(|version| (1..=newest).contains(version));
    // Of a file without a header every version is tried, because rows of another one fit no table.
    let versions = version.into_iter().chain((1..=newest).rev());
    let mut found = Salvaged::default();
    for version in versions {
        found.tables = Table::all(version).await?;
        found.cut_off.clear();
        found
            .add(pages, map.in_order(pages), PageVersion::Newest, file, |_, _| true)
            .await?;
        // Those that a log of this file hides were deleted.
        if pages.log_owner == LogOwner::Unknown {
            found.add_hidden_chats(pages, file).await?;
        }
        if !found.chats.is_empty() {
            break;
        }
    }
    for root in &map.chat_indexes {
        found.chats.extend(first_values(pages, *root));
    }
    Ok(found)
}

impl Salvaged {
    /// Adds the rows whose end is lost.
    ///
    /// # Errors
    /// [`crate::Error::DiskFull`].
    pub async fn add_cut_off(&mut self, file: &mut SqliteConnection) -> Result<()> {
        for (table, values) in self.cut_off.drain(..) {
            self.tables[table].add(file, values).await?;
        }
        Ok(())
    }

    /// Adds the rows of these pages that are wanted.
    async fn add(
        &mut self,
        pages: &Pages,
        numbers: impl Iterator<Item = u32> + Send,
        version: PageVersion,
        file: &mut SqliteConnection,
        mut is_wanted: impl FnMut(&Table, &Entry) -> bool + Send,
    ) -> Result<()> {
        for page in numbers {
            for entry in entries(pages, page, version).entries {
                let Some(place) = self.tables.iter().position(|table| table.fits(&entry)) else {
                    continue;
                };
                let table = &self.tables[place];
                if !is_wanted(table, &entry) {
                    continue;
                }
                self.chats.extend(table.chat_of(&entry));
                match entry.is_whole {
                    true => table.add(file, entry.values).await?,
                    false => self.cut_off.push((place, entry.values)),
                }
            }
        }
        Ok(())
    }

    /// Adds the chats that only pages name of which the log has newer ones: the log may be another file's. Of chats that
    /// are known it has the later state.
    async fn add_hidden_chats(&mut self, pages: &Pages, file: &mut SqliteConnection) -> Result<()> {
        let (known, mut messages) = (self.chats.clone(), HashSet::new());
        let is_hidden = |table: &Table, entry: &Entry| match table.chat_of(entry) {
            Some(chat) if !known.contains(&chat) => {
                messages.extend(entry.id().map(<[u8]>::to_vec));
                true
            }
            _ => false,
        };
        let all = 1..=pages.count;
        self.add(pages, all.clone(), PageVersion::Hidden, file, is_hidden)
            .await?;
        let is_part = |table: &Table, entry: &Entry| {
            table.name == "parts" && entry.id().is_some_and(|message| messages.contains(message))
        };
        self.add(pages, all, PageVersion::Hidden, file, is_part).await
    }
}

/// The pages of a file, by what leads to them.
#[derive(Default)]
struct Map {
    /// Pages that another page or the list of tables names.
    linked: HashSet<u32>,
    /// Pages kept for later use, which may hold what was deleted.
    free: HashSet<u32>,
    /// The first pages of the indexes of chats.
    chat_indexes: Vec<u32>,
}

impl Map {
    fn of(pages: &Pages) -> Self {
        let mut map = Self {
            free: pages.free(),
            ..Self::default()
        };
        for page in (1..=pages.count).filter(|page| !map.free.contains(page)) {
            let found = entries(pages, page, PageVersion::Newest);
            map.linked.extend(found.children);
            for entry in found.entries {
                // A row of the list of tables.
                if let [Value::Text(kind), Value::Text(name), _, Value::Integer(root), _] = &entry.values[..] {
                    let root = u32::try_from(*root).unwrap_or_default();
                    if matches!(&kind[..], b"table" | b"index") {
                        map.linked.insert(root);
                    }
                    if CHAT_INDEXES.contains(&&name[..]) {
                        map.chat_indexes.push(root);
                    }
                }
            }
        }
        map
    }

    /// The pages that something leads to, then those that are cut off from it.
    fn in_order<'a>(&'a self, pages: &Pages) -> impl Iterator<Item = u32> + 'a {
        let all = 1..=pages.count;
        let linked = all.clone().filter(|page| *page == 1 || self.linked.contains(page));
        let cut_off = |page: &u32| *page != 1 && !self.linked.contains(page) && !self.free.contains(page);
        linked.chain(all.filter(cut_off))
    }
}

/// The first values of the keys of an index.
fn first_values(pages: &Pages, root: u32) -> HashSet<Vec<u8>> {
    let (mut found, mut seen, mut next) = (HashSet::new(), HashSet::new(), vec![root]);
    while let Some(page) = next.pop() {
        if !seen.insert(page) {
            continue;
        }
        let below = entries(pages, page, PageVersion::Newest);
        next.extend(below.children);
        found.extend(below.entries.iter().filter_map(|entry| entry.id().map(<[u8]>::to_vec)));
    }
    found
}
