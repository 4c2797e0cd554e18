//! The entries of a page: rows of tables, keys of indexes, and the pages that lie below.

use crate::file::pages::{
    header_length, number, short, PageVersion, Pages, FILE_HEADER, INDEX_INTERIOR, INDEX_LEAF, TABLE_INTERIOR,
    TABLE_LEAF,
};

/// The longest entry, in bytes.
const LONGEST: u64 = 1 << 30;

/// A stored value. Texts are bytes: damage leaves some that are no UTF-8.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    /// A number of a kind that no table has.
    Real,
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

/// The values of a row or of a key.
pub(super) struct Entry {
    /// The number of a row, which keys and rows of tables without numbers lack.
    pub rowid: Option<i64>,
    pub values: Vec<Value>,
    /// False if its end is lost: texts are as long as what is left, and numbers are 0.
    pub is_whole: bool,
}

impl Entry {
    /// The first value, which is the id of a row, if it is a text.
    pub fn id(&self) -> Option<&[u8]> {
        match self.values.first() {
            Some(Value::Text(id)) => Some(id),
            _ => None,
        }
    }

    /// True if it is a row of the list of tables.
    pub fn is_of_schema(&self) -> bool {
        matches!(self.id(), Some(b"table" | b"index" | b"view" | b"trigger"))
    }
}

/// A page, taken apart as far as it can be read.
#[derive(Default)]
pub(super) struct PageEntries {
    pub entries: Vec<Entry>,
    /// The pages below it.
    pub children: Vec<u32>,
}

/// Reads the entries of a page. What makes no sense is left out.
pub(super) fn entries(pages: &Pages, page: u32, version: PageVersion) -> PageEntries {
    let Some(bytes) = pages.read(page, version) else {
        return PageEntries::default();
    };
    let at = if page == 1 { FILE_HEADER } else { 0 };
    let kind = bytes[at];
    let interior = matches!(kind, INDEX_INTERIOR | TABLE_INTERIOR);
    if !interior && !matches!(kind, INDEX_LEAF | TABLE_LEAF) {
        return PageEntries::default();
    }
    let mut found = PageEntries::default();
    let list = at + header_length(kind);
    let most = (pages.size - list) / 2;
    for entry in 0..short(&bytes, at + 3).min(most) {
        let mut place = short(&bytes, list + 2 * entry);
        if interior {
            found.children.push(number(&bytes, place));
            place += 4;
        }
        if kind != TABLE_INTERIOR {
            found
                .entries
                .extend(read_entry(pages, &bytes, place, kind == TABLE_LEAF));
        }
    }
    if interior {
        found.children.push(number(&bytes, at + 8));
    }
    found
}

fn read_entry(pages: &Pages, page: &[u8], mut place: usize, is_row: bool) -> Option<Entry> {
    let length = varint(page, &mut place)?;
    let rowid = match is_row {
        true => Some(varint(page, &mut place)? as i64),
        false => None,
    };
    let payload = payload(pages, page, place, length, is_row)?;
    Some(Entry {
        rowid,
        values: values(&payload, length)?,
        is_whole: payload.len() as u64 == length,
    })
}

/// The bytes of an entry: those on its page and those on the pages that go on with it, up to the first that is lost.
fn payload(pages: &Pages, page: &[u8], place: usize, length: u64, is_row: bool) -> Option<Vec<u8>> {
    if length > LONGEST.min(u64::from(pages.count) * pages.size as u64) {
        return None;
    }
    let (length, usable) = (length as usize, pages.size);
    let least = (usable - 12) * 32 / 255 - 23;
    let most = if is_row {
        usable - 35
    } else {
        (usable - 12) * 64 / 255 - 23
    };
    let here = match least + length.saturating_sub(least) % (usable - 4) {
        _ if length <= most => length,
        here if here <= most => here,
        _ => least,
    };
    let mut payload = page.get(place..place + here)?.to_vec();
    let mut next = number(page, place + here);
    while payload.len() < length && next != 0 {
        let Some(more) = pages.read(next, PageVersion::Newest) else {
            break;
        };
        let missing = length - payload.len();
        next = number(&more, 0);
        // A page that was emptied, or one of another entry.
        if (next == 0) != (missing <= usable - 4) || more.iter().all(|byte| *byte == 0) {
            break;
        }
        payload.extend_from_slice(&more[4..][..missing.min(usable - 4)]);
    }
    Some(payload)
}

/// The values of an entry, of which some bytes may be lost.
fn values(payload: &[u8], length: u64) -> Option<Vec<Value>> {
    let mut place = 0;
    let header = varint(payload, &mut place)? as usize;
    if header > payload.len() || header < place {
        return None;
    }
    let mut values = Vec::new();
    let mut body = header as u64;
    while place < header {
        let kind = varint(payload, &mut place)?;
        let bytes = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => (kind - 12) / 2,
        };
        let end = body.checked_add(bytes).filter(|end| *end <= length)? as usize;
        let left = &payload[(body as usize).min(payload.len())..end.min(payload.len())];
        body = end as u64;
        values.push(match kind {
            0 => Value::Null,
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            1..=6 if left.len() as u64 == bytes => Value::Integer(integer(left)),
            1..=6 => Value::Integer(0),
            7 => Value::Real,
            text if text % 2 == 1 => Value::Text(left.to_vec()),
            _ => Value::Blob(left.to_vec()),
        });
    }
    (body == length).then_some(values)
}

/// A signed number of up to eight bytes.
fn integer(bytes: &[u8]) -> i64 {
    let sign = if bytes.first().is_some_and(|first| *first >= 0x80) {
        -1
    } else {
        0
    };
    bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte))
}

/// A number of one to nine bytes, of which the eighth bit says that another one follows.
fn varint(bytes: &[u8], place: &mut usize) -> Option<u64> {
    let mut number = 0;
    for count in 1..=9 {
        let byte = *bytes.get(*place)?;
        *place += 1;
        if count == 9 {
            return Some(number << 8 | u64::from(byte));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            break;
        }
    }
    Some(number)
}
