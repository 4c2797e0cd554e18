//! The archive of a bundle: every name, size and kind in it is checked before a file of it is written.

use std::collections::{HashMap, HashSet};
use std::io::{Cursor, Read};
use std::time::Duration;

use sandbox::{Task, Work};
use serde::{Deserialize, Serialize};
use zip::result::ZipError;
use zip::ZipArchive;

use super::Error;

/// Bytes of a bundle at most.
pub const MAX_BYTES: u64 = 100 << 20;

/// Bytes that its files unfold to at most.
const MAX_UNFOLDED: u64 = 256 << 20;

/// Bytes of the manifest at most.
const MAX_MANIFEST: u64 = 1 << 20;

/// Files at most. A server brings the packages that it needs.
const MAX_FILES: usize = 20_000;

/// A file may unfold to this many times its size, beyond a size that harms nobody.
const MAX_RATIO: u64 = 200;
const HARMLESS: u64 = 1 << 20;

/// Bytes of a name at most, as a whole and between two slashes, and its folders.
const LONGEST_NAME: usize = 1000;
const LONGEST_PART: usize = 255;
const DEEPEST: usize = 32;

/// The name of the manifest.
const MANIFEST: &str = "manifest.json";

/// The signature of an entry in an archive's directory.
const ENTRY: &[u8] = b"PK\x01\x02";

/// Bits of a file's mode that say what it is, and those of a plain file.
const KIND_OF_FILE: u32 = 0o170_000;
const PLAIN_FILE: u32 = 0o100_000;

static UNPACK: Task<bool, Result<Vec<Entry>, Error>> = Task::new("mcpb", Duration::from_secs(60), |whole, bytes| {
    match read(&bytes, whole) {
        Ok((entries, unfolded)) => (Ok(entries), unfolded),
        Err(error) => (Err(error), Vec::new()),
    }
});

/// The work of this room on files of strangers.
pub static TASKS: [&dyn Work; 1] = [&UNPACK];

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path in the bundle, which leads nowhere else.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// It may be started.
    pub executable: bool,
}

/// The files of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// All of its files.
    pub entries: Vec<Entry>,
    /// Their contents, one after the other; of a bundle that is only looked at, that of the manifest.
    pub unfolded: Vec<u8>,
}

/// Checks a bundle and unfolds it, in the process for files of strangers: all of it, or its manifest.
///
/// # Errors
/// [`Error::Archive`] with what is wrong with it.
pub fn unpack(bytes: Vec<u8>, whole: bool) -> Result<Contents, Error> {
    let (entries, unfolded) = UNPACK
        .run(whole, bytes)
        .map_err(|error| Error::Archive(error.to_string()))?;
    let entries = entries?;
    let expected: u64 = entries
        .iter()
        .filter(|entry| whole || entry.path == MANIFEST)
        .map(|entry| entry.bytes)
        .sum();
    match expected == unfolded.len() as u64 {
        true => Ok(Contents { entries, unfolded }),
        false => Err(refusal("it was not read to its end")),
    }
}

fn read(bytes: &[u8], whole: bool) -> Result<(Vec<Entry>, Vec<u8>), Error> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refusal(&format!("it is larger than {} MB", MAX_BYTES >> 20)));
    }
    // The directory is read as a whole, so its length is known before. Folders have entries of their own.
    if bytes.windows(ENTRY.len()).filter(|window| *window == ENTRY).count() > 2 * MAX_FILES {
        return Err(refusal(&format!("it holds more than {MAX_FILES} files")));
    }
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    if archive.has_duplicate_names() {
        return Err(refusal("it holds two files of the same name"));
    }
    let mut names = Names::default();
    let (mut entries, mut unfolded, mut left) = (Vec::new(), Vec::new(), MAX_UNFOLDED);
    for index in 0..archive.len() {
        let file = archive.by_index(index).map_err(broken)?;
        let path = std::str::from_utf8(file.name_raw()).map_err(|_| refusal("a name in it is no text"))?;
        let (path, is_folder) = (path.to_owned(), file.is_dir());
        names.check(&path, is_folder)?;
        if file.encrypted() {
            return Err(refusal("it is protected by a password"));
        }
        let kind = file.unix_mode().unwrap_or_default() & KIND_OF_FILE;
        if file.is_symlink() || (!is_folder && kind != 0 && kind != PLAIN_FILE) {
            return Err(refusal(&format!("“{path}” in it is a link or no plain file")));
        }
        if is_folder {
            continue;
        }
        if entries.len() == MAX_FILES {
            return Err(refusal(&format!("it holds more than {MAX_FILES} files")));
        }
        let executable = file.unix_mode().unwrap_or_default() & 0o111 != 0;
        let packed = file.compressed_size();
        let most = match path == MANIFEST {
            true => left.min(MAX_MANIFEST),
            false => left,
        };
        // Its own word about its length is not believed.
        let mut content = Vec::new();
        let read = file.take(most + 1).read_to_end(&mut content);
        let length = read.map_err(|_| refusal(&format!("“{path}” in it is damaged")))? as u64;
        if length > most {
            return Err(refusal("it unfolds to more than a server needs"));
        }
        if length > HARMLESS && length / MAX_RATIO > packed {
            return Err(refusal(&format!(
                "“{path}” in it unfolds to more than {MAX_RATIO} times its size"
            )));
        }
        left -= length;
        if whole || path == MANIFEST {
            unfolded.append(&mut content);
        }
        entries.push(Entry {
            path,
            bytes: length,
            executable,
        });
    }
    match entries.iter().any(|entry| entry.path == MANIFEST) {
        true => Ok((entries, unfolded)),
        false => Err(refusal("it holds no manifest.json")),
    }
}

