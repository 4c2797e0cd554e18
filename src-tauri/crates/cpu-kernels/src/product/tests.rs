//! Every format by every instruction set of this processor, beside the sum of products of the numbers it stands for.

use std::ops::Range;

use super::{multiply, numbers, Activations, Finish, Job, Matrix, Precision};
use crate::format::{Coding, Format, Number};
use crate::isa::Isa;
use crate::lanes::plain::{from_bf16, from_f16, from_float8};
use crate::lanes::FLOAT4;
use crate::shared::Shared;

/// Numbers without a pattern, the same every time.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit
    }

    /// Between −1 and 1.
    fn float(&mut self) -> f32 {
        self.next() as f32 / (1u32 << 30) as f32 - 1.0
    }
}

const FORMATS: [Format; 21] = {
    const fn affine(bits: u8, group: usize, scales: Number) -> Format {
        Format {
            coding: Coding::Affine(bits),
            group,
            scales,
        }
    }
    const fn plain(number: Number) -> Format {
        Format {
            coding: Coding::Plain(number),
            group: 0,
            scales: Number::F32,
        }
    }
    [
        affine(2, 32, Number::F16),
        affine(2, 64, Number::F32),
        affine(3, 32, Number::Bf16),
        affine(3, 64, Number::F16),
        affine(3, 128, Number::F16),
        affine(4, 32, Number::Bf16),
        affine(4, 64, Number::F16),
        affine(4, 64, Number::F32),
        affine(4, 128, Number::F16),
        affine(5, 32, Number::F16),
        affine(5, 64, Number::F16),
        affine(6, 64, Number::Bf16),
        affine(6, 128, Number::F16),
        affine(8, 32, Number::F16),
        affine(8, 64, Number::Bf16),
        Format {
            coding: Coding::Float4,
            group: 32,
            scales: Number::E8m0,
        },
        Format {
            coding: Coding::Float4,
            group: 16,
            scales: Number::E4m3,
        },
        Format {
            coding: Coding::Float8,
            group: 32,
            scales: Number::E8m0,
        },
        plain(Number::F32),
        plain(Number::F16),
        plain(Number::Bf16),
    ]
};

/// A matrix at an odd address, and its numbers.
struct Stored {
    format: Format,
    inputs: usize,
    outputs: usize,
    weight: Vec<u8>,
    scales: Vec<u8>,
    biases: Vec<u8>,
}

impl Stored {
    fn new(format: Format, inputs: usize, outputs: usize, noise: &mut Noise) -> Self {
        let groups = inputs.checked_div(format.group).unwrap_or(0) * outputs;
        let number = |number: Number, noise: &mut Noise| -> Vec<u8> {
            // Between 1/8 and 1, and of both signs where there are signs.
            let bits = noise.next();
            match number {
                Number::F32 => noise.float().to_le_bytes().to_vec(),
                Number::F16 => ((bits & 0x83FF) as u16 | 0x3000).to_le_bytes().to_vec(),
                Number::Bf16 => ((bits & 0x807F) as u16 | 0x3E00).to_le_bytes().to_vec(),
                Number::E8m0 => vec![124 + (bits % 4) as u8],
                Number::E4m3 => vec![(bits & 0x87) as u8 | 0x30],
            }
        };
        let mut weight = match format.coding {
            Coding::Plain(of) => (0..inputs * outputs).flat_map(|_| number(of, noise)).collect(),
            Coding::Float8 => (0..inputs * outputs).map(|_| (noise.next() & 0xBF) as u8).collect(),
            Coding::Float4 => (0..inputs * outputs / 2).map(|_| noise.next() as u8).collect(),
            Coding::Affine(bits) => (0..inputs * outputs * usize::from(bits) / 8)
                .map(|_| noise.next() as u8)
                .collect::<Vec<u8>>(),
        };
        weight.insert(0, 0);
        let scales = |noise: &mut Noise| (0..groups).flat_map(|_| number(format.scales, noise)).collect();
        Self {
            format,
            inputs,
            outputs,
            scales: scales(noise),
            biases: scales(noise),
            weight,
        }
    }

