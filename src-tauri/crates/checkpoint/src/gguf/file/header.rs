//! The beginning of a GGUF file: metadata and the places of tensors. Its lengths are claims of a stranger; nothing is
//! allocated for more than the file holds.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::kind::Kind;
use super::value::Value;
use crate::error::{Error, Result};

/// The most bytes before the tensors. Vocabularies of 260,000 tokens take 20 MB.
const LONGEST: u64 = 256 << 20;

/// The most entries of a list, of the metadata, and of the tensors.
const MOST_ENTRIES: u64 = 1 << 22;
const MOST_KEYS: u64 = 1 << 14;
const MOST_TENSORS: u64 = 1 << 17;

/// The longest names, in bytes.
const LONGEST_NAME: u64 = 1 << 10;

/// The most dimensions of a tensor, and their largest product.
const MOST_DIMENSIONS: u32 = 4;
const MOST_NUMBERS: u64 = 1 << 42;

/// The most bytes to which tensors are aligned.
const WIDEST: u64 = 1 << 20;

/// A tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its name, such as `blk.0.attn_q.weight`.
    pub name: String,
    /// The format of its numbers.
    pub kind: Kind,
    /// Its shape, the longest stretch of neighbors last.
    pub shape: Vec<u64>,
    /// The file's place among the parts of a model.
    pub part: usize,
    /// The first byte in the file.
    pub offset: u64,
}

impl Stored {
    /// Numbers of a row.
    pub fn columns(&self) -> u64 {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Rows of all its matrices.
    pub fn rows(&self) -> u64 {
        self.shape.iter().rev().skip(1).product()
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        self.columns() / self.kind.block() * self.kind.bytes()
    }

    /// Bytes in the file.
    pub fn bytes(&self) -> u64 {
        self.rows() * self.row_bytes()
    }
}

/// The header of one file.
#[derive(Debug)]
pub struct Header {
    /// The metadata.
    pub values: HashMap<String, Value>,
    /// The tensors.
    pub tensors: Vec<Stored>,
    /// The size of the file.
    pub bytes: u64,
}

impl Header {
    /// Reads the header of the part of this number.
    pub fn read(path: &Path, part: usize) -> Result<Self> {
        let unreadable = |source| Error::Unreadable {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(unreadable)?;
        let bytes = file.metadata().map_err(unreadable)?.len();
        let mut bytes_of = Bytes {
            reader: BufReader::with_capacity(1 << 16, file),
            at: 0,
            end: bytes,
        };
        parse(&mut bytes_of, part).map_err(|fault| match fault {
            Fault::Broken(reason) => Error::NotGguf {
                file: name_of(path),
                reason,
            },
            Fault::Refused(error) => error,
        })
    }
}

enum Fault {
    Broken(String),
    Refused(Error),
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self::Broken(reason)
    }
}

impl From<&str> for Fault {
    fn from(reason: &str) -> Self {
        Self::Broken(reason.to_owned())
    }
}

type Parsed<T> = std::result::Result<T, Fault>;

struct Bytes {
    reader: BufReader<File>,
    at: u64,
    end: u64,
}

impl Bytes {
    fn left(&self) -> u64 {
        self.end.min(LONGEST).saturating_sub(self.at)
    }

    /// Refuses a length that the file cannot hold.
    fn has(&self, bytes: u64, of: &str) -> Parsed<()> {
        if bytes <= self.left() {
            return Ok(());
        }
        match self.end > LONGEST && bytes <= self.end.saturating_sub(self.at) {
            true => Err(format!("its header is longer than {LONGEST} bytes ({of})").into()),
            false => Err(format!("it ends within {of}").into()),
        }
    }

    fn take(&mut self, bytes: u64, of: &str) -> Parsed<Vec<u8>> {
        self.has(bytes, of)?;
        let mut taken = vec![0; usize::try_from(bytes).map_err(|_| "it is too large for this computer")?];
        let read = self.reader.read_exact(&mut taken);
        read.map_err(|error| format!("it cannot be read ({error})"))?;
        self.at += bytes;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self, of: &str) -> Parsed<[u8; N]> {
        self.has(N as u64, of)?;
        let mut taken = [0; N];
        let read = self.reader.read_exact(&mut taken);
        read.map_err(|error| format!("it cannot be read ({error})"))?;
        self.at += N as u64;
        Ok(taken)
    }

