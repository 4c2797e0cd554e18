//! Pages of a PDF as images: what is drawn, where a passage stands, and pages that cannot be drawn.

use std::io::Cursor;
use std::time::{Duration, Instant};

use hayro::vello_cpu::Pixmap;

use documents::{page_image, read, Error, PageImage, PageRequest, Result};

use crate::make::{pdf, pdf_of, stream};

const LETTER: &str = "0.2 0.4 0.6 rg 72 72 200 100 re f 0 g BT /F1 12 Tf 72 770 Td (The ferry leaves at seven.) Tj \
     0 -14 Td (It returns at nine.) Tj ET";

fn drawn(file: Vec<u8>, page: u32, width: u32, passage: &str) -> Result<PageImage> {
    let passage = passage.to_owned();
    page_image(file, PageRequest { page, width, passage })
}

fn refusal(file: Vec<u8>, page: u32) -> Error {
    let error = drawn(file, page, 600, "").unwrap_err();
    let said = error.to_string();
    assert!(said.len() < 160 && said.contains(';'), "{said} says what to do");
    error
}

/// Its size, and its pixels in rows.
fn pixels(page: &PageImage) -> (u32, u32, Vec<[u8; 3]>) {
    let image = Pixmap::from_png(Cursor::new(&page.png)).unwrap();
    let pixels = image.data().iter().map(|pixel| [pixel.r, pixel.g, pixel.b]).collect();
    (image.width().into(), image.height().into(), pixels)
}

#[test]
fn a_page_is_drawn_at_the_width_that_was_asked_for() {
    let file = pdf(&["BT ET", LETTER], "", &[]);
    let page = drawn(file, 2, 595, "").unwrap();
    assert_eq!((page.pages, page.width, page.height), (2, 595, 842));
    let (width, height, pixels) = pixels(&page);
    assert_eq!((width, height), (595, 842));
    let at = |x: usize, y: usize| pixels[y * 595 + x];
    assert_eq!(at(10, 10), [255; 3], "paper is white");
    assert_eq!(at(100, 700), [51, 102, 153]);
    let ink = (60..75)
        .flat_map(|y| (72..200).map(move |x| at(x, y)))
        .any(|pixel| pixel[0] < 80);
    assert!(ink, "letters are drawn");
}

#[test]
fn the_lines_of_a_passage_are_found_where_they_are_drawn() {
    let file = pdf(&[LETTER], "", &[]);
    let said = read(file.clone(), "a.pdf").unwrap().text;
    let page = drawn(file.clone(), 1, 400, &said).unwrap();
    assert_eq!(page.marks.len(), 2, "{:?}", page.marks);
    for (mark, line) in page.marks.iter().zip([770.0, 756.0]) {
        let (left, bottom) = (mark.left * 595.0, 842.0 - (mark.top + mark.height) * 842.0);
        assert!((left - 72.0).abs() < 1.0 && (bottom - line).abs() < 4.0, "{mark:?}");
        assert!((80.0..200.0).contains(&(mark.width * 595.0)), "{mark:?}");
        assert!((10.0..16.0).contains(&(mark.height * 842.0)), "{mark:?}");
    }
    let second = drawn(file.clone(), 1, 400, "at\nnine.").unwrap().marks;
    assert_eq!(second.len(), 1);
    assert!(second[0].left > page.marks[1].left && second[0].width < page.marks[1].width);
    assert!(drawn(file, 1, 400, "It never returns.").unwrap().marks.is_empty());
}

#[test]
fn pages_that_are_turned_or_have_no_letters_are_drawn() {
    let turned = |angle: u32| {
        let page = format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Rotate {angle} /Contents 5 0 R \
             /Resources << /Font << /F1 4 0 R >> >> >>"
        );
        pdf_of(
            &[
                b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
                b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
                page.into_bytes(),
                b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_vec(),
                stream("", b"BT /F1 10 Tf 10 80 Td (Hello) Tj ET"),
            ],
            "",
        )
    };
    let upright = drawn(turned(0), 1, 400, "Hello").unwrap();
    assert_eq!((upright.width, upright.height, upright.marks.len()), (400, 200, 1));
    let turned = drawn(turned(90), 1, 400, "Hello").unwrap();
    assert_eq!((turned.width, turned.height), (400, 800));
    assert!(turned.marks[0].left > 0.7 && turned.marks[0].top < 0.2, "{turned:?}");
    let scan = drawn(pdf(&["0 0 100 100 re f"], "", &[]), 1, 100, "").unwrap();
    assert_eq!(scan.width, 100);
}