    fn matrix(&self) -> Matrix {
        let row = (self.weight.len() - 1) / self.outputs;
        let group = self.scales.len() / self.outputs;
        Matrix::of_parts(
            self.format,
            self.inputs,
            (self.weight[1..].as_ptr(), row),
            (self.scales.as_ptr(), group),
            (self.biases.as_ptr(), group),
        )
    }

    fn number(&self, output: usize, input: usize) -> f64 {
        let wide = |bytes: &[u8], of: Number, place: usize| -> f32 {
            let at = |count: usize| &bytes[place * count..][..count];
            let short = |at: &[u8]| u16::from_le_bytes([at[0], at[1]]);
            match of {
                Number::F32 => f32::from_le_bytes([at(4)[0], at(4)[1], at(4)[2], at(4)[3]]),
                Number::F16 => from_f16(short(at(2))),
                Number::Bf16 => from_bf16(short(at(2))),
                Number::E8m0 => 2f32.powi(i32::from(bytes[place]) - 127),
                Number::E4m3 => from_float8(bytes[place]),
            }
        };
        let (weight, place) = (&self.weight[1..], output * self.inputs + input);
        let group = || output * (self.inputs / self.format.group) + input / self.format.group;
        let scale = || f64::from(wide(&self.scales, self.format.scales, group()));
        match self.format.coding {
            Coding::Plain(of) => f64::from(wide(weight, of, place)),
            Coding::Float8 => f64::from(from_float8(weight[place])) * scale(),
            Coding::Float4 => f64::from(FLOAT4[usize::from(weight[place / 2] >> (4 * (place % 2)) & 15)]) * scale(),
            Coding::Affine(bits) => {
                let bits = usize::from(bits);
                let code = (0..bits).fold(0, |code, bit| {
                    let at = place * bits + bit;
                    code | (weight[at / 8] >> (at % 8) & 1) << bit
                });
                f64::from(code) * scale() + f64::from(wide(&self.biases, self.format.scales, group()))
            }
        }
    }
}

impl Stored {
    /// The most that the product with a row loses by its rounding, of so many neighbors to so many steps.
    fn half_steps(&self, row: &[f32], output: usize, (neighbors, steps): (usize, f32)) -> f64 {
        let groups = row.chunks_exact(neighbors).enumerate();
        let of_group = |(group, part): (usize, &[f32])| {
            let greatest = part.iter().fold(0.0f32, |greatest, number| greatest.max(number.abs()));
            let inputs = group * neighbors..(group + 1) * neighbors;
            let weights: f64 = inputs.map(|input| self.number(output, input).abs()).sum();
            f64::from(greatest) / f64::from(steps) / 2.0 * weights
        };
        groups.map(of_group).sum()
    }
}

struct Collected {
    to: Shared<f32>,
    count: usize,
}

impl Finish for Collected {
    const TOGETHER: usize = 1;

    fn place(&self, _job: usize, row: usize, output: usize) -> *const f32 {
        self.to.0.wrapping_add(row * self.count + output)
    }

    unsafe fn finish(&self, _job: usize, row: usize, range: Range<usize>, [products, _]: [&[f32]; 2]) {
        self.to
            .slice(row * self.count + range.start, range.len())
            .copy_from_slice(products);
    }
}

/// Products of outputs that belong together.
struct Paired(Collected);

impl Finish for Paired {
    const TOGETHER: usize = 2;

    fn place(&self, job: usize, row: usize, output: usize) -> *const f32 {
        self.0.place(job, row, output)
    }

    unsafe fn finish(&self, job: usize, row: usize, range: Range<usize>, [first, second]: [&[f32]; 2]) {
        let half = self.0.count / 2;
        let shifted = range.start + half..range.end + half;
        self.0.finish(job, row, range, [first, first]);
        self.0.finish(job, row, shifted, [second, second]);
    }
}

