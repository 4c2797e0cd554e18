//! Writes the hostile templates of the tests as files, for `./dev hostile`, which gives them to the programs. They are
//! the first COUNT that `hostile_templates_end` renders with the same seed.
//!
//! `hostile_templates FOLDER COUNT SEED` prints a line for each file: its name and its pattern.
#![allow(clippy::unwrap_used)]

#[path = "../tests/hostile/pattern.rs"]
mod pattern;
#[path = "../tests/hostile/random.rs"]
mod random;
#[path = "../tests/hostile/sources.rs"]
mod sources;
#[path = "../tests/hostile/values.rs"]
mod values;

use std::fs;
use std::path::PathBuf;

use pattern::Pattern;
use random::Random;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, count, seed] = arguments.as_slice() else {
        panic!("hostile_templates FOLDER COUNT SEED");
    };
    let (folder, count) = (PathBuf::from(folder), count.parse::<usize>().unwrap());
    let mut random = Random::new(seed.parse().unwrap());
    let patterns: Vec<&Pattern> = values::PATTERNS.iter().chain(sources::PATTERNS).collect();
    for number in 0..count {
        let Pattern { name, refused, write } = patterns[number % patterns.len()];
        let file = format!("{number:03}.jinja");
        fs::write(folder.join(&file), write(&mut random)).unwrap();
        println!("{file}\t{name}{}", if *refused { "" } else { ", which may end well" });
    }
}
