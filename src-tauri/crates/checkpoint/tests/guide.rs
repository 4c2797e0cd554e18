//! The guide `docs/adding-a-model.md` shows code of this crate, as it is compiled.

const GUIDE: &str = include_str!("../../../../docs/adding-a-model.md");
const OLMO: &str = include_str!("../src/families/olmo.rs");

#[test]
fn the_guide_shows_the_code_of_its_example() {
    let code: Vec<&str> = GUIDE
        .split("```")
        .filter_map(|block| block.strip_prefix("rust\n"))
        .collect();
    assert_eq!(code.len(), 1, "one block of Rust code");
    for item in code[0].split("\n\n") {
        assert!(OLMO.contains(item.trim_end()), "olmo.rs has no\n{item}");
    }
}