/// The names of an archive, as a file system may fold them.
#[derive(Default)]
struct Names {
    files: HashSet<String>,
    /// Folders, those that only stand in paths among them, with one spelling each.
    folders: HashMap<String, String>,
}

impl Names {
    /// Refuses names that lead out of the folder, hide something, or are one with another name on some file system.
    fn check(&mut self, path: &str, is_folder: bool) -> Result<(), Error> {
        let plain = path.strip_suffix('/').filter(|_| is_folder).unwrap_or(path);
        let strange = |character: char| character.is_control() || matches!(character, '\\' | ':');
        if plain.is_empty() || plain.len() > LONGEST_NAME || plain.starts_with('/') || plain.contains(strange) {
            return Err(refusal(&format!(
                "the name “{}” in it leads elsewhere",
                path.escape_debug()
            )));
        }
        let parts: Vec<&str> = plain.split('/').collect();
        let leads_out = |part: &&str| matches!(*part, "" | "." | "..") || part.len() > LONGEST_PART;
        if parts.len() > DEEPEST || parts.iter().any(leads_out) {
            return Err(refusal(&format!("the name “{plain}” in it leads elsewhere")));
        }
        let folders = parts.len() - usize::from(!is_folder);
        for depth in 1..=folders {
            let folder = parts[..depth].join("/");
            if self.files.contains(&fold(&folder)) {
                return Err(refusal(&format!("“{folder}” in it is there twice")));
            }
            let known = self.folders.entry(fold(&folder)).or_insert_with(|| folder.clone());
            if *known != folder {
                return Err(refusal(&format!("“{known}” and “{folder}” in it may be one folder")));
            }
        }
        let file = fold(plain);
        let twice = match is_folder {
            true => self.files.contains(&file),
            false => self.folders.contains_key(&file) || !self.files.insert(file),
        };
        match twice {
            true => Err(refusal(&format!("“{plain}” in it is there twice"))),
            false => Ok(()),
        }
    }
}

/// The name as file systems compare names that do not tell large letters from small ones.
fn fold(name: &str) -> String {
    name.to_lowercase()
}

fn broken(error: ZipError) -> Error {
    refusal(match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => "it is protected by a password",
        ZipError::UnsupportedArchive(_) | ZipError::CompressionMethodNotSupported(_) => {
            "it is packed in an unusual way"
        }
        _ => "it is no ZIP archive, or a damaged one",
    })
}

