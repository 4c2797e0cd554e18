//! Stands in for the command.
use engine::MlxEngine;
use protocol::{EmbeddingInput, EmbeddingRequest, Engine, FolderSource, Priority};
use std::io::Read;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments[1] == "import" {
        println!("Use it with --model \"{}\"", arguments[2]);
        return;
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let engine = MlxEngine::start();
    let request = EmbeddingRequest {
        model: FolderSource { reference: arguments[3].clone(), path: arguments[3].clone().into(), revision: None }.into(),
        inputs: text.lines().map(|line| EmbeddingInput::Text(line.into())).collect(),
        dimensions: None,
        priority: Priority::Api,
        keep_alive: None,
    };
    let begun = std::time::Instant::now();
    let made = engine.embed(request).await.unwrap();
    eprintln!("{:?}", begun.elapsed());
    for vector in made.vectors {
        println!("{{\"embedding\": {vector:?}}}");
    }
}
