//! A hub imitation for scripts: prints its address, and listens until its input ends.
//!
//! `hub-imitation [--pebble NAME] [--shards NAME COUNT BYTES]`

use std::io::{Read, Write};

use hub_imitation::Imitation;
use serde_json::json;

fn main() {
    let hub = Imitation::start();
    let mut arguments = std::env::args().skip(1);
    while let Some(word) = arguments.next() {
        let name = arguments.next().unwrap_or_else(|| usage());
        match word.as_str() {
            "--pebble" => drop(hub.repository(&name).pebble()),
            "--shards" => {
                let mut number = || {
                    arguments
                        .next()
                        .and_then(|text| text.parse::<u64>().ok())
                        .unwrap_or_else(|| usage())
                };
                let (count, bytes) = (number(), number());
                let mut repository = hub.repository(&name).pebble().without("model.safetensors");
                let mut map = serde_json::Map::new();
                for shard in 1..=count {
                    let path = format!("model-{shard:05}-of-{count:05}.safetensors");
                    map.insert(format!("weights.{shard}"), json!(path));
                    repository = repository.generated(&path, bytes, shard);
                }
                let index = json!({"metadata": {"total_size": count * bytes}, "weight_map": map});
                repository.file("model.safetensors.index.json", index.to_string());
            }
            _ => usage(),
        }
    }
    println!("{}", hub.endpoint());
    let _ = std::io::stdout().flush();
    // A script, or its end, stops the imitation by closing its input.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn usage() -> ! {
    eprintln!("usage: hub-imitation [--pebble NAME] [--shards NAME COUNT BYTES]");
    std::process::exit(2)
}