    fn u32(&mut self, of: &str) -> Parsed<u32> {
        Ok(u32::from_le_bytes(self.fixed(of)?))
    }

    fn u64(&mut self, of: &str) -> Parsed<u64> {
        Ok(u64::from_le_bytes(self.fixed(of)?))
    }

    fn text(&mut self, longest: u64, of: &str) -> Parsed<String> {
        let length = self.u64(of)?;
        if length > longest {
            return Err(format!("{of} is {length} bytes long").into());
        }
        let bytes = self.take(length, of)?;
        String::from_utf8(bytes).map_err(|_| format!("{of} is no UTF-8").into())
    }
}

fn parse(bytes: &mut Bytes, part: usize) -> Parsed<Header> {
    if &bytes.fixed::<4>("its first bytes")? != b"GGUF" {
        return Err("it does not begin with GGUF".into());
    }
    match bytes.u32("its version")? {
        2 | 3 => {}
        version if version.swap_bytes() <= 0xFFFF => {
            return Err(Fault::Refused(Error::Unsupported(
                "GGUF files for big-endian computers".into(),
            )))
        }
        version => {
            return Err(Fault::Refused(Error::Unsupported(format!(
                "version {version} of GGUF files"
            ))))
        }
    }
    let (tensors, keys) = (bytes.u64("its count of tensors")?, bytes.u64("its count of keys")?);
    if tensors > MOST_TENSORS || keys > MOST_KEYS {
        return Err(format!("it claims to have {tensors} tensors and {keys} keys").into());
    }
    let mut values = HashMap::new();
    for _ in 0..keys {
        let key = bytes.text(LONGEST_NAME, "the name of a key")?;
        let kind = bytes.u32("the kind of a value")?;
        let value = value(bytes, kind, &key)?;
        if values.insert(key.clone(), value).is_some() {
            return Err(format!("it has two values of `{key}`").into());
        }
    }
    let alignment = match values.get("general.alignment") {
        None => 32,
        Some(value) => match value.count() {
            Some(bytes) if bytes.is_power_of_two() && (8..=WIDEST).contains(&bytes) => bytes,
            _ => return Err(format!("its tensors would be aligned to {value:?}").into()),
        },
    };
    let mut found = Vec::new();
    for _ in 0..tensors {
        found.push(tensor(bytes, part, alignment)?);
    }
    let start = bytes.at.next_multiple_of(alignment);
    place(&mut found, start, bytes.end)?;
    Ok(Header {
        values,
        tensors: found,
        bytes: bytes.end,
    })
}

fn value(bytes: &mut Bytes, kind: u32, key: &str) -> Parsed<Value> {
    let of = format!("the value of `{key}`");
    let of = of.as_str();
    Ok(match kind {
        8 => Value::Text(bytes.text(LONGEST, of)?),
        9 => return list(bytes, key),
        6 => Value::Float(f32::from_le_bytes(bytes.fixed(of)?)),
        12 => Value::Double(f64::from_le_bytes(bytes.fixed(of)?)),
        7 => Value::Flag(bytes.fixed::<1>(of)?[0] != 0),
        kind => match width(kind) {
            Some(width) => Value::Integer(integer(&bytes.take(width, of)?, kind)),
            None => return Err(format!("{of} is of the unknown kind {kind}").into()),
        },
    })
}

pub fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Bytes of a whole number of this kind.
fn width(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 => Some(1),
        2 | 3 => Some(2),
        4 | 5 => Some(4),
        10 | 11 => Some(8),
        _ => None,
    }
}

fn integer(bytes: &[u8], kind: u32) -> i128 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let number = u64::from_le_bytes(wide);
    let unused = 64 - 8 * bytes.len() as u32;
    match kind {
        1 | 3 | 5 | 11 => ((number << unused) as i64 >> unused).into(),
        _ => number.into(),
    }
}

