//! Small GGUF files, sound and hostile.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use super::*;

/// A file that is put together value by value.
#[derive(Clone, Default)]
pub(crate) struct Writer {
    values: Vec<u8>,
    keys: u64,
    infos: Vec<u8>,
    tensors: u64,
    data: Vec<u8>,
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

impl Writer {
    pub fn raw(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.values
            .extend([text(key), kind.to_le_bytes().to_vec(), value.to_vec()].concat());
        self.keys += 1;
        self
    }

    pub fn text(self, key: &str, value: &str) -> Self {
        self.raw(key, 8, &text(value))
    }

    pub fn number(self, key: &str, value: u32) -> Self {
        self.raw(key, 4, &value.to_le_bytes())
    }

    pub fn float(self, key: &str, value: f32) -> Self {
        self.raw(key, 6, &value.to_le_bytes())
    }

    pub fn texts(self, key: &str, values: &[&str]) -> Self {
        let values: Vec<u8> = values.iter().flat_map(|value| text(value)).collect();
        let count = self.clone().count_of(&values);
        self.raw(key, 9, &[&8_u32.to_le_bytes()[..], &count, &values].concat())
    }

    fn count_of(self, values: &[u8]) -> [u8; 8] {
        let (mut at, mut count) = (0, 0_u64);
        while at < values.len() {
            at += 8 + u64::from_le_bytes(values[at..at + 8].try_into().unwrap()) as usize;
            count += 1;
        }
        count.to_le_bytes()
    }

    pub fn integers(self, key: &str, values: &[i32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let count = (values.len() as u64).to_le_bytes();
        self.raw(key, 9, &[&5_u32.to_le_bytes()[..], &count, &bytes].concat())
    }

    /// A tensor, its columns first as files have it.
    pub fn tensor(mut self, name: &str, shape: &[u64], kind: u32, data: &[u8]) -> Self {
        let offset = self.data.len() as u64;
        self.data.extend(data);
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        self.info(name, shape, kind, offset)
    }

    pub fn info(mut self, name: &str, shape: &[u64], kind: u32, offset: u64) -> Self {
        self.infos.extend(text(name));
        self.infos.extend((shape.len() as u32).to_le_bytes());
        self.infos.extend(shape.iter().flat_map(|length| length.to_le_bytes()));
        self.infos
            .extend([&kind.to_le_bytes()[..], &offset.to_le_bytes()].concat());
        self.tensors += 1;
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let counts = [self.tensors.to_le_bytes(), self.keys.to_le_bytes()].concat();
        let mut bytes = [b"GGUF", &3_u32.to_le_bytes()[..], &counts, &self.values, &self.infos].concat();
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend(&self.data);
        bytes
    }

    pub fn write(&self, folder: &tempfile::TempDir, name: &str) -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, self.bytes()).unwrap();
        path
    }
}

fn opened(bytes: &[u8]) -> Result<GgufFile> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, bytes).unwrap();
    GgufFile::open(&path)
}

fn sound() -> Writer {
    Writer::default()
        .text("general.architecture", "llama")
        .number("llama.block_count", 2)
        .float("llama.rope.freq_base", 1e-5)
        .raw("small", 1, &[0xFF])
        .integers("same", &[7, 7])
        .texts("words", &["a", "", "ö"])
        .tensor("a.weight", &[32, 2], 2, &[1; 36])
        .tensor("b.weight", &[3], 0, &[0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64])
}

#[test]
fn a_file_tells_its_metadata_and_the_places_of_its_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let file = GgufFile::open(&sound().write(&folder, "model.gguf")).unwrap();
    assert_eq!(file.text("general.architecture"), Some("llama"));
    assert_eq!(file.value("llama.rope.freq_base").unwrap().number(), Some(1e-5));
    assert_eq!(file.value("small"), Some(&Value::Integer(-1)));
    assert_eq!(file.count("same"), Some(7));
    assert_eq!(file.value("words").unwrap().texts().unwrap(), ["a", "", "ö"]);
    let [a, b] = file.tensors() else { panic!("two tensors") };
    assert_eq!((a.kind, &a.shape[..], a.bytes()), (Kind::Q4_0, &[2, 32][..], 36));
    assert_eq!(file.small(b).unwrap(), [1.0, 2.0, 3.0]);
}

#[test]
fn a_header_cut_anywhere_is_refused_with_its_reason() {
    let whole = sound().bytes();
    for end in 0..whole.len() - 20 {
        assert!(matches!(opened(&whole[..end]), Err(Error::NotGguf { .. })), "{end}");
    }
}

