//! The metadata of an image file: place, camera, author.

use image::metadata::Orientation;

use crate::decode::{decode, measure};
use crate::decoded_image::DecodedImage;
use crate::error::{Error, Result};
use crate::gif::{blocks, header_length, FRAME};
use crate::kind::Kind;

/// The same file without the place it was taken at, the camera and other words about it; its pixels are not encoded
/// anew, and orientation and color profile stay. Kinds that cannot be cut so (TIFF, and HEIC whose parts are not where
/// they are read) are an error: they are not handed out as they are.
pub fn strip_metadata(bytes: &[u8]) -> Result<Vec<u8>> {
    match measure(bytes)?.kind {
        Kind::Png => png(bytes),
        Kind::Jpeg => jpeg(bytes),
        Kind::Webp => webp(bytes),
        Kind::Gif => gif(bytes),
        Kind::Heic | Kind::Avif => heic(bytes),
        // Its fields lie between the pixels, so the image is written anew without loss.
        Kind::Tiff => written(&decode(bytes)?),
        // Neither has a place for such words that is not part of the drawing.
        Kind::Bmp | Kind::Svg => Ok(bytes.to_vec()),
    }
}

fn broken(kind: Kind) -> Error {
    Error::Broken {
        kind: kind.name().into(),
        reason: "its parts are not where they should be".into(),
    }
}

/// An image as PNG.
fn written(image: &DecodedImage) -> Result<Vec<u8>> {
    use image::ImageEncoder;
    let mut file = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new(&mut file);
    encoder
        .write_image(&image.rgb, image.width, image.height, image::ExtendedColorType::Rgb8)
        .map_err(|error| Error::Broken {
            kind: "PNG".into(),
            reason: error.to_string(),
        })?;
    Ok(file)
}

/// EXIF that says nothing but how the image is turned; `None` if it stands upright.
fn orientation_alone(exif: &[u8]) -> Option<Vec<u8>> {
    let orientation = Orientation::from_exif_chunk(exif).filter(|turn| *turn != Orientation::NoTransforms)?;
    let mut alone = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    alone.extend([orientation.to_exif(), 0, 0, 0, 0, 0, 0]);
    Some(alone)
}

/// Segments that an image needs: tables, frames, scans, its color profile and Adobe's color transform.
fn jpeg(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut kept = vec![0xff, 0xd8];
    let (mut at, mut started) = (2, false);
    loop {
        let Some(&[0xff, marker]) = bytes.get(at..at + 2) else {
            // Cut short within its pixels: what is there is still shown.
            return if started { Ok(kept) } else { Err(broken(Kind::Jpeg)) };
        };
        // Data that phones append, such as further images and films, is dropped.
        if marker == 0xd9 {
            kept.extend([0xff, 0xd9]);
            return Ok(kept);
        }
        if marker == 0xff {
            at += 1;
            continue;
        }
        let Some(&[high, low]) = bytes.get(at + 2..at + 4) else {
            return Err(broken(Kind::Jpeg));
        };
        let end = at + 2 + usize::from(u16::from_be_bytes([high, low]));
        let Some(segment) = bytes.get(at..end) else {
            return Err(broken(Kind::Jpeg));
        };
        let body = &segment[segment.len().min(4)..];
        match marker {
            0xe1 => {
                if let Some(exif) = body.strip_prefix(b"Exif\0\0").and_then(orientation_alone) {
                    kept.extend([0xff, 0xe1]);
                    kept.extend((exif.len() as u16 + 8).to_be_bytes());
                    kept.extend(b"Exif\0\0");
                    kept.extend(exif);
                }
            }
            0xe2 if body.starts_with(b"ICC_PROFILE\0") => kept.extend(segment),
            0xe0 | 0xee => kept.extend(segment),
            0xe2..=0xef | 0xfe => {}
            _ => kept.extend(segment),
        }
        at = end;
        if marker == 0xda {
            started = true;
            let length = coded(&bytes[at..]);
            kept.extend(&bytes[at..at + length]);
            at += length;
        }
    }
}

/// Bytes of a scan until the next marker; within one, 0xff is followed by 0 or by a restart.
fn coded(bytes: &[u8]) -> usize {
    let marker = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xd0..=0xd7 | 0xff);
    bytes.windows(2).position(marker).unwrap_or(bytes.len())
}

