//! Every family that sees against the oracle, on tiny random models: images alone, several of unequal size, in old
//! turns; read at once, in chunks and token by token; with packed weights and packed keys.

use crate::common::oracle::{python, seed};
use crate::common::vision::{apart, changed, Case, Figures, Row, Written};
use crate::common::{measured, source};
use engine::MlxEngine;
use protocol::{FolderSource, KvBits};

/// How far a logit may be off in 32 bit floats; logits spread over about ten.
const EXACT: f32 = 2e-3;

/// How far 8 and 4 bit keys and values may move nine of ten positions.
const KV: [(KvBits, f32); 2] = [(KvBits::Eight, 0.5), (KvBits::Four, 4.0)];

/// By how much another image has to move the last logits.
const MOVED: f32 = 1e-3;

/// Tokens of the tiny vocabulary that stand for no image.
const ORDINARY: usize = 300;

/// Chunks that a prompt is read in; the last is token by token, as far as images can be cut.
const CHUNKS: [usize; 3] = [64, 7, 1];

/// The findings on a case.
#[derive(Default)]
struct Found {
    all: f32,
    chunks: f32,
    gpu: f32,
    kv: f32,
    moved: f32,
    greedy: usize,
    failures: Vec<String>,
}

impl Found {
    fn expect(&mut self, what: &str, found: f32, bound: f32) {
        if found > bound {
            self.failures
                .push(format!("{what}: {found:.2e} is more than {bound:.2e}"));
        }
    }
}

/// The likeliest of the ordinary tokens: those of images would be more images to the oracle.
fn likeliest(row: &[f32]) -> u32 {
    let best = (0..ORDINARY).max_by(|a, b| row[*a].total_cmp(&row[*b]));
    best.map_or(0, |best| best as u32)
}

/// At nine of ten positions logits are no further apart than this.
fn mostly_apart(rows: &[Vec<f32>], expected: &[f32]) -> f32 {
    let width = rows[0].len();
    let mut all: Vec<f32> = rows
        .iter()
        .zip(expected.chunks(width))
        .map(|(a, b)| apart(a, b))
        .collect();
    all.sort_by(f32::total_cmp);
    all[(all.len() as f32 * 0.9) as usize - 1]
}

fn check([engine, gpu]: [&MlxEngine; 2], model: &FolderSource, figures: &Figures) -> protocol::Result<Found> {
    let mut found = Found::default();
    let ask = |ids: &[u32], chunk, bits| {
        let tokens = (ids.to_vec(), figures.images.clone(), figures.ids.len());
        engine.image_logits(model.clone(), tokens, true, chunk, bits)
    };
    let rows = ask(&figures.ids, None, None)?;
    found.all = apart(&rows.concat(), &figures.logits);
    found.expect("all at once", found.all, EXACT);
    for chunk in CHUNKS {
        let rows = ask(&figures.ids, Some(chunk), None)?;
        found.chunks = found.chunks.max(apart(&rows.concat(), &figures.logits));
    }
    found.expect("in chunks", found.chunks, EXACT);
    // Quantized weights stay so there, and other kernels rotate heads.
    let rows = gpu.image_logits(
        model.clone(),
        (figures.ids.clone(), figures.images.clone(), figures.ids.len()),
        true,
        Some(CHUNKS[1]),
        None,
    )?;
    found.gpu = apart(&rows.concat(), &figures.logits);
    found.expect("by the operations of GPUs", found.gpu, EXACT);
    for (bits, bound) in KV {
        let rows = ask(&figures.ids, Some(CHUNKS[1]), Some(bits))?;
        let kv = mostly_apart(&rows, &figures.logits);
        found.kv = found.kv.max(kv);
        found.expect(&format!("keys and values in {bits:?} bits"), kv, bound);
    }
    if let [_, known @ ..] = &figures.greedy[..] {
        // On through the greedy tokens: each has to be the likeliest after all before it, which is what a greedy run
        // makes.
        let tokens = [&figures.ids[..], &figures.greedy[..known.len()]].concat();
        let rows = ask(&tokens, Some(CHUNKS[1]), None)?;
        let made = rows[figures.ids.len() - 1..].iter().map(|row| likeliest(row));
        let wanted = figures.greedy.iter().zip(&figures.margins);
        // Two tokens nearer to each other than logits have to agree are equally good.
        let same = made
            .zip(wanted)
            .take_while(|(made, (wanted, margin))| made == *wanted || **margin <= EXACT);
        found.greedy = same.count();
        if found.greedy < figures.greedy.len() {
            found
                .failures
                .push(format!("the greedy text differs after {} tokens", found.greedy));
        }
    }
    if !figures.images.is_empty() {
        let others = (figures.ids.clone(), changed(&figures.images), figures.ids.len());
        let other = engine.image_logits(model.clone(), others, false, None, None)?;
        found.moved = apart(&other[0], &figures.logits[figures.logits.len() - other[0].len()..]);
        if found.moved < MOVED {
            found.failures.push("another image changes nothing".into());
        }
    }
    Ok(found)
}

fn line(row: &Row, case: &Case, found: &Found) -> String {
    let Found {
        all,
        chunks,
        gpu,
        kv,
        moved,
        greedy,
        failures,
    } = found;
    let name = &row.name;
    let mut line = format!(
        "{name:24} {:6} {all:8.1e} {chunks:8.1e} {gpu:8.1e} {kv:8.1e} {moved:8.1e} {greedy:6}\n",
        case.case
    );
    failures
        .iter()
        .for_each(|failure| line += &format!("    FAILED {failure}\n"));
    line
}

fn compare(written: &Written) {
    let (engine, gpu) = (MlxEngine::start(), MlxEngine::start());
    engine.compute_exactly().unwrap();
    gpu.pretend_gpu().unwrap();
    let mut table = format!(
        "{:24} {:6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6}\n",
        "row", "case", "all", "chunks", "gpu", "kv", "moved", "greedy"
    );
    let (mut failed, mut worst) = (Vec::new(), 0.0f32);
    for row in &written.rows {
        let model = source(&written.model(&row.name));
        for case in &row.cases {
            let found = check([&engine, &gpu], &model, &written.figures(row, case)).unwrap_or_else(|error| Found {
                failures: vec![error.to_string()],
                ..Found::default()
            });
            table += &line(row, case, &found);
            if found.failures.is_empty() {
                measured::keep("logits", &row.model_type, found.all.max(found.chunks));
                measured::keep("kv 8", &row.model_type, found.kv);
            }
            worst = worst.max(found.all).max(found.chunks);
            if !found.failures.is_empty() {
                failed.push(format!("{} {}", row.name, case.case));
            }
        }
        let inspection = engine.inspect().unwrap();
        assert_eq!(
            inspection.unevaluated, 0,
            "{}: something was left for the first image",
            row.name
        );
    }
    println!("{table}");
    println!(
        "report: vision: {} rows beside {}; the largest difference in 32 bit floats is {worst:.1e}",
        written.rows.len(),
        written.versions
    );
    assert!(failed.is_empty(), "these differ from the oracle: {failed:?}");
}

#[test]
fn every_family_sees_what_the_oracle_sees() {
    let Some(python) = python() else { return };
    let only = std::env::var("PONDER_ORACLE_ONLY").unwrap_or_default();
    let only: Vec<&str> = only.split(',').filter(|name| !name.is_empty()).collect();
    let runs = if std::env::var_os("PONDER_FULL").is_some() {
        3
    } else {
        1
    };
    for run in 0..runs {
        compare(&Written::new(&python, seed() + run, &only));
    }
}