/// The products `[rows, outputs]`.
fn products((isa, precision): (Isa, Precision), stored: &Stored, rows: &[&[f32]]) -> Vec<f32> {
    let mut activations = Activations::default();
    activations.set(
        (isa, precision),
        &stored.format,
        stored.inputs,
        rows.len(),
        |row, to| to.copy_from_slice(rows[row]),
    );
    let mut found = vec![f32::NAN; rows.len() * stored.outputs];
    let collected = Collected {
        to: Shared(found.as_mut_ptr()),
        count: stored.outputs,
    };
    let job = [Job {
        x: &activations,
        matrix: stored.matrix(),
    }];
    // SAFETY: the matrix is in memory that lives.
    unsafe { multiply(isa, &job, stored.outputs, &collected) };
    found
}

fn compare(format: Format, [rows, inputs, outputs]: [usize; 3], noise: &mut Noise) {
    let stored = Stored::new(format, inputs, outputs, noise);
    let x: Vec<f32> = (0..rows * inputs).map(|_| noise.float()).collect();
    let precisions = [Precision::Floats, Precision::Rounded];
    for (isa, precision) in Isa::available()
        .into_iter()
        .flat_map(|isa| precisions.map(|of| (isa, of)))
    {
        let mut activations = Activations::default();
        activations.set((isa, precision), &format, inputs, rows, |row, to| {
            to.copy_from_slice(&x[row * inputs..][..inputs])
        });
        let mut found = vec![f32::NAN; rows * outputs];
        let collected = Collected {
            to: Shared(found.as_mut_ptr()),
            count: outputs,
        };
        let job = [Job {
            x: &activations,
            matrix: stored.matrix(),
        }];
        // SAFETY: the matrix is in memory that lives.
        unsafe { multiply(isa, &job, outputs, &collected) };
        if outputs % 2 == 0 {
            let mut paired = vec![f32::NAN; rows * outputs];
            let to = Shared(paired.as_mut_ptr());
            // SAFETY: as above.
            unsafe { multiply(isa, &job, outputs / 2, &Paired(Collected { to, count: outputs })) };
            assert_eq!(
                found, paired,
                "{format:?}, {isa:?}, {precision:?}, {rows} rows, {inputs} to {outputs}"
            );
        }
        for row in 0..rows {
            for output in (0..outputs).step_by(1 + outputs / 64) {
                let terms = (0..inputs).map(|input| f64::from(x[row * inputs + input]) * stored.number(output, input));
                let (right, size) = terms.fold((0.0, 1e-3), |(sum, size), term| (sum + term, size + term.abs()));
                let off = (f64::from(found[row * outputs + output]) - right).abs();
                let lost = activations.rounding(isa, &format).map_or(0.0, |rounding| {
                    stored.half_steps(&x[row * inputs..][..inputs], output, rounding)
                });
                // Affine groups are sums of codes and of biases, each larger than what is left of both.
                assert!(
                    off < 2e-6 * size + lost,
                    "{format:?}, {isa:?}, {precision:?}, {rows} rows, {inputs} to {outputs}, at {row} {output}: {off}"
                );
            }
        }
    }
}

#[test]
fn every_format_is_multiplied_as_its_numbers() {
    let mut noise = Noise(1);
    for format in FORMATS {
        for (rows, inputs, outputs) in [
            (1, 128, 1),
            (1, 384, 37),
            (2, 256, 9),
            (3, 128, 50),
            (5, 640, 7),
            (8, 128, 30),
            (9, 256, 13),
            (16, 640, 13),
            (70, 128, 61),
            (130, 640, 100),
        ] {
            compare(format, [rows, inputs, outputs], &mut noise);
        }
    }
}

#[test]
fn long_rows_are_multiplied_part_by_part() {
    let mut noise = Noise(2);
    for format in FORMATS {
        if matches!(format.coding, Coding::Affine(4 | 8)) {
            compare(format, [33, 1408, 100], &mut noise);
        }
    }
}

#[test]
fn a_thousand_shapes_of_every_kind_are_right() {
    let mut noise = Noise(20_261_121);
    // An imitated processor computes a hundredth as fast: `./dev check-processors` takes fewer.
    let shapes = std::env::var("PONDER_SHAPES").map_or(1000, |count| count.parse().unwrap());
    for _ in 0..shapes {
        let format = FORMATS[noise.below(FORMATS.len())];
        let rows = [1, 1, 2, 3, 4, 6, 8, 11, 17, 40][noise.below(10)];
        let inputs = match format.group {
            0 => 1 + noise.below(300),
            group => group.max(32) * (1 + noise.below(6)),
        };
        compare(format, [rows, inputs, 1 + noise.below(70)], &mut noise);
    }
}

