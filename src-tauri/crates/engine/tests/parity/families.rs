//! Every family, kind of rope, quantisation and file layout against mlx-lm, on tiny random models.

use std::path::{Path, PathBuf};

use crate::common::oracle::{python, seed, Figures, Variant, Written};
use crate::common::{measured, source};
use engine::MlxEngine;
use protocol::{ErrorCode, KvBits, LocalEngine};

/// How far a logit may be off in 32 bit floats; logits spread over about ten.
const EXACT: f32 = 2e-3;
/// The share of positions whose likeliest token has to be the same.
const SAME_TOKEN: f32 = 0.99;
/// How far 8 bit keys and values may move the logits, and the share of positions that have to keep their likeliest
/// token.
const KV8: f32 = 2.0;
const KV8_SAME_TOKEN: f32 = 0.9;
/// The share of positions that bounds on rounding hold for if a router chooses experts: at a few it chooses another
/// one.
const ROUTED: f32 = 0.9;
/// The same in 32 bit floats, in which two experts are hardly ever as good as each other. mlx-lm itself differs as much
/// from mlx-lm with another BLAS at such a position.
const ROUTED_EXACT: f32 = 0.98;
const CHUNK: usize = 7;

/// The findings on a variant; `None` if it does not apply.
#[derive(Default)]
struct Row {
    /// Widened to 32 bit floats, as on a CPU.
    exact: Option<Exact>,
    /// With packed weights and 32 bit floats between them.
    packed: Option<Packed>,
    /// As the files are, mostly with 16 bit floats between the weights.
    native: Option<Native>,
    /// With keys and values of full attention in 8 bits.
    kv8: Option<Kv8>,
    failures: Vec<String>,
    missing: Option<String>,
}

/// Differences to mlx-lm, reading all at once, in chunks and token by token, and how many greedy tokens are the same.
struct Exact {
    all: f32,
    chunks: f32,
    steps: f32,
    greedy: usize,
}

/// The same, and the share of positions with the same likeliest token.
struct Packed {
    all: f32,
    steps: f32,
    same: f32,
}

/// The difference, and twice the one that rounding makes inside mlx-lm.
struct Native {
    all: f32,
    bound: f32,
    same: f32,
}

/// The difference that packing makes at nine of ten positions, and the share of positions with the same likeliest
/// token.
struct Kv8 {
    all: f32,
    same: f32,
}

/// The largest difference at each position; `expected` has all positions one after another.
fn differences(rows: &[Vec<f32>], expected: &[f32]) -> Vec<f32> {
    assert_eq!(rows.iter().map(Vec::len).sum::<usize>(), expected.len());
    let positions = rows.iter().zip(expected.chunks(rows[0].len()));
    positions
        .map(|(row, expected)| spread(row.iter().zip(expected)))
        .collect()
}

/// The largest of the differences, but for those positions at which rounding may choose another expert.
fn largest(variant: &Variant, mut differences: Vec<f32>) -> f32 {
    differences.sort_by(f32::total_cmp);
    let share = if variant.experts { ROUTED_EXACT } else { 1.0 };
    differences[(differences.len() as f32 * share).ceil() as usize - 1]
}

/// The largest difference of two numbers; infinite if one is not a number.
fn spread<'a>(pairs: impl Iterator<Item = (&'a f32, &'a f32)>) -> f32 {
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, |worst, difference| {
        if difference.is_nan() {
            f32::INFINITY
        } else {
            worst.max(difference)
        }
    })
}

/// The largest difference of logits `width` wide, but for the few positions at which rounding chose another expert.
fn rounding(variant: &Variant, found: &[f32], expected: &[f32], width: usize) -> f32 {
    assert_eq!(found.len(), expected.len());
    let positions = found.chunks(width).zip(expected.chunks(width));
    let mut differences: Vec<f32> = positions.map(|(a, b)| spread(a.iter().zip(b))).collect();
    differences.sort_by(f32::total_cmp);
    let share = if variant.experts { ROUTED } else { 1.0 };
    differences[(differences.len() as f32 * share) as usize - 1]
}

