//! Images as windows show them: unfolded before they are kept, small and whole, and as files that leave.

use protocol::ErrorCode;

use crate::images::png;
use crate::Harness;

/// A BMP of two by one pixels.
fn bmp() -> Vec<u8> {
    let header: [u32; 13] = [62, 0, 54, 40, 2, 1, 1 | 24 << 16, 0, 8, 2835, 2835, 0, 0];
    let numbers = header.iter().flat_map(|number| number.to_le_bytes());
    b"BM"
        .iter()
        .copied()
        .chain(numbers)
        .chain([0, 0, 255, 0, 255, 0, 0, 0])
        .collect()
}

#[tokio::test]
async fn an_image_is_read_to_its_end_before_it_is_kept() {
    let harness = Harness::new().await;
    let whole = png();
    let added = harness.chat.files().add_image(whole.clone()).await.unwrap();
    assert_eq!(
        (added.width, added.height, added.media_type.as_str(), added.animated),
        (1, 1, "image/png", false)
    );
    assert_eq!(
        harness.chat.files().add_image(whole.clone()).await.unwrap(),
        added,
        "the same one is kept once"
    );
    assert_eq!(
        harness.chat.files().attachments_size().await.unwrap(),
        whole.len() as u64
    );
    // The header alone would pass.
    let broken = harness
        .chat
        .files()
        .add_image(whole[..whole.len() - 20].to_vec())
        .await
        .unwrap_err();
    assert_eq!(broken.code, ErrorCode::ImageBroken);
    assert_eq!(
        harness.chat.files().attachments_size().await.unwrap(),
        whole.len() as u64
    );
}

#[tokio::test]
async fn every_image_has_a_form_that_every_web_view_shows() {
    let harness = Harness::new().await;
    let jpeg = [0xff, 0xd8, 0xff];
    for (file, whole_type) in [(png(), "image/png"), (bmp(), "image/jpeg")] {
        let added = harness.chat.files().add_image(file.clone()).await.unwrap();
        // Twice, because the second comes from memory.
        for _ in 0..2 {
            let preview = harness.chat.files().preview(&added.attachment).await.unwrap();
            assert_eq!(preview.media_type, "image/jpeg");
            assert!(preview.bytes.starts_with(&jpeg));
        }
        let whole = harness.chat.files().whole_image(&added.attachment).await.unwrap();
        assert_eq!(whole.media_type, whole_type);
        assert_eq!(whole.bytes.starts_with(&jpeg), whole_type == "image/jpeg");
    }
    for strange in ["0".repeat(64).as_str(), "../history.sqlite", ""] {
        assert_eq!(
            harness.chat.files().preview(strange).await.unwrap_err().code,
            ErrorCode::NotFound
        );
        assert_eq!(
            harness.chat.files().whole_image(strange).await.unwrap_err().code,
            ErrorCode::NotFound
        );
    }
}

#[tokio::test]
async fn a_file_that_leaves_says_neither_place_nor_camera() {
    let harness = Harness::new().await;
    let added = harness.chat.files().add_image(png()).await.unwrap();
    let says = |bytes: &[u8]| bytes.windows(6).any(|word| word == b"Camera");
    let whole = harness.chat.files().whole_image(&added.attachment).await.unwrap();
    assert!(says(&whole.bytes), "the original is kept");
    let file = harness
        .chat
        .files()
        .image_file(&added.attachment, "A cat, asleep.HEIC")
        .await
        .unwrap();
    assert_eq!(file.name, "A-cat-asleep.png");
    assert!(!says(&file.bytes) && file.bytes.starts_with(b"\x89PNG") && file.icon.starts_with(&[0xff, 0xd8]));
}