fn png(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut kept = bytes[..8].to_vec();
    let mut at = 8;
    while at < bytes.len() {
        let Some(length) = bytes
            .get(at..at + 4)
            .and_then(|length| length.try_into().ok())
            .map(u32::from_be_bytes)
        else {
            return Err(broken(Kind::Png));
        };
        let end = at.saturating_add(length as usize).saturating_add(12);
        let Some(chunk) = bytes.get(at..end) else {
            return Err(broken(Kind::Png));
        };
        let name = &chunk[4..8];
        match name {
            b"tEXt" | b"zTXt" | b"iTXt" | b"tIME" => {}
            b"eXIf" => {
                if let Some(exif) = orientation_alone(&chunk[8..chunk.len() - 4]) {
                    kept.extend((exif.len() as u32).to_be_bytes());
                    let start = kept.len();
                    kept.extend(b"eXIf");
                    kept.extend(exif);
                    let sum = crc32(&kept[start..]);
                    kept.extend(sum.to_be_bytes());
                }
            }
            // Frames have names of their own kind, which are kept.
            b"acTL" | b"fcTL" | b"fdAT" => kept.extend(chunk),
            // Chunks that a program made up for itself may hold anything; colors and pixels do not.
            _ if name[0].is_ascii_lowercase() && name[1].is_ascii_lowercase() => {}
            _ => kept.extend(chunk),
        }
        if name == b"IEND" {
            break;
        }
        at = end;
    }
    Ok(kept)
}

/// PNG's checksum, bit by bit: it is needed for the 30 bytes of an orientation alone.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    })
}

fn webp(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut kept = bytes.get(..12).ok_or_else(|| broken(Kind::Webp))?.to_vec();
    let mut turned = false;
    let mut at = 12;
    while let Some(header) = bytes.get(at..at + 8) {
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let end = at + 8 + length;
        let Some(body) = bytes.get(at + 8..end) else {
            return Err(broken(Kind::Webp));
        };
        match &header[..4] {
            b"XMP " => {}
            b"EXIF" => {
                let exif = body.strip_prefix(b"Exif\0\0").unwrap_or(body);
                if let Some(exif) = orientation_alone(exif) {
                    turned = true;
                    kept.extend(b"EXIF");
                    kept.extend((exif.len() as u32).to_le_bytes());
                    kept.extend(exif);
                }
            }
            _ => {
                kept.extend(header);
                kept.extend(body);
                kept.resize(kept.len() + length % 2, 0);
            }
        }
        at = end + length % 2;
    }
    // The header of what has extensions says which: bit 2 is XMP, bit 3 EXIF.
    if kept.get(12..16) == Some(b"VP8X") {
        if let Some(flags) = kept.get_mut(20) {
            *flags &= !0b0100;
            if !turned {
                *flags &= !0b1000;
            }
        }
    }
    let length = (kept.len() - 8) as u32;
    kept[4..8].copy_from_slice(&length.to_le_bytes());
    Ok(kept)
}

/// Comments and extensions other than those of frames and of how often they repeat.
fn gif(bytes: &[u8]) -> Result<Vec<u8>> {
    let header = header_length(bytes).and_then(|end| bytes.get(..end));
    let mut kept = header.ok_or_else(|| broken(Kind::Gif))?.to_vec();
    for (kind, block) in blocks(bytes) {
        let block = bytes.get(block.start..block.end.min(bytes.len())).unwrap_or_default();
        let repeats = block.get(2..14).is_some_and(|name| name == b"\x0bNETSCAPE2.0");
        if kind == FRAME || block.get(1) == Some(&0xf9) || repeats {
            kept.extend(block);
        }
    }
    kept.push(0x3b);
    Ok(kept)
}

/// Overwrites the bytes of EXIF and XMP items where they lie: how the image is turned is a property of its container.
fn heic(bytes: &[u8]) -> Result<Vec<u8>> {
    use heifer::heifer_isobmff::boxes::ConstructionMethod;
    use heifer::heifer_isobmff::HeifFile;
    let file = HeifFile::parse(bytes).map_err(|_| broken(Kind::Heic))?;
    let mut kept = bytes.to_vec();
    for item in &file.items {
        if !matches!(&item.item_type.0, b"Exif" | b"mime" | b"uri ") {
            continue;
        }
        let Some(location) = &item.location else { continue };
        if location.construction_method != ConstructionMethod::File {
            return Err(broken(Kind::Heic));
        }
        for extent in &location.extents {
            let length = if extent.length == 0 {
                bytes.len() as u64
            } else {
                extent.length
            };
            let end = extent.offset.saturating_add(length).min(bytes.len() as u64) as usize;
            if let Some(place) = kept.get_mut(extent.offset.min(end as u64) as usize..end) {
                place.fill(0);
            }
        }
    }
    Ok(kept)
}