fn likeliest(row: &[f32]) -> u32 {
    let best = row
        .iter()
        .enumerate()
        .fold(0, |best, (index, value)| if *value > row[best] { index } else { best });
    best as u32
}

fn same_token(rows: &[Vec<f32>], expected: &[f32]) -> f32 {
    let expected = expected.chunks(rows[0].len());
    let same = rows
        .iter()
        .zip(expected)
        .filter(|(a, b)| likeliest(a) == likeliest(b))
        .count();
    same as f32 / rows.len() as f32
}

/// The share of positions whose likeliest token is the same or is as good to mlx-lm, whose own logits are off by what
/// `wide` and `native` differ.
fn as_good_token(rows: &[Vec<f32>], native: &[f32], wide: &[f32]) -> f32 {
    let width = rows[0].len();
    let good = rows
        .iter()
        .zip(native.chunks(width).zip(wide.chunks(width)))
        .filter(|(row, (native, wide))| {
            let noise = spread(native.iter().zip(*wide));
            native[likeliest(native) as usize] - native[likeliest(row) as usize] <= 2.0 * noise
        });
    good.count() as f32 / rows.len() as f32
}

/// The folder that this engine computes in 32 bit floats: any on a CPU, which dequantises; none if the files have other
/// floats and nothing is packed.
fn wide(
    engine: &MlxEngine,
    written: &Written,
    variant: &Variant,
    figures: &Figures,
) -> protocol::Result<Option<PathBuf>> {
    let folder = written.model(&variant.name);
    engine.logits(source(&folder), vec![0], false, None)?;
    let exact = engine.loaded().iter().any(|info| info.device == "cpu");
    Ok(match (exact || figures.native.is_none(), variant.quantized) {
        (true, _) => Some(folder),
        (false, true) => Some(written.packed_in_f32(variant)),
        (false, false) => None,
    })
}

impl Row {
    fn expect(&mut self, what: &str, found: f32, bound: f32) {
        if found > bound {
            self.failures
                .push(format!("{what}: {found:.2e} is more than {bound:.2e}"));
        }
    }

    fn expect_share(&mut self, what: &str, found: f32, share: f32) {
        if found < share {
            self.failures
                .push(format!("{what}: {:.0} % of the likeliest tokens", found * 100.0));
        }
    }

    fn check_exact(
        &mut self,
        engine: &MlxEngine,
        written: &Written,
        variant: &Variant,
        figures: &Figures,
    ) -> protocol::Result<()> {
        let Some(folder) = wide(engine, written, variant, figures)? else {
            return Ok(());
        };
        let model = source(&folder);
        let ask = |tokens: &[u32], chunk| engine.logits(model.clone(), tokens.to_vec(), true, chunk);
        let all = differences(&ask(&figures.prompt, None)?, &figures.logits);
        let chunks = match variant.steps_alike {
            true => Some(differences(&ask(&figures.prompt, Some(CHUNK))?, &figures.logits)),
            false => None,
        };
        // One by one, and on through the greedy tokens: each has to be the likeliest after all before it, which is what
        // a greedy run makes.
        let (length, count) = (figures.prompt.len(), figures.greedy.len());
        let tokens: Vec<u32> = figures
            .prompt
            .iter()
            .chain(&figures.greedy[..count - 1])
            .copied()
            .collect();
        let rows = ask(&tokens, Some(1))?;
        let steps = differences(&rows[..length], &figures.steps);
        // If experts are as good as each other, one way of reading may choose the other one, but not every way.
        let closest = (0..length).map(|position| {
            let chunks = chunks.as_ref().map_or(f32::INFINITY, |chunks| chunks[position]);
            all[position].min(steps[position]).min(chunks)
        });
        let closest = closest.fold(0.0, f32::max);
        let (all, steps) = (largest(variant, all), largest(variant, steps));
        let chunks = chunks.map_or(0.0, |chunks| largest(variant, chunks));
        let wanted = figures.greedy.iter().zip(&figures.margins);
        let made = rows[length - 1..].iter().map(|row| likeliest(row));
        // Two tokens nearer to each other than logits have to agree are equally good.
        let greedy = made
            .zip(wanted)
            .take_while(|(made, (wanted, margin))| made == *wanted || **margin <= EXACT)
            .count();
        self.expect("all at once", all, EXACT);
        self.expect("in chunks", chunks, EXACT);
        self.expect("token by token", steps, EXACT);
        self.expect("in the closest way", closest, EXACT);
        if greedy < count {
            self.failures
                .push(format!("the greedy text differs after {greedy} tokens"));
        }
        let chunk = variant.steps_alike.then_some(CHUNK);
        let rows = engine.kv_logits(model.clone(), figures.prompt.clone(), true, chunk, Some(KvBits::Eight))?;
        let kv8 = Kv8 {
            all: rounding(variant, &rows.concat(), &figures.logits, rows[0].len()),
            same: same_token(&rows, &figures.logits),
        };
        self.expect("keys and values in 8 bits", kv8.all, KV8);
        let share = if variant.experts {
            KV8_SAME_TOKEN * ROUTED
        } else {
            KV8_SAME_TOKEN
        };
        self.expect_share("keys and values in 8 bits", kv8.same, share);
        self.kv8 = Some(kv8);
        self.exact = Some(Exact {
            all,
            chunks,
            steps,
            greedy,
        });
        Ok(())
    }

