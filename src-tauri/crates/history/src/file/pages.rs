//! The pages of a SQLite file as they lie on the disk, with those of its log in front of them. SQLite refuses a whole
//! file for one field of its header, and takes any log that lies beside it for its own; here every page is read for
//! itself.
//!
//! Source: <https://www.sqlite.org/fileformat2.html>.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use sqlite::privacy;

use crate::{Error, Result};

/// The header of the file, at the beginning of the first page.
pub(crate) const FILE_HEADER: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
/// The header of the log, and of each of its frames.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The place of `application_id`, a number that a history gets when it is made, and its backups keep.
const HISTORY_ID: usize = 68;
/// The bytes that are looked at for the size of a page.
const SAMPLE: u64 = 4 << 20;

/// The kinds of pages that hold entries, by their first byte.
pub(crate) const INDEX_INTERIOR: u8 = 2;
pub(crate) const TABLE_INTERIOR: u8 = 5;
pub(crate) const INDEX_LEAF: u8 = 10;
pub(crate) const TABLE_LEAF: u8 = 13;

/// A database file and its log, read page by page.
pub(crate) struct Pages {
    file: File,
    log: Option<File>,
    /// The bytes of a page.
    pub size: usize,
    /// The number of pages. They are numbered from 1.
    pub count: u32,
    /// The place in the log of each page that it holds.
    in_log: HashMap<u32, u64>,
    /// The history that the log belongs to. The log of another one is not read.
    pub log_owner: LogOwner,
}

/// The history that a log beside a file belongs to.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum LogOwner {
    /// The file itself.
    This,
    /// Another file, such as one that this one was put in the place of.
    Another,
    /// One of them does not name its history.
    Unknown,
}

/// The copy of a page that is read.
#[derive(Clone, Copy)]
pub(crate) enum PageVersion {
    /// The one in the log, else the one in the file.
    Newest,
    /// The one in the file that the log hides.
    Hidden,
}

impl Pages {
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).map_err(Error::from_file)?;
        let size = page_size(&mut file).map_err(Error::from_file)?;
        let bytes = file.metadata().map_err(Error::from_file)?.len();
        let count = (bytes / size as u64).min(u64::from(u32::MAX)) as u32;
        let mut pages = Self {
            file,
            log: None,
            size,
            count,
            in_log: HashMap::new(),
            log_owner: LogOwner::Unknown,
        };
        let [_, log, _] = privacy::with_companions(path);
        if let Some(log) = files::found(File::open(log)).map_err(Error::from_file)? {
            pages.read_log(&log).map_err(Error::from_file)?;
            pages.log = Some(log);
            pages.log_owner = pages.owner_of_log();
            if pages.log_owner == LogOwner::Another {
                pages.in_log.clear();
                pages.count = count;
            }
        }
        Ok(pages)
    }

    /// Leaves the file and its log open as long as this process lives: to close them would drop the locks by which
    /// SQLite keeps other processes from emptying the log, if this process has the history open.
    pub fn leave_open(self) {
        std::mem::forget((self.file, self.log));
    }

    /// Both the file and its log name the history that they belong to.
    fn owner_of_log(&self) -> LogOwner {
        let of = |version| self.read(1, version).map_or(0, |page| number(&page, HISTORY_ID));
        match (of(PageVersion::Hidden), of(PageVersion::Newest)) {
            (0, _) | (_, 0) => LogOwner::Unknown,
            (file, log) if file == log => LogOwner::This,
            _ => LogOwner::Another,
        }
    }

    /// A page; `None` if there is none of this number, or the disk does not give it.
    pub fn read(&self, number: u32, version: PageVersion) -> Option<Vec<u8>> {
        let place = self.in_log.get(&number);
        let mut page = vec![0; self.size];
        let read = match (version, place, &self.log) {
            (PageVersion::Newest, Some(place), Some(log)) => read_at(log, *place, &mut page),
            (PageVersion::Hidden, None, _) => return None,
            _ if number == 0 || number > self.count => return None,
            _ => read_at(&self.file, (u64::from(number) - 1) * self.size as u64, &mut page),
        };
        read.inspect_err(|error| tracing::warn!(%error, number, "a page cannot be read"))
            .ok()?;
        Some(page)
    }

    /// The format of the tables (`user_version`), if the header of the file is there.
    pub fn version(&self) -> Option<i64> {
        let first = self.read(1, PageVersion::Newest)?;
        first.starts_with(MAGIC).then(|| i64::from(number(&first, 60)))
    }

    /// The pages that the file keeps for later use, which may hold what was deleted; none without a header.
    pub fn free(&self) -> HashSet<u32> {
        let mut free = HashSet::new();
        let Some(first) = self.read(1, PageVersion::Newest).filter(|page| page.starts_with(MAGIC)) else {
            return free;
        };
        let mut trunk = number(&first, 32);
        while trunk != 0 && free.insert(trunk) {
            let Some(page) = self.read(trunk, PageVersion::Newest) else {
                break;
            };
            let leaves = (number(&page, 4) as usize).min(self.size / 4 - 2);
            free.extend((0..leaves).map(|leaf| number(&page, 8 + 4 * leaf)));
            trunk = number(&page, 0);
        }
        free
    }

    /// Notes the place of every page of the log up to the last transaction that is whole.
    fn read_log(&mut self, log: &File) -> std::io::Result<()> {
        let mut header = [0; LOG_HEADER];
        if !full(read_at(log, 0, &mut header))? || number(&header, 8) as usize != self.size {
            return Ok(());
        }
        let big = match number(&header, 0) {
            0x377f_0682 => false,
            0x377f_0683 => true,
            _ => return Ok(()),
        };
        let mut sum = checksum((0, 0), &header[..24], big);
        if sum != (number(&header, 24), number(&header, 28)) {
            return Ok(());
        }
        let mut frame = vec![0; FRAME_HEADER + self.size];
        let mut begun = Vec::new();
        let mut place = LOG_HEADER as u64;
        while full(read_at(log, place, &mut frame))? {
            sum = checksum(sum, &frame[..8], big);
            sum = checksum(sum, &frame[FRAME_HEADER..], big);
            let salts = frame[8..16] == header[16..24];
            if !salts || sum != (number(&frame, 16), number(&frame, 20)) {
                break;
            }
            begun.push((number(&frame, 0), place + FRAME_HEADER as u64));
            // The last frame of a transaction has the length of the file after it.
            let pages = number(&frame, 4);
            if pages > 0 {
                self.count = self.count.max(pages);
                self.in_log.extend(begun.drain(..));
            }
            place += frame.len() as u64;
        }
        Ok(())
    }
}

