//! The modules of a crate and their imports, read from `use` statements and from paths that begin with `crate`, `self`
//! or `super`. Test code is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module's path within its crate: `["cache", "layout"]`; the root is empty.
pub type Module = Vec<String>;

/// The imports of a crate between files.
pub struct Crate {
    files: BTreeMap<Module, Source>,
}

struct Source {
    path: PathBuf,
    /// Paths that the file names, absolute within the crate, and whether they are re-exports.
    named: Vec<(Module, bool)>,
    /// Names that the file re-exports, and the path they stand for. `*` is a glob.
    exports: Vec<(String, Module)>,
}

impl Crate {
    /// Reads all files below a crate's `src`.
    pub fn read(src: &Path) -> Self {
        let mut found = Vec::new();
        collect(src, &mut Vec::new(), &mut found);
        let modules: BTreeSet<Module> = found.iter().map(|(module, _)| module.clone()).collect();
        let files = found
            .into_iter()
            .map(|(module, path)| {
                let text = without_tests(&fs::read_to_string(&path).expect("sources are text"));
                let (named, exports) = names(&text, &module, &modules);
                (module, Source { path, named, exports })
            })
            .collect();
        Self { files }
    }

    /// The names of modules at the root.
    pub fn top_level(&self) -> BTreeSet<String> {
        self.files.keys().filter_map(|module| module.first().cloned()).collect()
    }

    /// The path of a module's file, for messages.
    pub fn path(&self, module: &Module) -> &Path {
        &self.files[module].path
    }

    /// The imports between modules. A folder's re-exports of its own content are not imports.
    pub fn imports(&self) -> BTreeSet<(Module, Module)> {
        let mut edges = BTreeSet::new();
        for (from, source) in &self.files {
            for (name, exported) in &source.named {
                let Some(to) = self.resolve(name, 0) else { continue };
                let own = *exported && to.starts_with(from);
                if &to != from && !own {
                    edges.insert((from.clone(), to));
                }
            }
        }
        edges
    }

    /// The file that defines what a path names, through re-exports.
    fn resolve(&self, name: &[String], depth: usize) -> Option<Module> {
        let known = (0..=name.len())
            .rev()
            .find(|&length| self.files.contains_key(&name[..length]))?;
        let module = name[..known].to_vec();
        let Some(item) = name.get(known).filter(|_| depth < 8) else {
            return Some(module);
        };
        let exports = &self.files[&module].exports;
        let target = exports.iter().find(|(exported, _)| exported == item);
        match target {
            Some((_, target)) if target != &name[..=known] => self.resolve(target, depth + 1),
            _ => Some(module),
        }
    }

    /// Groups of files that import each other in a circle.
    pub fn circles(&self) -> Vec<Vec<Module>> {
        let mut reach: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        let edges = self.imports();
        for start in self.files.keys() {
            let mut seen = BTreeSet::new();
            let mut open = vec![start.clone()];
            while let Some(next) = open.pop() {
                for (_, to) in edges
                    .range((next.clone(), Vec::new())..)
                    .take_while(|(from, _)| *from == next)
                {
                    if seen.insert(to.clone()) {
                        open.push(to.clone());
                    }
                }
            }
            reach.insert(start.clone(), seen);
        }
        let mut circles: Vec<Vec<Module>> = Vec::new();
        for (module, seen) in &reach {
            if !seen.contains(module) || circles.iter().any(|circle| circle.contains(module)) {
                continue;
            }
            circles.push(
                seen.iter()
                    .filter(|other| reach[*other].contains(module))
                    .cloned()
                    .collect(),
            );
        }
        circles
    }
}

fn collect(folder: &Path, module: &mut Module, found: &mut Vec<(Module, PathBuf)>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            module.push(name);
            collect(&path, module, found);
            module.pop();
        } else if path.extension().is_some_and(|ending| ending == "rs") && !is_test(&name) {
            let mut own = module.clone();
            if !["mod", "lib", "main"].contains(&name.as_str()) {
                own.push(name);
            }
            found.push((own, path));
        }
    }
}

