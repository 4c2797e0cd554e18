//! Images beside Pillow 12.3 and transformers' processors, which `tests/oracle/images.py` asked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use checkpoint::image_processor::Filter;
use checkpoint::ImageProcessor;
use protocol::ImageDetail;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The folder in which `./dev test` stores the oracle's results.
fn figures() -> Option<PathBuf> {
    let folder = std::env::var_os("PONDER_ORACLE_FIGURES").map(|folder| PathBuf::from(folder).join("images"));
    if folder.is_none() {
        eprintln!("skipped: PONDER_ORACLE_FIGURES is not set; ./dev test sets it");
    }
    folder
}

fn json(path: PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("the file is there")).expect("it is JSON")
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn size(value: &Value) -> (u32, u32) {
    let side = |index: usize| value[index].as_u64().expect("a number") as u32;
    (side(0), side(1))
}

/// The image as Pillow decoded it, by name.
fn loaded(folder: &std::path::Path, expected: &Value) -> BTreeMap<String, media::DecodedImage> {
    let sizes = expected["sizes"].as_object().expect("sizes");
    let image = |(name, found): (&String, &Value)| {
        let (width, height) = size(found);
        let rgb = std::fs::read(folder.join("images").join(format!("{name}.rgb"))).expect("decoded pixels");
        let image = media::DecodedImage {
            width,
            height,
            rgb,
            original: (width, height),
            animated: false,
        };
        (name.clone(), image)
    };
    sizes.iter().map(image).collect()
}

/// How far two decoders of a kind may lie apart in all but one of 5,000 places, and in those: the decoder of JPEG
/// spreads colors that were stored for four pixels with other roundings than libjpeg-turbo, whatever it is set to.
fn allowed(name: &str) -> (u8, u8) {
    match name {
        _ if name.ends_with(".jpg") => (4, 6),
        "deep.png" => (1, 1),
        _ => (0, 0),
    }
}

#[test]
fn files_are_decoded_as_pillow_decodes_them() {
    let Some(folder) = figures() else { return };
    let expected = json(folder.join("expected.json"));
    for (name, pillow) in loaded(&folder, &expected) {
        let bytes = std::fs::read(folder.join("images").join(&name)).expect("an image");
        let measured = media::measure(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            (measured.width, measured.height),
            (pillow.width, pillow.height),
            "{name}"
        );
        let ours = media::decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((ours.width, ours.height), (pillow.width, pillow.height), "{name}");
        assert_eq!(ours.animated, name.starts_with("animated"), "{name}");
        let steps = || {
            ours.rgb
                .iter()
                .zip(&pillow.rgb)
                .map(|(ours, theirs)| ours.abs_diff(*theirs))
        };
        let (usual, most) = allowed(&name);
        let beyond = steps().filter(|step| *step > usual).count();
        let largest = steps().max().expect("pixels");
        println!(
            "{name}: {largest} steps at most, {beyond} of {} beyond {usual}",
            ours.rgb.len()
        );
        assert!(
            largest <= most && beyond * 5000 <= ours.rgb.len(),
            "{name}: {largest} of 255 steps apart, {beyond} beyond {usual}"
        );
    }
}

#[test]
fn images_are_resized_as_pillow_resizes_them() {
    let Some(folder) = figures() else { return };
    let images = loaded(&folder, &json(folder.join("expected.json")));
    let cases = json(folder.join("resize.json"));
    let cases = cases.as_array().expect("a list");
    assert!(cases.len() > 200, "{} cases", cases.len());
    for case in cases {
        let [name, filter, to, wanted] = [0, 1, 2, 3].map(|index| &case[index]);
        let filter = match filter.as_str() {
            Some("lanczos") => Filter::Lanczos,
            Some("bilinear") => Filter::Bilinear,
            Some("bicubic") => Filter::Bicubic,
            Some("box") => Filter::Box,
            Some("hamming") => Filter::Hamming,
            other => panic!("{other:?}"),
        };
        let image = &images[name.as_str().expect("a name")];
        let resized = media::resize(image, size(to), filter);
        assert_eq!(Some(digest(&resized.rgb).as_str()), wanted.as_str(), "{case}");
    }
}

#[test]
fn numbers_are_those_of_transformers_processors_bit_for_bit() {
    let Some(folder) = figures() else { return };
    let expected = json(folder.join("expected.json"));
    let images = loaded(&folder, &expected);
    let (mut tensors, mut wrong) = (0, Vec::new());
    for (name, answers) in expected["processors"].as_object().expect("processors") {
        let at = folder.join("processors").join(name);
        let processor =
            ImageProcessor::read(&at, &json(at.join("config.json"))).unwrap_or_else(|error| panic!("{name}: {error}"));
        let processor = processor.unwrap_or_else(|| panic!("{name} is a processor"));
        for (file, answer) in answers.as_object().expect("answers") {
            let image = &images[file];
            // Budgets of our own are above what all of these take; Gemma 4 alone is given more at full detail.
            let detail = if name == "gemma4" {
                ImageDetail::Normal
            } else {
                ImageDetail::Full
            };
            let plan = match processor.plan(image.width, image.height, detail) {
                Ok(plan) => plan,
                Err(error) => {
                    assert!(answer.get("error").is_some(), "{name}, {file}: {error}");
                    continue;
                }
            };
            // An image that Pillow cannot resize to nothing has one row or column here.
            if answer.get("error").is_some() {
                continue;
            }
            assert_eq!(Some(plan.tokens() as u64), answer["tokens"].as_u64(), "{name}, {file}");
            if let (rows @ 1.., columns) = size(&answer["tiles"]) {
                assert_eq!(plan.tiles, Some((rows, columns)), "{name}, {file}");
            }
            let views =
                media::preprocess(image, &processor, &plan).unwrap_or_else(|error| panic!("{name}, {file}: {error}"));
            let wanted = answer["views"].as_array().expect("views");
            assert_eq!(views.len(), wanted.len(), "{name}, {file}");
            for (index, (view, wanted)) in views.iter().zip(wanted).enumerate() {
                assert_eq!(serde_json::json!(view.shape), wanted[0], "{name}, {file}, view {index}");
                tensors += 1;
                if Some(digest(bytemuck::cast_slice(&view.values)).as_str()) != wanted[1].as_str() {
                    wrong.push(format!("{name}, {file}, view {index}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {tensors} differ: {wrong:?}", wrong.len());
    assert!(tensors > 700, "{tensors} tensors");
}