    /// On an engine that takes a GPU's ways.
    fn check_gpu(
        &mut self,
        engine: &MlxEngine,
        written: &Written,
        variant: &Variant,
        figures: &Figures,
    ) -> protocol::Result<()> {
        let ask = |folder: &Path, chunk| engine.logits(source(folder), figures.prompt.clone(), true, chunk);
        if variant.quantized {
            let folder = written.packed_in_f32(variant);
            let rows = ask(&folder, None)?;
            let all = largest(variant, differences(&rows, &figures.logits));
            let steps = largest(variant, differences(&ask(&folder, Some(1))?, &figures.steps));
            let same = same_token(&rows, &figures.logits);
            self.expect("packed", all, EXACT);
            self.expect("packed, token by token", steps, EXACT);
            self.expect_share("packed", same, SAME_TOKEN);
            self.packed = Some(Packed { all, steps, same });
        }
        if let Some(expected) = &figures.native {
            let rows = ask(&written.model(&variant.name), None)?;
            let width = rows[0].len();
            let bound = (2.0 * rounding(variant, expected, &figures.logits, width)).max(EXACT);
            let all = rounding(variant, &rows.concat(), expected, width);
            let same = same_token(&rows, expected);
            self.expect("native", all, bound);
            self.expect_share(
                "native, as good as",
                as_good_token(&rows, expected, &figures.logits),
                SAME_TOKEN,
            );
            self.native = Some(Native { all, bound, same });
        }
        Ok(())
    }
}

type Check = fn(&mut Row, &MlxEngine, &Written, &Variant, &Figures) -> protocol::Result<()>;

/// Checks all variants on one engine.
fn check(engine: &MlxEngine, written: &Written, check: Check) -> Vec<Row> {
    let row_of = |variant: &Variant| {
        let mut row = Row::default();
        match check(&mut row, engine, written, variant, &written.figures(&variant.name)) {
            Ok(()) => {}
            Err(error) if error.code == ErrorCode::ModelUnsupported => row.missing = Some(error.message),
            Err(error) => row.failures.push(error.to_string()),
        }
        row
    };
    written.variants.iter().map(row_of).collect()
}

/// One line of the table.
fn line(name: &str, [exact, packed, native, kv8]: [String; 4]) -> String {
    format!("{name:24} {exact:>33} | {packed:>23} | {native:>23} | {kv8:>14}\n")
}

