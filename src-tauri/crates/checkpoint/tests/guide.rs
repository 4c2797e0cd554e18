//! The guide `docs/adding-a-model.md` quotes code that is compiled or run.

const GUIDE: &str = include_str!("../../../../docs/adding-a-model.md");
const FAMILY: &str = include_str!("../src/families/olmo.rs");
const SHAPES: &str = include_str!("../../../../tests/oracle/shapes.py");
const VARIANTS: &str = include_str!("../../../../tests/oracle/variants.py");

/// The guide's code blocks of a language, in order.
fn blocks(language: &str) -> Vec<&'static str> {
    let after = |block: &'static str| block.strip_prefix(language)?.strip_prefix('\n');
    GUIDE.split("```").filter_map(after).collect()
}

#[test]
fn the_guide_shows_the_code_of_its_example() {
    let code = blocks("rust");
    assert_eq!(code.len(), 1, "one block of Rust code");
    for item in code[0].split("\n\n") {
        assert!(FAMILY.contains(item.trim_end()), "olmo.rs has no\n{item}");
    }
}

#[test]
fn the_guide_shows_the_rows_of_its_example() {
    let code = blocks("python");
    let [shape, variants] = code[..] else {
        panic!("the guide has {} blocks of Python code instead of two", code.len());
    };
    assert!(SHAPES.contains(shape), "shapes.py has no\n{shape}");
    assert!(VARIANTS.contains(variants), "variants.py has no\n{variants}");
}
