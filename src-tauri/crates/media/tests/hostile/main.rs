//! Files that mean no good, and broken ones: each is a clear error or an image, and none takes much memory.

mod drawings;

use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::Compression;

use drawings::{doubling, small_bombs, svg};

/// The limit of peak memory, in bytes.
#[cfg(target_os = "linux")]
const MOST: usize = 300 << 20;

/// Files that must be refused say so; the others may also be shown.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Refused,
    Either,
    Shown,
}
use Wanted::{Either, Refused, Shown};

fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut named = name.to_vec();
    named.extend(body);
    let mut sum = flate2::Crc::new();
    sum.update(&named);
    [
        (body.len() as u32).to_be_bytes().to_vec(),
        named,
        sum.sum().to_be_bytes().to_vec(),
    ]
    .concat()
}

/// A PNG whose header says what it likes, around any number of zeros.
fn png(width: u32, height: u32, bits: u8, colours: u8, zeros: u64) -> Vec<u8> {
    let header = [
        &width.to_be_bytes()[..],
        &height.to_be_bytes(),
        &[bits, colours, 0, 0, 0],
    ]
    .concat();
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::new(6));
    let block = [0u8; 1 << 16];
    let mut left = zeros;
    while left > 0 {
        let now = left.min(block.len() as u64);
        packed.write_all(&block[..now as usize]).expect("memory");
        left -= now;
    }
    let packed = packed.finish().expect("memory");
    [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", &header),
        chunk(b"IDAT", &packed),
        chunk(b"IEND", &[]),
    ]
    .concat()
}

fn encoded(format: image::ImageFormat) -> Vec<u8> {
    let image = image::RgbImage::from_fn(64, 48, |x, y| image::Rgb([x as u8 * 4, y as u8 * 5, (x * y) as u8]));
    let mut file = std::io::Cursor::new(Vec::new());
    image.write_to(&mut file, format).expect("it is encoded");
    file.into_inner()
}

fn gif(width: u16, height: u16, frames: usize) -> Vec<u8> {
    let mut file = b"GIF89a".to_vec();
    file.extend(width.to_le_bytes());
    file.extend(height.to_le_bytes());
    file.extend([0x80, 0, 0, 0, 0, 0, 255, 255, 255]);
    for _ in 0..frames {
        file.extend([0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0]);
    }
    file
}

fn bmp(width: i32, height: i32, bits: u16) -> Vec<u8> {
    let mut file = b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
    file.extend(width.to_le_bytes());
    file.extend(height.to_le_bytes());
    file.extend([1, 0]);
    file.extend(bits.to_le_bytes());
    file.extend([0; 24]);
    file.extend([7; 16]);
    file
}

/// A TIFF of one strip whose fields are these.
fn tiff(fields: &[(u16, u16, u32, u32)]) -> Vec<u8> {
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    file.extend((fields.len() as u16).to_le_bytes());
    for (tag, kind, count, value) in fields {
        file.extend(tag.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 16]);
    file
}

fn boxed(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes()[..], name, body].concat()
}

fn heic() -> Vec<u8> {
    let rgb: Vec<u8> = (0..96 * 64 * 3).map(|step| (step * 7) as u8).collect();
    let options = heifer::EncodeOptions {
        quality: 90,
        max_threads: 1,
    };
    heifer::encode_rgb8(96, 64, &rgb, &options).expect("it is encoded")
}

/// The same with the sizes that it says replaced.
fn resized_heic(width: u32, height: u32) -> Vec<u8> {
    let mut file = heic();
    let places: Vec<usize> = file
        .windows(4)
        .enumerate()
        .filter(|(_, name)| *name == b"ispe")
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    for at in places {
        file[at + 8..at + 12].copy_from_slice(&width.to_be_bytes());
        file[at + 12..at + 16].copy_from_slice(&height.to_be_bytes());
    }
    file
}

/// Another value at a fixed distance of bytes.
fn scratched(mut file: Vec<u8>, from: usize, every: usize) -> Vec<u8> {
    let mut at = from;
    while at < file.len() {
        file[at] = file[at].wrapping_mul(31).wrapping_add(77);
        at += every;
    }
    file
}