fn is_test(name: &str) -> bool {
    name == "tests" || name.ends_with("_tests") || name == "test_support"
}

/// The text up to its tests, without comments.
fn without_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            // The item that follows: up to its end at the same indentation.
            for line in lines.by_ref() {
                if line.ends_with(';') && !line.starts_with(' ') || line == "}" {
                    break;
                }
            }
            continue;
        }
        kept.push_str(line.split("//").next().unwrap_or(line));
        kept.push('\n');
    }
    kept
}

type Names = (Vec<(Module, bool)>, Vec<(String, Module)>);

/// The paths that a text names, and what it re-exports.
fn names(text: &str, module: &Module, modules: &BTreeSet<Module>) -> Names {
    let (mut named, mut exports) = (Vec::new(), Vec::new());
    let mut rest = text;
    let mut code = String::new();
    while let Some(at) = rest.find("use ") {
        let begins = at == 0 || rest[..at].ends_with(|letter: char| letter.is_whitespace());
        let end = rest[at..].find(';').map(|end| at + end);
        let (true, Some(end)) = (begins, end) else {
            code.push_str(&rest[..at + 4]);
            rest = &rest[at + 4..];
            continue;
        };
        let line = rest[..at].rsplit('\n').next().unwrap_or("");
        let exported = line.trim_start().starts_with("pub");
        let tree: String = rest[at + 4..end].split_whitespace().collect::<Vec<_>>().join(" ");
        for (path, alias) in expand(&tree) {
            let Some(path) = absolute(&path, module, modules) else {
                continue;
            };
            if exported {
                exports.push((alias, path.clone()));
            }
            named.push((path, exported));
        }
        code.push_str(&rest[..at]);
        rest = &rest[end..];
    }
    code.push_str(rest);
    for start in ["crate::", "self::", "super::"] {
        for (at, _) in code.match_indices(start) {
            if code[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':') {
                continue;
            }
            let path: Vec<String> = code[at..]
                .split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'))
                .next()
                .unwrap_or("")
                .split("::")
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect();
            named.extend(absolute(&path, module, modules).map(|path| (path, false)));
        }
    }
    (named, exports)
}

/// The single paths of a tree of `use`, with the names under which they are known.
fn expand(tree: &str) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let head: Vec<String> = parts(head);
        let group = group.rsplit_once('}').map_or(group, |(inside, _)| inside);
        return split_group(group)
            .into_iter()
            .flat_map(expand)
            .map(|(path, alias)| {
                let own = path == ["self"];
                let path = head
                    .iter()
                    .cloned()
                    .chain(path.into_iter().filter(|_| !own))
                    .collect::<Vec<_>>();
                let alias = if own {
                    path.last().cloned().unwrap_or_default()
                } else {
                    alias
                };
                (path, alias)
            })
            .collect();
    }
    let (path, alias) = tree
        .split_once(" as ")
        .map_or((tree, None), |(path, alias)| (path, Some(alias)));
    let path = parts(path);
    let alias = alias.map_or_else(
        || path.last().cloned().unwrap_or_default(),
        |alias| alias.trim().to_owned(),
    );
    if path.is_empty() {
        Vec::new()
    } else {
        vec![(path, alias)]
    }
}

fn parts(path: &str) -> Vec<String> {
    path.split("::")
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

fn split_group(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&group[start..]);
    found
}

/// A path from the root of the crate, if it names something in it.
fn absolute(path: &[String], module: &Module, modules: &BTreeSet<Module>) -> Option<Module> {
    let mut base = module.clone();
    let mut rest = path;
    match path.first().map(String::as_str)? {
        "crate" => {
            base.clear();
            rest = &path[1..];
        }
        "self" => rest = &path[1..],
        "super" => {
            while let Some(("super", more)) = rest.split_first().map(|(first, more)| (first.as_str(), more)) {
                base.pop()?;
                rest = more;
            }
        }
        first => {
            base.push(first.to_owned());
            if !modules.contains(&base) {
                return None;
            }
            rest = &path[1..];
        }
    }
    base.extend(rest.iter().cloned());
    Some(base)
}
