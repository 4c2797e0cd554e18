//! Place, camera and words about an image leave its file; pixels and orientation stay.

use std::io::Cursor;

use image::ImageFormat;

const SECRET: &[u8] = b"Maple Street 7";

fn image() -> image::RgbImage {
    image::RgbImage::from_fn(40, 30, |x, y| image::Rgb([x as u8 * 6, y as u8 * 8, 90]))
}

fn encoded(format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    image().write_to(&mut file, format).expect("it is encoded");
    file.into_inner()
}

/// EXIF with a turn and a camera's name that is an address.
fn exif(orientation: u8) -> Vec<u8> {
    let mut exif = b"MM\0*\0\0\0\x08\0\x02\x01\x0f\0\x02\0\0\0\x0e\0\0\0\x26\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    exif.extend(SECRET);
    exif
}

fn jpeg(orientation: u8) -> Vec<u8> {
    let plain = encoded(ImageFormat::Jpeg);
    let body = [b"Exif\0\0".to_vec(), exif(orientation)].concat();
    let segment =
        |marker: u8, body: &[u8]| [&[0xff, marker][..], &(body.len() as u16 + 2).to_be_bytes(), body].concat();
    [
        &plain[..2],
        &segment(0xe1, &body),
        &segment(0xfe, SECRET),
        &segment(0xed, SECRET),
        &plain[2..],
        SECRET,
    ]
    .concat()
}

fn png(orientation: u8) -> Vec<u8> {
    let plain = encoded(ImageFormat::Png);
    let chunk = |name: &[u8], body: &[u8]| {
        let named = [name, body].concat();
        let mut sum = flate2::Crc::new();
        sum.update(&named);
        [&(body.len() as u32).to_be_bytes()[..], &named, &sum.sum().to_be_bytes()].concat()
    };
    let text = [b"Comment\0", SECRET].concat();
    let frames = chunk(b"acTL", &[0, 0, 0, 1, 0, 0, 0, 0]);
    let after_header = 33;
    [
        &plain[..after_header],
        &frames,
        &chunk(b"eXIf", &exif(orientation)),
        &chunk(b"tEXt", &text),
        &chunk(b"maPl", SECRET),
        &plain[after_header..],
    ]
    .concat()
}

fn webp(orientation: u8) -> Vec<u8> {
    let plain = encoded(ImageFormat::WebP);
    let chunk = |name: &[u8], body: &[u8]| {
        let mut chunk = [name, &(body.len() as u32).to_le_bytes(), body].concat();
        chunk.resize(chunk.len() + body.len() % 2, 0);
        chunk
    };
    let header = [0b1100, 0, 0, 0, 39, 0, 0, 29, 0, 0];
    let body = [
        &b"WEBP"[..],
        &chunk(b"VP8X", &header),
        &plain[12..],
        &chunk(b"EXIF", &exif(orientation)),
        &chunk(b"XMP ", SECRET),
    ]
    .concat();
    [&b"RIFF"[..], &(body.len() as u32).to_le_bytes(), &body].concat()
}

fn gif() -> Vec<u8> {
    let plain = encoded(ImageFormat::Gif);
    let comment = [&[0x21, 0xfe, SECRET.len() as u8][..], SECRET, &[0]].concat();
    [&plain[..plain.len() - 1], &comment, &[0x3b]].concat()
}

fn heic() -> Vec<u8> {
    let rgb = image().into_raw();
    let image = heifer::Image {
        width: 40,
        height: 30,
        bit_depth: 8,
        has_alpha: false,
        data: rgb
            .chunks_exact(3)
            .flat_map(|pixel| [pixel[0].into(), pixel[1].into(), pixel[2].into(), 255])
            .collect(),
    };
    let metadata = heifer::Metadata {
        exif: Some(exif(1)),
        xmp: Some(SECRET.to_vec()),
        icc_profile: None,
    };
    heifer::encode_with_metadata(&image, &metadata, &heifer::EncodeOptions::default()).expect("it is encoded")
}

fn holds(file: &[u8], words: &[u8]) -> bool {
    file.windows(words.len()).any(|part| part == words)
}

#[test]
fn words_go_and_the_image_stays() {
    let mut files = vec![("GIF", gif()), ("HEIC", heic())];
    for orientation in [1, 3, 6] {
        files.extend([
            ("JPEG", jpeg(orientation)),
            ("PNG", png(orientation)),
            ("WebP", webp(orientation)),
        ]);
    }
    for (name, file) in files {
        assert!(holds(&file, SECRET), "{name}");
        let stripped = media::strip_metadata(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!holds(&stripped, SECRET), "{name}");
        assert_eq!(
            media::decode(&stripped).expect(name),
            media::decode(&file).expect(name),
            "{name}"
        );
        assert_eq!(
            media::strip_metadata(&stripped).expect(name),
            stripped,
            "{name}: twice is once"
        );
    }
}

#[test]
fn what_has_no_words_keeps_its_bytes() {
    for format in [
        ImageFormat::Jpeg,
        ImageFormat::Png,
        ImageFormat::WebP,
        ImageFormat::Gif,
        ImageFormat::Bmp,
    ] {
        let file = encoded(format);
        assert_eq!(
            media::strip_metadata(&file).expect("it is an image"),
            file,
            "{format:?}"
        );
    }
}

#[test]
fn a_preview_is_as_long_as_is_asked_and_never_larger_than_the_image() {
    let decoded = media::decode(&encoded(ImageFormat::Png)).expect("an image");
    for (side, wanted) in [(512, (40, 30)), (20, (20, 15)), (1, (1, 1))] {
        let preview = media::decode(&media::thumbnail(&decoded, side).expect("a preview")).expect("an image");
        assert_eq!((preview.width, preview.height), wanted);
    }
}