/// The size at which the most pages of the beginning read as pages with entries.
fn page_size(file: &mut File) -> std::io::Result<usize> {
    let mut sample = Vec::new();
    file.take(SAMPLE).read_to_end(&mut sample)?;
    let valid = |size: &usize| {
        let pages = sample.chunks_exact(*size);
        pages.filter(|page| has_entries(page)).count()
    };
    let sizes = (9..=16).map(|power| 1_usize << power);
    // The usual one, if nothing can be seen.
    Ok(sizes.max_by_key(|size| (valid(size), *size == 4096)).unwrap_or(4096))
}

/// True if a page has a list of entries that lie in it.
fn has_entries(page: &[u8]) -> bool {
    let (entries, first) = (short(page, 3), short(page, 5));
    let list = header_length(page[0]);
    matches!(page[0], INDEX_INTERIOR | TABLE_INTERIOR | INDEX_LEAF | TABLE_LEAF)
        && entries > 0
        && list + 2 * entries <= first
        && (0..entries).all(|entry| (first..page.len()).contains(&short(page, list + 2 * entry)))
}

/// The length of the header of a page with entries.
pub(crate) fn header_length(kind: u8) -> usize {
    match kind {
        INDEX_INTERIOR | TABLE_INTERIOR => 12,
        _ => 8,
    }
}

/// A number of two bytes; 0 beyond the end.
pub(crate) fn short(bytes: &[u8], at: usize) -> usize {
    let found = bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok());
    usize::from(u16::from_be_bytes(found.unwrap_or_default()))
}

/// A number of four bytes; 0 beyond the end.
pub(crate) fn number(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    u32::from_be_bytes(found.unwrap_or_default())
}

fn read_at(mut file: &File, place: u64, bytes: &mut [u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(place))?;
    file.read_exact(bytes)
}

/// False at the end of a file.
fn full(read: std::io::Result<()>) -> std::io::Result<bool> {
    match read {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

/// The checksum of the log, which each frame carries on from the one before it.
fn checksum((mut first, mut second): (u32, u32), bytes: &[u8], big: bool) -> (u32, u32) {
    let words = bytes.chunks_exact(4).map(|bytes| {
        let word = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if big {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        }
    });
    for (place, word) in words.enumerate() {
        if place % 2 == 0 {
            first = first.wrapping_add(word).wrapping_add(second);
        } else {
            second = second.wrapping_add(word).wrapping_add(first);
        }
    }
    (first, second)
}
