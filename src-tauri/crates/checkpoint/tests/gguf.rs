//! GGUF files of small random models, whose originals are at hand: the imported config means the same, and every number
//! is the original's.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use checkpoint::gguf::GgufImport;
use checkpoint::{Error, Family, Header, ModelConfig};
use serde_json::Value;

/// Writes models with `tests/oracle/gguf_families.py`; `None`, with a line printed, if there is no Python for it.
fn written(out: &Path) -> Option<Vec<String>> {
    let Some(python) = std::env::var_os("PONDER_ORACLE_PYTHON") else {
        println!("skipped: PONDER_ORACLE_PYTHON names no Python with gguf; `./dev test` provides one");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/gguf_families.py");
    let mut command = Command::new(python);
    // It has an MLX of its own.
    command.env_remove("LD_LIBRARY_PATH").arg("-B").arg(script).arg(out);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = names.as_array().unwrap().iter();
    Some(names.map(|name| name.as_str().unwrap().to_owned()).collect())
}

/// The tensors of a file as names, shapes and bytes.
fn stored(path: &Path) -> BTreeMap<String, (Vec<u64>, Vec<u8>)> {
    let (header, _) = Header::read(path).unwrap();
    let bytes = std::fs::read(path).unwrap();
    let places = header.places();
    places
        .map(|place| {
            let start = place.offset as usize;
            let length = header.bytes(place.name).unwrap() as usize;
            (
                place.name.to_owned(),
                (place.shape.to_vec(), bytes[start..start + length].to_vec()),
            )
        })
        .collect()
}

/// The largest difference of numbers, by the largest number.
fn difference(one: &[u8], other: &[u8]) -> f32 {
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
    let pairs = one.chunks_exact(4).map(number).zip(other.chunks_exact(4).map(number));
    let (mut most, mut largest) = (0.0_f32, 0.0_f32);
    for (one, other) in pairs {
        (most, largest) = (most.max((one - other).abs()), largest.max(one.abs()));
    }
    most / largest.max(f32::MIN_POSITIVE)
}

/// A family without the periods and amplitudes of its ropes, and those.
fn family(config: ModelConfig) -> (Family, Vec<f32>) {
    let mut family = config.family;
    let ropes: &mut [_] = match &mut family {
        Family::Decoder(decoder) => &mut decoder.ropes,
        _ => &mut [],
    };
    let mut periods = Vec::new();
    for rope in ropes {
        periods.append(&mut rope.periods);
        periods.push(rope.amplitude);
        rope.amplitude = 0.0;
    }
    (family, periods)
}

/// The numbers of a 16 bit format.
fn wide(dtype: &str, bytes: &[u8]) -> f32 {
    let bits = u16::from_le_bytes(bytes.try_into().unwrap());
    if dtype == "BF16" {
        return f32::from_bits(u32::from(bits) << 16);
    }
    // Numbers of these models are neither tiny nor endless.
    let size = match bits & 0x7FFF {
        size @ 0x400.. => f32::from_bits((u32::from(size) << 13) + 0x3800_0000),
        size => f32::from(size) / 16_777_216.0,
    };
    if bits >> 15 == 1 {
        -size
    } else {
        size
    }
}

/// The numbers of a target, of which quantized ones have 8 bits in groups of 32.
fn numbers(import: &GgufImport, index: usize) -> Vec<f32> {
    let target = &import.targets[index];
    let mut all = Vec::new();
    let read = import.read::<Error>(index, |parts, _| {
        if target.dtype == "F32" {
            let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
            all.extend(parts.weight.chunks_exact(4).map(number));
            return Ok(());
        }
        if target.quantization.is_none() {
            all.extend(parts.weight.chunks_exact(2).map(|half| wide(target.dtype, half)));
            return Ok(());
        }
        let halves = parts.scales.chunks_exact(2).zip(parts.biases.chunks_exact(2));
        for (codes, (scale, bias)) in parts.weight.chunks_exact(32).zip(halves) {
            let (scale, bias) = (wide(target.dtype, scale), wide(target.dtype, bias));
            all.extend(codes.iter().map(|code| scale * f32::from(*code) + bias));
        }
        Ok(())
    });
    read.unwrap();
    all
}

/// Every matrix of a file whose matrices have 8 bits is near the original's, and everything else nearer.
fn check_quantized(path: &Path, originals: &BTreeMap<String, (Vec<u64>, Vec<u8>)>, name: &str) {
    let import = GgufImport::plan(path).unwrap();
    assert_eq!(import.config["quantization"]["bits"], 8, "{name}");
    for (index, target) in import.targets.iter().enumerate() {
        let (shape, expected) = &originals[&target.name];
        assert_eq!(&target.shape, shape, "{name}: {}", target.name);
        let made: Vec<u8> = numbers(&import, index)
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        assert_eq!(made.len(), expected.len(), "{name}: {}", target.name);
        let bound = if target.quantization.is_some() {
            1.0 / 127.0
        } else {
            1.0 / 256.0
        };
        let off = difference(expected, &made);
        assert!(off <= bound, "{name}: {} is {off} off", target.name);
    }
}

#[test]
fn every_architecture_becomes_the_model_that_it_was() {
    let out = tempfile::tempdir().unwrap();
    let Some(names) = written(out.path()) else { return };
    for name in names {
        let folder = out.path().join(&name);
        let import = GgufImport::plan(&out.path().join(format!("{name}.gguf"))).unwrap();
        let parse = |text: &str| ModelConfig::parse(text).unwrap();
        let (original, made) = (
            parse(&std::fs::read_to_string(folder.join("config.json")).unwrap()),
            parse(&import.config.to_string()),
        );
        assert_eq!(
            (&made.model_type, made.context),
            (&original.model_type, original.context),
            "{name}"
        );
        let ((original, periods), (made, new_periods)) = (family(original), family(made));
        assert_eq!(made, original, "{name}");
        assert_eq!(new_periods.len(), periods.len(), "{name}");
        for (new, old) in new_periods.iter().zip(&periods) {
            assert!(
                new == old || (new / old - 1.0).abs() < 1e-5,
                "{name}: {new} instead of {old}"
            );
        }
        let mut originals = stored(&folder.join("model.safetensors"));
        check_quantized(&out.path().join(format!("{name}-q8.gguf")), &originals, &name);
        for (index, target) in import.targets.iter().enumerate() {
            let mut bytes = Vec::new();
            let read = import.read::<Error>(index, |parts, _| {
                bytes.extend(parts.weight);
                Ok(())
            });
            read.unwrap();
            let (shape, expected) = originals
                .remove(&target.name)
                .unwrap_or_else(|| panic!("{name}: {}", target.name));
            assert_eq!(
                (&target.shape, target.dtype),
                (&shape, "F32"),
                "{name}: {}",
                target.name
            );
            // Norms were counted from 1 and back, and decays are logarithms of exponentials.
            let bound = match &target.name {
                norm if name.starts_with("gemma") && norm.ends_with("norm.weight") => 1e-6,
                decay if decay.ends_with(".A_log") => 1e-6,
                _ => 0.0,
            };
            let off = difference(&expected, &bytes);
            assert!(
                bytes.len() == expected.len() && off <= bound,
                "{name}: {} is {off} off",
                target.name
            );
        }
        let left: Vec<_> = originals.keys().collect();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}