/// Answers do not depend on how many are made together.
#[test]
fn a_few_rows_come_out_as_each_does_alone() {
    let mut noise = Noise(4);
    for format in FORMATS {
        let (inputs, outputs) = (640, 23);
        let stored = Stored::new(format, inputs, outputs, &mut noise);
        let numbers: Vec<f32> = (0..8 * inputs).map(|_| noise.float()).collect();
        let rows: Vec<&[f32]> = numbers.chunks_exact(inputs).collect();
        for (isa, precision) in Isa::available()
            .into_iter()
            .flat_map(|isa| [(isa, Precision::Floats), (isa, Precision::Rounded)])
        {
            let kind = (isa.name(), precision);
            let one = |row: &&[f32]| products((isa, precision), &stored, &[row]);
            let alone: Vec<f32> = rows.iter().flat_map(one).collect();
            // AMX multiplies more rounded rows in tiles.
            let most = if kind == ("amx", Precision::Rounded) { 4 } else { 8 };
            for count in 2..=most {
                let together = products((isa, precision), &stored, &rows[..count]);
                assert_eq!(together, alone[..count * outputs], "{format:?}, {kind:?}, {count} rows");
            }
        }
    }
}

#[test]
fn rows_of_a_table_are_its_numbers() {
    let mut noise = Noise(2);
    for format in FORMATS {
        let stored = Stored::new(format, 128, 5, &mut noise);
        for (isa, row) in Isa::available().into_iter().flat_map(|isa| [(isa, 0), (isa, 4)]) {
            let mut found = [f32::NAN; 128];
            // SAFETY: the matrix is in memory that lives.
            unsafe { numbers(isa, &stored.matrix(), row, &mut found) };
            for (input, found) in found.iter().enumerate() {
                let right = stored.number(row, input);
                let off = (f64::from(*found) - right).abs();
                // A code times its scale, plus the bias.
                assert!(
                    off < 4e-6 * right.abs().max(4.0),
                    "{format:?}, {isa:?}, at {row} {input}: {found} for {right}"
                );
            }
        }
    }
}

#[test]
fn what_is_no_number_stays_none() {
    let mut noise = Noise(3);
    let (inputs, outputs) = (256, 20);
    for format in FORMATS {
        let stored = Stored::new(format, inputs, outputs, &mut noise);
        for (rows, wrong) in [
            (1, f32::NAN),
            (3, f32::INFINITY),
            (40, f32::NAN),
            (20, f32::NEG_INFINITY),
        ] {
            let mut x: Vec<f32> = (0..rows * inputs).map(|_| noise.float()).collect();
            x[(rows - 1) * inputs + 77] = wrong;
            for (isa, precision) in Isa::available()
                .into_iter()
                .flat_map(|isa| [(isa, Precision::Floats), (isa, Precision::Rounded)])
            {
                let mut activations = Activations::default();
                activations.set((isa, precision), &format, inputs, rows, |row, to| {
                    to.copy_from_slice(&x[row * inputs..][..inputs])
                });
                let mut found = vec![0.0; rows * outputs];
                let (to, count) = (Shared(found.as_mut_ptr()), outputs);
                let job = [Job {
                    x: &activations,
                    matrix: stored.matrix(),
                }];
                // SAFETY: the matrix is in memory that lives.
                unsafe { multiply(isa, &job, outputs, &Collected { to, count }) };
                let (right, spoiled) = found.split_at((rows - 1) * outputs);
                assert!(
                    right.iter().all(|number| number.is_finite()),
                    "{format:?}, {isa:?}, {precision:?}"
                );
                assert!(
                    spoiled.iter().all(|number| !number.is_finite()),
                    "{format:?}, {isa:?}, {precision:?}, {rows} rows: {spoiled:?}"
                );
            }
        }
    }
}
