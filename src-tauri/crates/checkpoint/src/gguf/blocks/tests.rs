//! Every format beside llama.cpp's own Python, whose numbers `tests/oracle/gguf_blocks.py` writes.
#![allow(clippy::unwrap_used)]

use serde_json::Value;

use super::*;

const KINDS: [Kind; 13] = [
    Kind::Q4_0,
    Kind::Q4_1,
    Kind::Q5_0,
    Kind::Q5_1,
    Kind::Q8_0,
    Kind::Q2_K,
    Kind::Q3_K,
    Kind::Q4_K,
    Kind::Q5_K,
    Kind::Q6_K,
    Kind::IQ4_NL,
    Kind::IQ4_XS,
    Kind::MXFP4,
];

/// MLX's 4 bit floats.
const FLOATS: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

fn figures(kind: Kind) -> (Vec<u8>, Vec<f32>) {
    let figures: Value = serde_json::from_str(include_str!("figures.json")).unwrap();
    let figures = &figures[kind.name()];
    let hex = figures["bytes"].as_str().unwrap();
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let numbers = figures["numbers"].as_array().unwrap().iter();
    (
        (0..hex.len()).step_by(2).map(byte).collect(),
        numbers
            .map(|bits| f32::from_bits(bits.as_u64().unwrap() as u32))
            .collect(),
    )
}

/// The numbers that MLX makes of parts: codes are a stream of bits, 32 to a scale.
fn unpacked(parts: &Parts, format: Quantization, half: Half) -> Vec<f32> {
    let bits = format.bits as usize;
    let count = parts.weight.len() * 8 / bits;
    let code = |at: usize| {
        let bit = |bit: usize| u32::from(parts.weight[bit / 8] >> (bit % 8) & 1);
        (0..bits).map(|place| bit(at * bits + place) << place).sum::<u32>()
    };
    let wide = |bytes: &[u8], at: usize| half.widen(u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]));
    let number = |at: usize| match format.mode {
        Mode::Affine => wide(&parts.scales, at / 32) * code(at) as f32 + wide(&parts.biases, at / 32),
        _ => {
            let size = FLOATS[code(at) as usize & 7] * f32::from(parts.scales[at / 32]).mul_add(1.0, -127.0).exp2();
            if code(at) > 7 {
                -size
            } else {
                size
            }
        }
    };
    (0..count).map(number).collect()
}

#[test]
fn blocks_are_the_numbers_of_llama_cpp() {
    for kind in KINDS {
        let (bytes, numbers) = figures(kind);
        let format = Way::of(kind).quantization().unwrap();
        let largest = numbers.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
        let mut told = Vec::new();
        for half in [Half::F16, Half::BF16] {
            let target = Target {
                half: Some(half),
                change: Change::Stays,
            };
            let mut loss = Loss::default();
            let parts = convert(kind, target, "x", &bytes, &mut loss).unwrap();
            let made = unpacked(&parts, format, half);
            assert_eq!(made.len(), numbers.len(), "{kind:?}");
            let errors = made.iter().zip(&numbers).map(|(made, number)| (made - number).abs());
            let worst = errors.fold(0.0, f32::max) / largest;
            // By its format: nothing is lost, scales are rounded, or codes are others.
            let bound = match (Way::of(kind), half) {
                (Way::Floats, _) => 0.0,
                (Way::Kept(_), Half::BF16) => 1.0 / 128.0,
                (Way::Kept(_), Half::F16) => match kind {
                    Kind::Q4_K | Kind::Q5_K | Kind::IQ4_XS => 1.0 / 1024.0,
                    _ => 0.0,
                },
                (Way::Anew(8), _) => 1.0 / 128.0,
                _ => 1.0 / 12.0,
            };
            assert!(worst <= bound, "{kind:?} {half:?}: {worst} beyond {bound}");
            if format.mode == Mode::Affine {
                assert!(
                    (loss.worst() - f64::from(worst)).abs() < 1e-6,
                    "{kind:?}: {loss:?} {worst}"
                );
            }
            told.push(format!("{half:?} {worst:.2e} {:.2e}", loss.mean()));
        }
        println!("{}: {}", kind.name(), told.join(", "));
    }
}

#[test]
fn formats_of_16_numbers_to_a_scale_are_read_exactly() {
    for kind in [Kind::Q2_K, Kind::Q3_K, Kind::Q6_K] {
        let (bytes, expected) = figures(kind);
        let blocks = bytes.chunks_exact(kind.bytes() as usize);
        let read: Vec<f32> = blocks.flat_map(|block| sixteens(kind, block).numbers).collect();
        assert_eq!(read, expected, "{kind:?}");
    }
}

#[test]
fn plain_numbers_are_rounded_once_or_not_at_all() {
    let mut loss = Loss::default();
    let half = |half| Target {
        half,
        change: Change::Stays,
    };
    let bytes: Vec<u8> = [1.0_f32, -2.5, 0.1]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    let same = convert(Kind::F32, half(None), "x", &bytes, &mut loss).unwrap();
    assert_eq!((same.weight, loss), (bytes.clone(), Loss::default()));
    let short = convert(Kind::F32, half(Some(Half::F16)), "x", &bytes, &mut loss).unwrap();
    assert_eq!(short.weight, [0, 0x3C, 0, 0xC1, 0x66, 0x2E]);
    assert!(loss.worst() > 0.0 && loss.worst() < 1e-4);
    let less = Target {
        half: Some(Half::BF16),
        change: Change::Add(-1.0),
    };
    let norm = convert(Kind::F32, less, "x", &1.5_f32.to_le_bytes(), &mut loss).unwrap();
    assert_eq!(norm.weight, [0, 0x3F]);
    let wide = convert(Kind::BF16, half(Some(Half::BF16)), "x", &[1, 2, 3, 4], &mut loss).unwrap();
    assert_eq!(wide.weight, [1, 2, 3, 4]);
}

#[test]
fn numbers_beyond_16_bits_are_refused() {
    let mut loss = Loss::default();
    let mut refused = |kind: Kind, half: Half, block: &[u8]| {
        let target = Target {
            half: Some(half),
            change: Change::Stays,
        };
        let made = convert(kind, target, "blk.0.ffn_up.weight", block, &mut loss);
        made.err().map(|error| error.to_string())
    };
    // 512 times -128 is -65,536; NaN and infinity are scales of broken files.
    let block = |scale: u16| [&scale.to_le_bytes()[..], &[1; 32]].concat();
    for scale in [0x6000, 0xE000, 0x7C00, 0x7E00] {
        let words = refused(Kind::Q8_0, Half::F16, &block(scale)).unwrap();
        assert!(
            words.contains("blk.0.ffn_up.weight") && words.contains("F16"),
            "{words}"
        );
    }
    assert_eq!(refused(Kind::Q8_0, Half::F16, &block(0x5FFE)), None);
    assert_eq!(refused(Kind::Q8_0, Half::BF16, &block(0x6000)), None);
    assert!(refused(Kind::F32, Half::F16, &1e5_f32.to_le_bytes()).is_some());
    assert!(refused(Kind::MXFP4, Half::F16, &[0xFF; 17]).is_some());
}
