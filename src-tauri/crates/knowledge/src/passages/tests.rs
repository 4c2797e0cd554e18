use proptest::prelude::*;

use super::*;

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn letters(text: &str) -> usize {
    text.chars().count()
}

/// About like a tokenizer: four bytes, and white space alone.
fn tokens(text: &str) -> usize {
    text.split_inclusive(char::is_whitespace)
        .map(|word| word.len().div_ceil(4))
        .sum()
}

fn size(most: usize, overlap: usize, count: &(dyn Fn(&str) -> usize + Sync)) -> Size<'_> {
    Size { most, overlap, count }
}

fn texts<'a>(text: &'a str, passages: &[Passage]) -> Vec<&'a str> {
    passages.iter().map(|passage| &text[passage.bytes.clone()]).collect()
}

/// Checks what holds for every text.
fn check(text: &str, form: Form, size: Size<'_>) -> Vec<Passage> {
    let passages = split(text, form, size);
    let mut covered = 0;
    let mut last = 0..0;
    for passage in &passages {
        let bytes = passage.bytes.clone();
        let piece = &text[bytes.clone()];
        assert!(!piece.trim().is_empty());
        assert!(bytes.start >= last.start && bytes.end > last.end, "{last:?} {bytes:?}");
        if bytes.start > covered {
            assert_eq!(text[covered..bytes.start].trim(), "");
        }
        assert!((size.count)(piece) <= size.most || letters(piece) == 1, "{piece:?}");
        assert!(!piece.contains(PAGE_BREAK));
        let before = text[..bytes.start].matches('\n').count() as u32 + 1;
        assert_eq!(passage.lines, (before, before + piece.matches('\n').count() as u32));
        let page = text[..bytes.start].matches(PAGE_BREAK).count() as u32 + 1;
        assert_eq!(passage.page, text.contains(PAGE_BREAK).then_some(page));
        covered = bytes.end;
        last = bytes;
    }
    assert_eq!(text[covered..].trim(), "");
    passages
}

#[test]
fn sections_stand_alone_and_know_their_headings() {
    let text = "# Tea\n\n## Install\n\nPour *water*.\n\nWait.\n\n```sh\nkettle on\n\nkettle off\n```\n\n## Use `it`\nDrink.\n\n[a]: http://b\n\nTea 2\n===\n";
    let passages = check(text, Form::Markdown, size(40, 0, &words));
    assert_eq!(
        texts(text, &passages),
        [
            "# Tea\n\n## Install\n\nPour *water*.\n\nWait.\n\n```sh\nkettle on\n\nkettle off\n```",
            "## Use `it`\nDrink.\n\n[a]: http://b",
            "Tea 2\n==="
        ]
    );
    let paths: Vec<String> = passages.iter().map(Passage::heading_path).collect();
    assert_eq!(paths, ["Tea › Install", "Tea › Use it", "Tea 2"]);
    assert_eq!(passages[1].lines, (15, 18));
}

#[test]
fn a_fence_stays_whole_if_it_fits() {
    let text = "One two three four five.\n\n```\na b c\n\nd e f\n```\n\nSix seven.\n";
    let passages = check(text, Form::Markdown, size(9, 4, &words));
    assert_eq!(
        texts(text, &passages),
        ["One two three four five.", "```\na b c\n\nd e f\n```", "Six seven."]
    );
}

#[test]
fn only_a_cut_paragraph_repeats_its_end() {
    let text = "One two three four. ".repeat(20);
    let passages = check(&text, Form::Prose, size(12, 5, &words));
    assert!(passages.len() > 5);
    for pair in passages.windows(2) {
        let repeated = &text[pair[1].bytes.start..pair[0].bytes.end];
        assert!(
            repeated.trim_end().ends_with("three four.") && words(repeated) <= 5,
            "{repeated:?}"
        );
    }
    let code = "fn a() {\n    b();\n}\n\nfn c() {\n    d();\n    e();\n    f();\n}\n";
    let passages = check(code, Form::Code, size(6, 3, &words));
    assert_eq!(
        texts(code, &passages),
        ["fn a() {\n    b();\n}", "fn c() {\n    d();\n    e();\n    f();", "}"]
    );
}

#[test]
fn pages_are_never_crossed() {
    let text = "a b\n\nc\u{c}d\n\u{c}\u{c}e";
    let passages = check(text, Form::Prose, size(100, 0, &words));
    let found: Vec<(&str, Option<u32>)> = passages
        .iter()
        .map(|passage| (&text[passage.bytes.clone()], passage.page))
        .collect();
    assert_eq!(found, [("a b\n\nc", Some(1)), ("d", Some(2)), ("e", Some(4))]);
}

#[test]
fn sentences_without_spaces_are_cut_at_their_ends() {
    let text = "東京は日本の首都です。人口は千四百万人です。とても大きい都市です。";
    let passages = check(text, Form::Prose, size(24, 0, &letters));
    assert_eq!(
        texts(text, &passages),
        ["東京は日本の首都です。人口は千四百万人です。", "とても大きい都市です。"]
    );
}

#[test]
fn nothing_comes_of_nothing() {
    for text in ["", " ", "\n\n\t\n", "\u{c}\u{c}"] {
        for form in [Form::Markdown, Form::Prose, Form::Code] {
            assert!(split(text, form, size(10, 2, &tokens)).is_empty());
        }
    }
}

#[test]
fn long_texts_of_one_kind_take_no_longer_than_their_length() {
    let begun = std::time::Instant::now();
    let megabytes = |pattern: &str| pattern.repeat(1_000_000 / pattern.len());
    for text in [
        "x".repeat(5_000_000),
        "word ".repeat(1_000_000),
        megabytes(" "),
        megabytes(" ") + "x",
        megabytes("京"),
        megabytes("a\n\n"),
        megabytes("# a\n"),
        megabytes("> "),
        megabytes("- a\n"),
    ] {
        for form in [Form::Markdown, Form::Prose, Form::Code] {
            check_fast(&text, form);
        }
    }
    assert!(begun.elapsed().as_secs() < 240, "{:?}", begun.elapsed());
}

/// Checks a long text without counting its lines again and again.
fn check_fast(text: &str, form: Form) {
    let size = size(400, 50, &tokens);
    let mut covered = 0;
    let passages = split(text, form, size);
    for passage in &passages {
        let bytes = passage.bytes.clone();
        assert!(bytes.start <= covered || text[covered..bytes.start].trim().is_empty());
        assert!(tokens(&text[bytes.clone()]) <= 400);
        covered = bytes.end;
    }
    assert!(text[covered..].trim().is_empty());
}

proptest! {
    #[test]
    fn passages_are_the_whole_text(
        text in "([a-z]{1,9}[ .,]{1,2}|\n|\n\n|# [a-z]{1,5}\n|```\n|- [a-z]{1,3}\n|京|。|é|e\u{301}|👍🏽|\u{c}|\t|   |[|]|\\||> |\\PC){0,120}",
        most in 1_usize..60,
        overlap in 0_usize..40,
        form in prop::sample::select(vec![Form::Markdown, Form::Prose, Form::Code]),
        count in 0_usize..3,
    ) {
        let count: &(dyn Fn(&str) -> usize + Sync) = match count {
            0 => &letters,
            1 => &words,
            _ => &tokens,
        };
        check(&text, form, size(most, overlap, count));
    }
}