fn list(bytes: &mut Bytes, key: &str) -> Parsed<Value> {
    let of = format!("the list `{key}`");
    let of = of.as_str();
    let (kind, count) = (bytes.u32(of)?, bytes.u64(of)?);
    if count > MOST_ENTRIES {
        return Err(format!("{of} claims to have {count} entries").into());
    }
    let least = match kind {
        8 => 8,
        6 => 4,
        12 => 8,
        7 => 1,
        9 => {
            return Err(Fault::Refused(Error::Unsupported(format!(
                "lists within the list `{key}`"
            ))))
        }
        kind => width(kind).ok_or_else(|| format!("{of} is of the unknown kind {kind}"))?,
    };
    bytes.has(count * least, of)?;
    if kind == 8 {
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(bytes.text(LONGEST, of)?);
        }
        return Ok(Value::Texts(texts));
    }
    let raw = bytes.take(count * least, of)?;
    let each = raw.chunks_exact(least as usize);
    Ok(match kind {
        7 => Value::Flags(each.map(|byte| byte[0] != 0).collect()),
        6 => Value::Floats(
            each.map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
                .collect(),
        ),
        12 => {
            let wide = |eight: &[u8]| eight.try_into().map_or(f64::NAN, f64::from_le_bytes) as f32;
            Value::Floats(each.map(wide).collect())
        }
        kind => {
            let numbers = each.map(|bytes| i64::try_from(integer(bytes, kind)));
            let numbers: std::result::Result<Vec<i64>, _> = numbers.collect();
            Value::Integers(numbers.map_err(|_| format!("{of} has numbers beyond 63 bits"))?)
        }
    })
}

fn tensor(bytes: &mut Bytes, part: usize, alignment: u64) -> Parsed<Stored> {
    let name = bytes.text(LONGEST_NAME, "the name of a tensor")?;
    let of = format!("the place of `{name}`");
    let of = of.as_str();
    let dimensions = bytes.u32(of)?;
    if dimensions == 0 || dimensions > MOST_DIMENSIONS {
        return Err(format!("`{name}` has {dimensions} dimensions").into());
    }
    let mut shape = Vec::new();
    let mut numbers = 1_u64;
    for _ in 0..dimensions {
        let length = bytes.u64(of)?;
        numbers = numbers.saturating_mul(length);
        if numbers == 0 || numbers > MOST_NUMBERS {
            return Err(format!("`{name}` would have {numbers} numbers").into());
        }
        shape.insert(0, length);
    }
    let kind = Kind::of(bytes.u32(of)?, &name).map_err(Fault::Refused)?;
    let offset = bytes.u64(of)?;
    if !offset.is_multiple_of(alignment) {
        return Err(format!("`{name}` is not aligned to {alignment} bytes").into());
    }
    let stored = Stored {
        name,
        kind,
        shape,
        part,
        offset,
    };
    if !stored.columns().is_multiple_of(kind.block()) {
        let (name, columns) = (&stored.name, stored.columns());
        return Err(format!("rows of {columns} numbers of `{name}` are no blocks of {}", kind.name()).into());
    }
    Ok(stored)
}

/// Makes offsets those in the file, and refuses tensors beyond its end or within each other.
fn place(tensors: &mut [Stored], start: u64, end: u64) -> Parsed<()> {
    let mut spans = Vec::new();
    for tensor in tensors.iter_mut() {
        let first = tensor.offset.checked_add(start);
        let last = first.and_then(|first| first.checked_add(tensor.bytes()));
        match (first, last) {
            (Some(first), Some(last)) if last <= end => {
                tensor.offset = first;
                spans.push((first, last, tensor.name.as_str()));
            }
            _ => return Err(format!("it ends within the tensor `{}`", tensor.name).into()),
        }
    }
    spans.sort_unstable();
    if let Some(pair) = spans.windows(2).find(|pair| pair[1].0 < pair[0].1) {
        return Err(format!("the tensors `{}` and `{}` overlap", pair[0].2, pair[1].2).into());
    }
    let names: HashSet<&str> = spans.iter().map(|(.., name)| *name).collect();
    match names.len() == spans.len() {
        true => Ok(()),
        false => Err("it has two tensors of one name".into()),
    }
}