#[test]
fn whatever_a_header_claims_nothing_breaks() {
    let whole = sound().bytes();
    for at in 0..whole.len() - 64 {
        for byte in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut changed = whole.clone();
            changed[at] = byte;
            // Both are fine; a panic or an endless allocation is not.
            let _ = opened(&changed);
        }
    }
}

#[test]
fn hostile_headers_are_refused_by_name() {
    let list = |kind: u32, count: u64| [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat();
    let base = Writer::default;
    let overlapping = sound().info("c.weight", &[32], 2, 32);
    for (bytes, words) in [
        (base().raw("a", 9, &list(8, u64::MAX)).bytes(), "entries"),
        (base().raw("a", 9, &list(4, 1 << 20)).bytes(), "ends within"),
        (
            base().raw("a", 9, &[list(9, 1), list(4, 0)].concat()).bytes(),
            "lists within",
        ),
        (base().raw("a", 9, &list(77, 0)).bytes(), "unknown kind 77"),
        (base().raw("a", 13, &[]).bytes(), "unknown kind 13"),
        (base().raw("a", 8, &u64::MAX.to_le_bytes()).bytes(), "bytes long"),
        (base().raw("a", 8, &(1_u64 << 27).to_le_bytes()).bytes(), "ends within"),
        (
            base().raw("a", 8, &[2, 0, 0, 0, 0, 0, 0, 0, 0xC3, 0x28]).bytes(),
            "no UTF-8",
        ),
        (base().number("a", 1).number("a", 1).bytes(), "two values"),
        (base().number("general.alignment", 24).bytes(), "aligned"),
        (base().number("general.alignment", 0).bytes(), "aligned"),
        (base().number("general.alignment", 1 << 30).bytes(), "aligned"),
        (base().info("a", &[], 0, 0).bytes(), "0 dimensions"),
        (base().info("a", &[1; 5], 0, 0).bytes(), "5 dimensions"),
        (base().info("a", &[4, 0], 0, 0).bytes(), "0 numbers"),
        (base().info("a", &[u64::MAX, u64::MAX], 0, 0).bytes(), "numbers"),
        (base().info("a", &[33], 2, 0).bytes(), "no blocks of Q4_0"),
        (base().info("a", &[32], 2, 7).bytes(), "not aligned"),
        (base().info("a", &[32], 2, 0).bytes(), "within the tensor"),
        (base().info("a", &[32], 2, u64::MAX - 31).bytes(), "within the tensor"),
        (base().info("a", &[32], 16, 0).bytes(), "IQ2_XXS"),
        (base().info("a", &[32], 999, 0).bytes(), "number 999"),
        (overlapping.bytes(), "overlap"),
        (sound().tensor("a.weight", &[1], 0, &[0; 4]).bytes(), "one name"),
        (b"GGML".to_vec(), "begin with GGUF"),
        ([&b"GGUF"[..], &3_u32.to_be_bytes(), &[0; 16]].concat(), "big-endian"),
        ([&b"GGUF"[..], &1_u32.to_le_bytes(), &[0; 16]].concat(), "version 1 "),
        (
            [&b"GGUF"[..], &3_u32.to_le_bytes(), &[0xFF; 16]].concat(),
            "claims to have",
        ),
    ] {
        let error = opened(&bytes).unwrap_err().to_string();
        assert!(error.contains(words), "{error} has not {words}");
    }
}

#[test]
fn parts_of_a_model_are_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let part = |number: u32, count: u32| {
        let name = format!("t{number}.weight");
        let part = Writer::default()
            .number("split.no", number)
            .number("split.count", count);
        part.number("split.tensors.count", 3).tensor(&name, &[1], 0, &[0; 4])
    };
    let path = |number: u32| format!("m-{number:05}-of-00003.gguf");
    for number in 0..3 {
        part(number, 3).write(&folder, &path(number + 1));
    }
    for number in 1..4 {
        let file = GgufFile::open(&folder.path().join(path(number))).unwrap();
        assert_eq!((file.paths.len(), file.tensors().len()), (3, 3));
        assert_eq!(file.tensor("t2.weight").unwrap().part, 2);
    }
    part(1, 3).write(&folder, &path(3));
    let wrong = GgufFile::open(&folder.path().join(path(1))).unwrap_err().to_string();
    assert!(wrong.contains("not part 3 of 3"), "{wrong}");
    std::fs::remove_file(folder.path().join(path(2))).unwrap();
    let missing = GgufFile::open(&folder.path().join(path(1)));
    assert!(matches!(missing, Err(Error::Unreadable { .. })));
    let alone = part(0, 3).write(&folder, "renamed.gguf");
    assert!(GgufFile::open(&alone)
        .unwrap_err()
        .to_string()
        .contains("does not say which"));
}