/// The table for people.
fn table(written: &Written, rows: &[Row]) -> String {
    let percent = |share: f32| format!("{:4.0}%", share * 100.0);
    let heads = [
        format!("{:>8} {:>8} {:>8} {:>6}", "all", "chunks", "steps", "greedy"),
        format!("{:>8} {:>8} {:>5}", "packed", "steps", "same"),
        format!("{:>8} {:>8} {:>5}", "native", "bound", "same"),
        format!("{:>8} {:>5}", "kv 8", "same"),
    ];
    let mut text = line("variant", heads);
    for (variant, row) in written.variants.iter().zip(rows) {
        if let Some(reason) = &row.missing {
            text += &format!("{:24} missing: {reason:.100}\n", variant.name);
            continue;
        }
        let cells = [
            row.exact.as_ref().map(|found| {
                let Exact {
                    all,
                    chunks,
                    steps,
                    greedy,
                } = found;
                format!("{all:8.1e} {chunks:8.1e} {steps:8.1e} {greedy:6}")
            }),
            row.packed
                .as_ref()
                .map(|Packed { all, steps, same }| format!("{all:8.1e} {steps:8.1e} {}", percent(*same))),
            row.native
                .as_ref()
                .map(|Native { all, bound, same }| format!("{all:8.1e} {bound:8.1e} {}", percent(*same))),
            row.kv8
                .as_ref()
                .map(|Kv8 { all, same }| format!("{all:8.1e} {}", percent(*same))),
        ];
        text += &line(&variant.name, cells.map(Option::unwrap_or_default));
        row.failures
            .iter()
            .for_each(|failure| text += &format!("    FAILED {failure}\n"));
    }
    text
}

fn compare(python: &Path, seed: u64) {
    let only = std::env::var("PONDER_ORACLE_ONLY").unwrap_or_default();
    let only: Vec<&str> = only.split(',').filter(|name| !name.is_empty()).collect();
    let written = Written::new(python, seed, &only, false);
    let (cpu, gpu) = (MlxEngine::start(), MlxEngine::start());
    gpu.pretend_gpu().unwrap();
    cpu.compute_exactly().unwrap();
    let (mut rows, gpu_rows) = std::thread::scope(|scope| {
        let gpu_rows = scope.spawn(|| check(&gpu, &written, Row::check_gpu));
        (check(&cpu, &written, Row::check_exact), gpu_rows.join().unwrap())
    });
    for (row, gpu) in rows.iter_mut().zip(gpu_rows) {
        row.failures.extend(gpu.failures);
        row.missing = row.missing.take().or(gpu.missing);
        (row.packed, row.native) = (gpu.packed, gpu.native);
    }
    println!("{}", table(&written, &rows));
    for (variant, row) in written.variants.iter().zip(&rows) {
        if let Some(Exact { all, chunks, steps, .. }) = row.exact {
            measured::keep("logits", &variant.model_type, all.max(chunks).max(steps));
        }
        if let Some(Kv8 { all, .. }) = row.kv8 {
            measured::keep("kv 8", &variant.model_type, all);
        }
    }
    let missing: Vec<&str> = named(&written, &rows, |row| row.missing.is_some());
    let failed: Vec<&str> = named(&written, &rows, |row| !row.failures.is_empty());
    let exact = rows.iter().filter_map(|row| row.exact.as_ref());
    let worst = exact.fold(0.0, |worst: f32, exact| {
        worst.max(exact.all).max(exact.chunks).max(exact.steps)
    });
    println!(
        "report: families seed {seed}: {} of {} variants agree with {} on our MLX {}; the largest difference in 32 bit floats is {worst:.1e}",
        rows.len() - missing.len() - failed.len(),
        rows.len(),
        written.versions,
        cpu.mlx_version().unwrap()
    );
    if !missing.is_empty() {
        println!("report: families missing: {}", missing.join(", "));
    }
    assert!(
        failed.is_empty() && missing.is_empty(),
        "these differ from mlx-lm: {failed:?}; these are not supported: {missing:?}"
    );
}

fn named<'a>(written: &'a Written, rows: &[Row], which: impl Fn(&Row) -> bool) -> Vec<&'a str> {
    let pairs = written.variants.iter().zip(rows);
    pairs
        .filter(|(_, row)| which(row))
        .map(|(variant, _)| variant.name.as_str())
        .collect()
}

#[test]
fn every_variant_computes_what_mlx_lm_computes() {
    let Some(python) = python() else { return };
    if std::env::var_os("PONDER_FULL").is_some() {
        (0..3).for_each(|run| compare(&python, seed() + run));
    } else {
        compare(&python, seed());
    }
}
