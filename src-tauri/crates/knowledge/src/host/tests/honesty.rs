//! A hundred folders made by chance: whatever is asked of them, how much was read is exact.

use std::collections::{BTreeMap, BTreeSet};

use super::{paragraphs, World};

/// Numbers by chance, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[tokio::test]
async fn the_extent_of_a_hundred_folders_is_exact() {
    let mut chance = Chance(7);
    let mut whole = 0;
    for folder in 0..100 {
        let world = World::new();
        let (files, empty, broken) = (1 + chance.below(7), chance.below(3), chance.below(3));
        for file in 0..files {
            let text = paragraphs(&format!("quay{file}"), 1 + chance.below(5) as usize);
            world.write(&format!("{}/{file}.txt", file % 3), &text);
        }
        (0..empty).for_each(|file| world.write(&format!("empty{file}.txt"), ""));
        (0..broken).for_each(|file| world.write(&format!("broken{file}.pdf"), "%PDF-1.7 and nothing else"));
        let id = world.added().await;
        // Counted apart from what is told: by the rows of the index.
        let index = world.knowledge.index().await.unwrap();
        let mut rows = BTreeMap::new();
        for passage in index.all_passages(&[&id], 0, u32::MAX).await.unwrap() {
            *rows.entry(passage.path.to_string_lossy().into_owned()).or_insert(0) += 1;
        }
        let all: u32 = rows.values().sum();
        assert_eq!(rows.len() as u64, files, "folder {folder}");
        let most = 200 + chance.below(6000) as u32;
        let mut given = Vec::new();
        for question in [
            "What is the code of quay0 number 1?",
            "quay1 number 0",
            "Boats and the moon",
        ] {
            let Some((new, coverage)) = world.ask(&id, question, most, &given).await else {
                assert_eq!(given.len() as u32, all, "nothing is given only after everything was");
                continue;
            };
            given.extend(new);
            let places: BTreeSet<_> = given.iter().map(|one| (&one.file, one.first_line, &one.text)).collect();
            assert_eq!(places.len(), given.len(), "nothing is given twice");
            let of: BTreeSet<_> = given.iter().map(|one| &one.file).collect();
            assert_eq!(
                (
                    coverage.passages,
                    coverage.of_passages,
                    coverage.files,
                    coverage.of_files,
                    coverage.unread
                ),
                (
                    given.len() as u32,
                    all,
                    of.len() as u32,
                    files as u32,
                    (empty + broken) as u32
                ),
                "folder {folder}, {question}"
            );
            whole += u32::from(coverage.is_whole());
        }
        let numbers: Vec<u32> = given.iter().map(|one| one.number).collect();
        assert!(numbers.iter().copied().eq(1..=given.len() as u32), "{numbers:?}");
    }
    assert!(
        (10..200).contains(&whole),
        "both kinds of folders are among them: {whole}"
    );
}