#[test]
fn pages_that_are_not_there_and_files_without_any_are_told() {
    let file = pdf(&[LETTER], "", &[]);
    for page in [0, 2, u32::MAX] {
        assert_eq!(refusal(file.clone(), page), Error::NoPage { page, pages: 1 });
    }
    assert!(matches!(refusal(b"# Words".to_vec(), 1), Error::NotDrawn(_)));
    assert!(matches!(refusal(b"%PDF-1.7\n".to_vec(), 1), Error::Broken { .. }));
    let locked = pdf_of(&[b"<< /Type /Catalog >>".to_vec()], "/Encrypt 9 0 R");
    assert!(matches!(refusal(locked, 1), Error::Protected(_)));
}

/// A PDF of one page with this box.
fn sized(media_box: &str) -> Vec<u8> {
    pdf_of(
        &[
            b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
            format!("<< /Type /Page /Parent 2 0 R /MediaBox [{media_box}] /Contents 4 0 R >>").into_bytes(),
            stream("", b"0 0 50 50 re f"),
        ],
        "",
    )
}

#[test]
fn an_image_is_bounded_whatever_the_page_says_of_its_size() {
    for media_box in ["0 0 1000000 1000000", "0 0 1000 200000", "0 0 0.001 0.001", "0 0 -5 -5"] {
        let page = drawn(sized(media_box), 1, u32::MAX, "").unwrap();
        let pixels = u64::from(page.width) * u64::from(page.height);
        assert!(
            (1..=4_010_000).contains(&pixels),
            "{media_box}: {} × {}",
            page.width,
            page.height
        );
    }
    for media_box in [
        "0 0 1 99999999",
        "0 0 1e30 1",
        "0 0 99999999999999999999999999999999999999999 1",
    ] {
        match drawn(sized(media_box), 1, 600, "") {
            Ok(page) => assert!(
                u64::from(page.width) * u64::from(page.height) <= 4_010_000,
                "{media_box}"
            ),
            Err(error) => assert!(matches!(error, Error::Broken { .. }), "{media_box}: {error}"),
        }
    }
    assert!(matches!(
        drawn(sized("0 0 100 100"), 1, 0, ""),
        Err(Error::Broken { .. })
    ));
}

#[test]
fn images_that_would_unfold_without_end_are_refused_before_they_do() {
    let image = |size: &str, entries: &str, data: &[u8]| {
        let entries =
            format!("/Type /XObject /Subtype /Image {size} /ColorSpace /DeviceGray /BitsPerComponent 8 {entries}");
        pdf(
            &["100 0 0 100 0 0 cm /N Do"],
            "/XObject << /N 6 0 R >>",
            &[stream(&entries, data)],
        )
    };
    let huge = image("/Width 60000 /Height 60000", "/Filter /DCTDecode", b"\xff\xd8\xff\xc0");
    assert!(matches!(refusal(huge, 1), Error::TooLarge(_)));
    // After its first fault the data are counted as what they could unfold to at most.
    let faulty = [&[0x78, 0x9c, 0x07][..], &vec![0x55; 400_000]].concat();
    let packed = |filters: &str| image("/Width 10 /Height 10", &format!("/Filter [{filters}]"), &faulty);
    assert!(matches!(
        refusal(packed("/FlateDecode /DCTDecode"), 1),
        Error::TooLarge(_)
    ));
    assert!(matches!(
        refusal(packed("/DCTDecode /FlateDecode"), 1),
        Error::Broken { .. }
    ));
    let gray = image("/Width 2 /Height 1", "", &[0, 255]);
    let page = drawn(gray, 1, 595, "").unwrap();
    assert_eq!(pixels(&page).2[800 * 595 + 20], [0; 3]);
}

#[test]
fn a_page_that_draws_without_end_is_refused() {
    let begun = Instant::now();
    let endless = "0 0 9 9 re f ".repeat(1_000_001);
    let error = refusal(pdf(&[&endless], "", &[]), 1);
    assert!(matches!(error, Error::Broken { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    let many = drawn(pdf(&[&"0 0 9 9 re f ".repeat(2000)], "", &[]), 1, 300, "").unwrap();
    assert_eq!(many.width, 300);
}
