//! Temporary: rows of the oracle in a folder, without the worker.
use std::path::PathBuf;
use std::rc::Rc;

use checkpoint::{check_folder, ImagePlan, View};
use media::ViewPixels;

use super::VisionTower;
use crate::models::Model;
use crate::sequence::{ids_tensor, PromptImage, PromptImages, SequenceState};
use crate::tensor::connect;
use crate::weights::Weights;

type Stored = std::collections::HashMap<String, (Vec<usize>, Vec<[u8; 4]>)>;

fn read(path: &std::path::Path) -> Stored {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let numbers = |value: &serde_json::Value| -> Vec<usize> { value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect() };
    let entries = header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__");
    entries
        .map(|(name, entry)| {
            let place = numbers(&entry["data_offsets"]);
            let data = &bytes[8 + length + place[0]..8 + length + place[1]];
            (name.clone(), (numbers(&entry["shape"]), data.chunks_exact(4).map(|word| word.try_into().unwrap()).collect()))
        })
        .collect()
}

#[test]
fn rows() {
    let Ok(folder) = std::env::var("T2_ROWS") else { return };
    let folder = PathBuf::from(folder);
    connect().unwrap();
    let gpu = std::env::var("T2_GPU").is_ok();
    if gpu {
        crate::tensor::pretend_gpu();
    }
    let only = std::env::var("T2_ONLY").unwrap_or_default();
    let table: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(folder.join("table.json")).unwrap()).unwrap();
    for row in table["rows"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        if !name.starts_with(&only) {
            continue;
        }
        let ran = std::panic::catch_unwind(|| one(&folder, name, row));
        if ran.is_err() {
            println!("{name:24} FAILED");
        }
    }
}

fn one(folder: &std::path::Path, name: &str, row: &serde_json::Value) {
    let dir = folder.join(name);
    let config = match check_folder(&dir) {
        Ok(config) => config,
        Err(error) => {
            println!("{name:24} config: {error}");
            return;
        }
    };
    let mut progress = |_| Ok(());
    let mut weights = Weights::open(&dir, config.vision.is_some(), &mut progress).unwrap();
    let model = match Model::load(&config, &mut weights) {
        Ok(model) => model,
        Err(error) => {
            println!("{name:24} model: {error}");
            return;
        }
    };
    weights.begin_tower();
    let Some(vision) = &config.vision else {
        println!("{name:24} no tower in the config");
        return;
    };
    let tower = match VisionTower::load(vision, model.hidden_size(), &mut weights) {
        Ok(tower) => tower,
        Err(error) => {
            println!("{name:24} tower: {error}");
            return;
        }
    };
    let mut line = format!("{name:24}");
    for case in row["cases"].as_array().unwrap() {
        let stored = read(&folder.join(format!("{name}.{}.safetensors", case["case"].as_str().unwrap())));
        let ids: Vec<u32> = stored["ids"].1.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let logits: Vec<f32> = stored["logits"].1.iter().map(|word| f32::from_le_bytes(*word)).collect();
        let mut at = 0;
        let mut images = Vec::new();
        for (index, picture) in case["pictures"].as_array().unwrap().iter().enumerate() {
            let number = |value: &serde_json::Value| value.as_u64().unwrap() as u32;
            let pair = |value: &serde_json::Value| (number(&value[0]), number(&value[1]));
            let views: Vec<View> = picture["views"]
                .as_array()
                .unwrap()
                .iter()
                .map(|view| View {
                    width: number(&view["width"]),
                    height: number(&view["height"]),
                    patches: pair(&view["patches"]),
                    tokens: pair(&view["tokens"]),
                    features: pair(&view["tokens"]).0 * pair(&view["tokens"]).1,
                })
                .collect();
            let pixels = views
                .iter()
                .map(|_| {
                    let (shape, words) = &stored[&format!("pixels.{at}")];
                    at += 1;
                    ViewPixels {
                        shape: shape.clone(),
                        values: words.iter().map(|word| f32::from_le_bytes(*word)).collect(),
                    }
                })
                .collect();
            images.push(PromptImage {
                run: number(&picture["run"][0]) as usize..number(&picture["run"][1]) as usize,
                places: picture["features"].as_array().unwrap().iter().map(|place| place.as_u64().unwrap() as usize).collect(),
                plan: ImagePlan {
                    resized: (1, 1),
                    views,
                    tiles: None,
                    whole: false,
                },
                views: pixels,
                hash: [index as u8; 32],
            });
        }
        for chunk in [usize::MAX, 7] {
            let images = Rc::new(PromptImages::new(images.clone(), &model, vision.looks_both_ways()).unwrap());
            for index in 0..images.len() {
                let image = images.image(index);
                let features = tower.look(&image.views, &image.plan, &mut || Ok(())).unwrap();
                images.see(index, Rc::new(features));
            }
            let mut state = SequenceState::new(&model, None).with_images(Some(images.clone()));
            let (mut found, mut from) = (Vec::new(), 0);
            while from < ids.len() {
                let to = images.chunk_end(from, from.saturating_add(chunk).min(ids.len()));
                let read = state.chunk(to - from).unwrap();
                let states = model.forward(&read.input(&ids_tensor(&ids[from..to])), &mut [state.caches()]).unwrap();
                found.extend(model.logits(&states).unwrap().to_f32().unwrap());
                state.advance_by(to - from);
                from = to;
            }
            let worst = found.iter().zip(&logits).map(|(a, b)| (a - b).abs()).fold(0.0f32, f32::max);
            line += &format!(" {worst:.1e}");
        }
        line += " |";
    }
    println!("{line}");
}