fn jpeg_of(width: u16, height: u16, marker: u8) -> Vec<u8> {
    let mut file = encoded(image::ImageFormat::Jpeg);
    let frame = file
        .windows(2)
        .position(|pair| pair[0] == 0xff && (pair[1] == 0xc0 || pair[1] == 0xc2))
        .expect("a frame");
    file[frame + 1] = marker;
    file[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    file[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    file
}

fn cut(file: &[u8], parts: usize) -> Vec<u8> {
    file[..file.len() / parts].to_vec()
}

fn rasters() -> Vec<(&'static str, Vec<u8>, Wanted)> {
    use image::ImageFormat::{Bmp, Gif, Jpeg, Png, Tiff, WebP};
    let entry = |tag, kind, count, value| (tag, kind, count, value);
    let grey = |width, height, bytes| {
        let (width, height) = (entry(256, 4, 1, width), entry(257, 4, 1, height));
        tiff(&[
            width,
            height,
            entry(258, 3, 1, 8),
            entry(259, 3, 1, 1),
            entry(262, 3, 1, 1),
            entry(273, 4, 1, 8),
            entry(278, 4, 1, 100_000),
            entry(279, 4, 1, bytes),
        ])
    };
    vec![
        (
            "a bomb of 40,000 squared",
            png(40_000, 40_000, 8, 0, 200_000_000),
            Refused,
        ),
        (
            "a bomb of 16,000 by 6,000 in 64 bits",
            png(16_000, 6_000, 16, 6, 1_000_000),
            Refused,
        ),
        (
            "a bomb within all limits of sides",
            png(16_384, 6_103, 8, 6, 1_000_000),
            Refused,
        ),
        ("as large as is unfolded", png(9_000, 7_000, 8, 2, 189_007_000), Shown),
        ("a row of 4 thousand million", png(u32::MAX, 1, 8, 2, 10), Refused),
        ("no pixels at all", png(0, 0, 8, 2, 10), Refused),
        ("more data than pixels", png(4, 4, 8, 2, 100_000_000), Either),
        ("less data than pixels", png(4_000, 4_000, 8, 2, 10), Either),
        ("bits that do not exist", png(4, 4, 3, 2, 64), Refused),
        ("colours that do not exist", png(4, 4, 8, 5, 64), Refused),
        ("a palette that is missing", png(8, 8, 8, 3, 72), Either),
        ("half a PNG", cut(&encoded(Png), 2), Either),
        ("a PNG of its signature", encoded(Png)[..8].to_vec(), Refused),
        ("a PNG of its header", encoded(Png)[..33].to_vec(), Refused),
        ("a scratched PNG", scratched(encoded(Png), 60, 7), Either),
        ("half a JPEG", cut(&encoded(Jpeg), 2), Either),
        ("a JPEG of ten bytes", encoded(Jpeg)[..10].to_vec(), Refused),
        (
            "a JPEG that says 65,535 squared",
            jpeg_of(65_535, 65_535, 0xc0),
            Refused,
        ),
        (
            "a JPEG that says 16,384 by 6,000",
            jpeg_of(16_384, 6_000, 0xc0),
            Refused,
        ),
        ("a JPEG that says 16,000 by 5,000", jpeg_of(16_000, 5_000, 0xc0), Either),
        (
            "a progressive JPEG that says 16,000 by 6,000",
            jpeg_of(16_000, 6_000, 0xc2),
            Refused,
        ),
        ("a JPEG without rows", jpeg_of(64, 0, 0xc0), Either),
        ("a JPEG of a frame that is not read", jpeg_of(64, 48, 0xc9), Refused),
        ("a scratched JPEG", scratched(encoded(Jpeg), 30, 5), Either),
        (
            "a JPEG of nothing but starts",
            [0xff, 0xd8, 0xff].repeat(10_000),
            Refused,
        ),
        ("half a WebP", cut(&encoded(WebP), 2), Either),
        ("a scratched WebP", scratched(encoded(WebP), 24, 3), Either),
        (
            "a WebP that says it is long",
            [&b"RIFF\xff\xff\xff\xffWEBPVP8L\xff\xff\xff\x7f\x2f"[..], &[0xff; 40]].concat(),
            Refused,
        ),
        (
            "a WebP canvas of 16,777,216 squared",
            [
                &b"RIFF\x40\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\xff\xff\xff\xff\xff\xff"[..],
                &[0; 40],
            ]
            .concat(),
            Refused,
        ),
        ("an endless GIF", gif(64, 64, 500_000), Either),
        ("a GIF of 65,535 squared", gif(65_535, 65_535, 1), Refused),
        ("a GIF of 16,000 by 6,000", gif(16_000, 6_000, 1), Refused),
        ("a GIF without an image", gif(64, 64, 0), Refused),
        ("half a GIF", cut(&encoded(Gif), 2), Either),
        (
            "a GIF of comments that do not end",
            [gif(8, 8, 0), b"\x21\xfe".to_vec(), [255; 100_000].to_vec()].concat(),
            Refused,
        ),
        ("a BMP of two thousand million", bmp(i32::MAX, i32::MAX, 24), Refused),
        ("a BMP of less than nothing", bmp(-5, -5, 24), Refused),
        ("a BMP of 9,000 by 9,000 without pixels", bmp(9_000, 9_000, 24), Either),
        ("a BMP of 77 bits", bmp(4, 4, 77), Refused),
        ("half a BMP", cut(&encoded(Bmp), 2), Either),
        ("a TIFF of 60,000 squared", grey(60_000, 60_000, 64), Refused),
        ("a TIFF whose strip has 4 GB", grey(9_000, 7_000, u32::MAX), Either),
        (
            "a TIFF of four thousand million bits",
            tiff(&[entry(256, 4, 1, 4), entry(257, 4, 1, 4), entry(258, 3, u32::MAX, 8)]),
            Refused,
        ),
        (
            "a TIFF that follows itself",
            [&b"II*\0\x08\0\0\0\0\0\x08\0\0\0"[..], &[0; 8]].concat(),
            Refused,
        ),
        ("half a TIFF", cut(&encoded(Tiff), 2), Either),
        ("zeros", vec![0; 100_000], Refused),
        ("nothing", Vec::new(), Refused),
        ("a text", b"This is not an image.".to_vec(), Refused),
        (
            "a page",
            b"<!DOCTYPE html><html><body><svg/></body></html>".to_vec(),
            Refused,
        ),
        ("a PDF", b"%PDF-1.7\n%\xe2\xe3\n".to_vec(), Refused),
        ("a program", b"\x7fELF\x02\x01\x01".to_vec(), Refused),
    ]
}

fn others() -> Vec<(&'static str, Vec<u8>, Wanted)> {
    let blur = |deviation: &str| {
        format!(
            r##"<filter id="f"><feGaussianBlur stdDeviation="{deviation}"/></filter><rect width="80" height="60" filter="url(#f)"/>"##
        )
    };
    let layers = |count: usize| {
        format!(
            "{}<rect width=\"9999\" height=\"9999\"/>{}",
            r#"<g opacity="0.9">"#.repeat(count),
            "</g>".repeat(count)
        )
    };
    let entities = r#"<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><desc>&b;</desc></svg>"#;
    let outside = r#"<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text y="9">&x;</text></svg>"#;
    let pattern = r##"<pattern id="p" width="100000" height="100000" patternUnits="userSpaceOnUse"><rect width="5" height="5"/></pattern><rect width="80" height="60" fill="url(#p)"/>"##;
    let itself = r##"<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g><pattern id="p" width="5" height="5"><rect fill="url(#p)" width="5" height="5"/></pattern>"##;
    vec![
        (
            "a drawing",
            svg(r#"<circle cx="40" cy="30" r="20" fill="red"/><text x="5" y="50">hello</text>"#),
            Shown,
        ),
        ("a drawing with a script", svg("<script>while (true) {}</script>"), Refused),
        (
            "a drawing that runs when it is loaded",
            svg(r#"<rect onload="alert(1)" width="9" height="9"/>"#),
            Refused,
        ),
        ("a drawing of entities", entities.into(), Refused),
        ("a drawing of an entity from outside", outside.into(), Refused),
        (
            "a drawing with an image from outside",
            svg(r#"<image href="http://127.0.0.1:9/a.png" width="9" height="9"/><image xlink:href="/etc/passwd" width="9" height="9"/>"#),
            Shown,
        ),
        (
            "a drawing with an image within",
            svg(r#"<image href="data:image/png;base64,iVBORw0KGgo=" width="9" height="9"/>"#),
            Shown,
        ),
        ("a drawing that uses itself", svg(itself), Either),
        ("a drawing of a thousand million rectangles", svg(&doubling(9)), Refused),
        ("a drawing of a thousand rectangles", svg(&doubling(3)), Shown),
        ("a drawing of layers in layers", svg(&layers(60)), Refused),
        (
            "a drawing of elements in elements",
            svg(&format!("{}{}", "<g>".repeat(100_000), "</g>".repeat(100_000))),
            Refused,
        ),
        (
            "a drawing of noise",
            svg(r##"<filter id="f"><feTurbulence numOctaves="1000000000"/></filter><rect width="9" height="9" filter="url(#f)"/>"##),
            Refused,
        ),
        ("a drawing blurred beyond measure", svg(&blur("1e9")), Either),
        ("a drawing of one huge pattern", svg(pattern), Refused),
        (
            "a drawing of 1e9 by 1e9",
            br#"<svg xmlns="http://www.w3.org/2000/svg" width="1e9" height="1e9"><rect width="1e9" height="1e9"/></svg>"#.to_vec(),
            Either,
        ),
        (
            "a drawing of nothing by nothing",
            br#"<svg xmlns="http://www.w3.org/2000/svg" width="0" height="0"/>"#.to_vec(),
            Refused,
        ),
        ("half a drawing", cut(&svg(r#"<rect width="9" height="9"/>"#), 2), Refused),
        ("a HEIC", heic(), Shown),
        ("half a HEIC", cut(&heic(), 2), Either),
        ("a scratched HEIC", scratched(heic(), 40, 11), Either),
        (
            "a HEIC with scratched pixels",
            {
                let file = heic();
                let from = file.len() / 2;
                scratched(file, from, 3)
            },
            Either,
        ),
        ("a HEIC that says 60,000 squared", resized_heic(60_000, 60_000), Refused),
        ("a HEIC that says 7,000 squared", resized_heic(7_000, 7_000), Either),
        ("a HEIC without pixels", resized_heic(0, 0), Refused),
        ("a HEIC of its first box", boxed(b"ftyp", b"heic\0\0\0\0mif1heic"), Refused),
        (
            "a HEIC of garbage",
            [boxed(b"ftyp", b"heic\0\0\0\0mif1heic"), boxed(b"meta", &[0xff; 4_000])].concat(),
            Refused,
        ),
        (
            "a HEIC whose box has no end",
            [
                boxed(b"ftyp", b"heic\0\0\0\0mif1heic"),
                b"\xff\xff\xff\xffmeta".to_vec(),
                vec![0; 99],
            ]
            .concat(),
            Refused,
        ),
        ("an AVIF", boxed(b"ftyp", b"avif\0\0\0\0mif1avif"), Refused),
        ("a film", boxed(b"ftyp", b"isom\0\0\x02\0isomiso2"), Refused),
    ]
}

/// Peak memory of this process, in bytes.
#[cfg(target_os = "linux")]
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says so");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("it has a peak");
    line.split_whitespace()
        .nth(1)
        .and_then(|number| number.parse::<usize>().ok())
        .expect("a number")
        * 1024
}

// One test, so that the peak is its own.
#[test]
fn hostile_files_are_errors_that_say_why_and_take_little_memory() {
    let mut count = 0;
    for (name, file, wanted) in rasters().into_iter().chain(others()).chain(small_bombs()) {
        count += 1;
        let measured = media::measure(&file);
        let decoded = media::decode(&file);
        match &decoded {
            Ok(image) => {
                assert!(wanted != Refused, "{name} became {}×{}", image.width, image.height);
                assert_eq!(
                    image.rgb.len(),
                    image.width as usize * image.height as usize * 3,
                    "{name}"
                );
                assert!(measured.is_ok(), "{name} is shown but cannot be measured: {measured:?}");
            }
            Err(error) => {
                assert!(wanted != Shown, "{name}: {error}");
                let text = error.to_string();
                assert!(text.len() > 30 && text.contains(';'), "{name}: {text}");
                assert!(!text.contains("panicked"), "{name}: {text}");
            }
        }
        drop(decoded);
        // A file without its metadata is still an image, or an error.
        if let Ok(stripped) = media::strip_metadata(&file) {
            assert!(!stripped.is_empty(), "{name}");
        }
        #[cfg(target_os = "linux")]
        assert!(peak() < MOST, "{name}: {} MB", peak() >> 20);
    }
    assert!(count >= 80, "{count} files");
    let long = [encoded(image::ImageFormat::Png), vec![0; 51 << 20]].concat();
    assert!(matches!(media::decode(&long), Err(media::Error::TooLarge(_))));
}