fn refusal(reason: &str) -> Error {
    Error::Archive(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;
    use zip::ZipWriter;

    use super::*;

    type Writer = ZipWriter<Cursor<Vec<u8>>>;

    /// A bundle with a manifest, and what this adds.
    fn bundle(add: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        file(&mut writer, MANIFEST, b"{}");
        add(&mut writer);
        writer.finish().unwrap().into_inner()
    }

    fn file(writer: &mut Writer, name: &str, content: &[u8]) {
        writer.start_file(name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }

    fn refused(bytes: Vec<u8>) -> String {
        match unpack(bytes, true) {
            Err(Error::Archive(reason)) => reason,
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn a_bundle_is_unfolded_file_by_file() {
        let bytes = bundle(|writer| {
            writer.add_directory("server", SimpleFileOptions::default()).unwrap();
            file(writer, "server/index.js", b"1");
            let runs = SimpleFileOptions::default().unix_permissions(0o755);
            writer.start_file("server/bin/run", runs).unwrap();
            writer.write_all(b"#!/bin/sh").unwrap();
        });
        let contents = unpack(bytes.clone(), true).unwrap();
        let paths: Vec<(&str, bool)> = contents
            .entries
            .iter()
            .map(|entry| (entry.path.as_str(), entry.executable))
            .collect();
        assert_eq!(
            paths,
            [(MANIFEST, false), ("server/index.js", false), ("server/bin/run", true)]
        );
        assert_eq!(contents.unfolded, b"{}1#!/bin/sh");
        let looked_at = unpack(bytes, false).unwrap();
        assert_eq!((looked_at.entries.len(), &looked_at.unfolded[..]), (3, &b"{}"[..]));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [
            "../x",
            "a/../../x",
            "/etc/cron.d/x",
            "a//b",
            "./x",
            "a/./b",
            "..\\x",
            "C:\\x",
            "C:x",
            "a\nb",
            "a\0b",
            "~\u{7f}",
            &"a/".repeat(DEEPEST).trim_end_matches('/').replace('a', "aa").repeat(2),
            &"x".repeat(LONGEST_PART + 1),
            &format!("{}/y", "x".repeat(LONGEST_PART).repeat(4)),
        ] {
            let bytes = bundle(|writer| file(writer, name, b"x"));
            assert!(refused(bytes).contains("leads elsewhere"), "{name:?}");
        }
    }

    #[test]
    fn names_that_are_one_file_are_refused() {
        for (one, other) in [
            ("a", "A"),
            ("a/b", "A/c"),
            ("a", "a/b"),
            ("a/b", "A"),
            ("manifest.JSON", "x"),
        ] {
            let bytes = bundle(|writer| {
                file(writer, one, b"1");
                file(writer, other, b"2");
            });
            let reason = refused(bytes);
            assert!(
                reason.contains("twice") || reason.contains("one folder"),
                "{one} {other}: {reason}"
            );
        }
    }

    #[test]
    fn links_and_devices_are_refused() {
        let link = bundle(|writer| {
            let options = SimpleFileOptions::default();
            writer.add_symlink("key", "/home/me/.ssh/id_ed25519", options).unwrap();
        });
        assert!(refused(link).contains("link"));
        // Modes of a pipe and a device, written over that of a plain file in the directory.
        for kind in [0o010_000_u32, 0o020_000, 0o060_000, 0o140_000] {
            let mut bytes = bundle(|writer| file(writer, "odd", b"x"));
            let last = bytes.windows(4).rposition(|window| window == ENTRY).unwrap();
            // Made by Unix, then the mode in the upper half of the external attributes.
            bytes[last + 5] = 3;
            bytes[last + 38..last + 42].copy_from_slice(&((kind | 0o644) << 16).to_le_bytes());
            assert!(refused(bytes).contains("no plain file"), "{kind:o}");
        }
    }

    #[test]
    fn what_unfolds_to_too_much_is_refused() {
        let zeros = vec![0; 32 << 20];
        let bomb = bundle(|writer| file(writer, "bomb", &zeros));
        assert!(bomb.len() < 1 << 20);
        assert!(refused(bomb).contains("times its size"));
        // Each within its ratio, together beyond what a server needs.
        let random = |seed: u32| {
            let mut state = seed;
            let noise = std::iter::repeat_with(move || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            });
            let mut content: Vec<u8> = noise.take(300_000).collect();
            content.resize(40 << 20, 0);
            content
        };
        let many = bundle(|writer| (1..8).for_each(|seed| file(writer, &format!("{seed}"), &random(seed))));
        assert!(refused(many).contains("more than a server needs"));
        let manifest = {
            let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
            file(&mut writer, MANIFEST, &vec![b' '; MAX_MANIFEST as usize + 1]);
            writer.finish().unwrap().into_inner()
        };
        assert!(refused(manifest).contains("more than a server needs"));
    }

    #[test]
    fn too_many_files_are_refused() {
        let bytes = bundle(|writer| (0..MAX_FILES).for_each(|place| file(writer, &format!("f{place}"), b"")));
        assert!(refused(bytes).contains("more than 20000 files"));
    }

    #[test]
    fn what_is_no_bundle_is_refused() {
        let whole = bundle(|writer| file(writer, "a", b"abc"));
        for bytes in [
            Vec::new(),
            b"hello".to_vec(),
            b"PK\x03\x04".to_vec(),
            whole[..whole.len() - 10].to_vec(),
        ] {
            assert!(refused(bytes).contains("no ZIP archive"));
        }
        let empty = ZipWriter::new(Cursor::new(Vec::new())).finish().unwrap().into_inner();
        assert!(refused(empty).contains("manifest.json"));
        // Another sum than that of the content.
        let mut damaged = whole.clone();
        let last = damaged.windows(4).rposition(|window| window == ENTRY).unwrap();
        damaged[last + 16] ^= 1;
        assert!(refused(damaged).contains("damaged"));
        // Every cut and every changed byte is refused or read, and nothing panics.
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 0xff;
            let _ = unpack(changed, true);
            let _ = unpack(whole[..place].to_vec(), true);
        }
    }
}
