use proptest::prelude::*;

use super::*;

const TEA: [&str; 3] = [
    "Green tea is steeped at 80 °C for 2.5 minutes. In 2024, 1,500 tonnes were sold.",
    "The museum says: “The Café Central opened in 1876 and never closed.”",
    "東京の人口は1400万人です。",
];

fn verdicts(answer: &str) -> Vec<(usize, Verdict)> {
    let checked = check(answer, &TEA);
    checked
        .citations
        .into_iter()
        .map(|citation| (citation.passage, citation.verdict))
        .collect()
}

fn unsupported(words: &[&str]) -> Verdict {
    Verdict::Unsupported(words.iter().map(|&word| word.to_owned()).collect())
}

#[test]
fn true_sentences_are_supported() {
    use Verdict::{Supported, Unchecked};
    for (answer, expected) in [
        ("Steep it at 80 °C [1].", vec![(1, Supported)]),
        ("Steep it for 2.50 minutes. [1]", vec![(1, Supported)]),
        ("It was 1500 tonnes in 2024.[1]", vec![(1, Supported)]),
        ("It was 1.500 t [1][2].", vec![(1, Supported), (2, Supported)]),
        ("It \"opened in 1876 and never closed\" [2].", vec![(2, Supported)]),
        ("Das „Cafe central opened“ steht dort [2].", vec![(2, Supported)]),
        ("80 °C, and 1876 [1, 2].", vec![(1, Supported), (2, Supported)]),
        ("Tea is good [1].", vec![(1, Unchecked)]),
        ("1. Tea is good [1].", vec![(1, Unchecked)]),
        ("人口は1400万人です[3]。", vec![(3, Supported)]),
    ] {
        assert_eq!(verdicts(answer), expected, "{answer}");
    }
}

#[test]
fn planted_errors_are_found() {
    for (answer, expected) in [
        ("Steep it at 85 °C [1].", vec![(1, unsupported(&["85"]))]),
        ("Steep it at 8 °C [1].", vec![(1, unsupported(&["8"]))]),
        (
            "It was 15,000 tonnes in 2025 [1].",
            vec![(1, unsupported(&["15,000", "2025"]))],
        ),
        (
            "It \"opened in 1876 and soon closed\" [2].",
            vec![(2, unsupported(&["opened in 1876 and soon closed"]))],
        ),
        (
            "80 °C [2]. It opened 1876 [1].",
            vec![(2, unsupported(&["80"])), (1, unsupported(&["1876"]))],
        ),
        ("It opened in 1876 [4].", vec![(4, Verdict::Dangling)]),
        (
            "Tea [0] is [12].",
            vec![(0, Verdict::Dangling), (12, Verdict::Dangling)],
        ),
        (
            "Tea at 80 °C [1, 9].",
            vec![(1, Verdict::Supported), (9, Verdict::Dangling)],
        ),
    ] {
        assert_eq!(verdicts(answer), expected, "{answer}");
    }
}

#[test]
fn code_and_links_have_no_marks() {
    for answer in [
        "`a[1]` is code.",
        "```\nlist[2] = 5\n```",
        "```\nnever closed [1]",
        "A [1](http://a) link\n[2]: http://b\nand [x], [1.5], [], [1 of 2].",
    ] {
        assert_eq!(verdicts(answer), [], "{answer}");
    }
    assert_eq!(verdicts("`a` and [1] and `b`.").len(), 1);
    assert_eq!(verdicts("All [1-3].").len(), 3);
}

#[test]
fn sentences_that_claim_without_a_mark_are_told() {
    let answer = "It is good. It sells 99 tonnes. Steep it at 80 °C [1]. He said \"never ever\".";
    let checked = check(answer, &TEA);
    let unmarked: Vec<&str> = checked.unmarked.iter().map(|place| &answer[place.clone()]).collect();
    assert_eq!(unmarked, ["It sells 99 tonnes.", "He said \"never ever\"."]);
    assert_eq!(&answer[checked.citations[0].sentence.clone()], "Steep it at 80 °C [1].");
    assert_eq!(&answer[checked.citations[0].bytes.clone()], "[1]");
}

#[test]
fn hostile_answers_take_no_longer_than_their_length() {
    let begun = std::time::Instant::now();
    for pattern in [
        "[", "[1", "[1]", "`", "``` `", "\"", "1", "1.", "1,", ". ", "“", "[1].", "\n",
    ] {
        check(&pattern.repeat(200_000 / pattern.len()), &TEA);
    }
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

proptest! {
    #[test]
    fn places_are_those_of_the_answer(answer in "(\\[[0-9]{1,2}\\]|[a-z]{1,4}|[ .!\n\"“”「」`é京。]|[0-9]{1,3}|[,-]){0,60}") {
        let checked = check(&answer, &TEA);
        let mut last = 0;
        for citation in &checked.citations {
            prop_assert!(answer[citation.bytes.clone()].starts_with('['));
            prop_assert!(citation.bytes.start >= last);
            last = citation.bytes.start;
            prop_assert!(citation.sentence.start <= citation.bytes.start);
            prop_assert!(citation.bytes.end <= citation.sentence.end);
            prop_assert_eq!(citation.verdict == Verdict::Dangling, !(1..=3).contains(&citation.passage));
        }
        for place in &checked.unmarked {
            prop_assert!(!answer[place.clone()].is_empty());
        }
    }
}

#[test]
fn a_time_is_one_number() {
    let passage = "High water is at 12:40 and at 0:55.";
    let verdict = |answer: &str| check(answer, &[passage]).citations[0].verdict.clone();
    assert_eq!(verdict("It is at 12:40 [1]."), Verdict::Supported);
    assert_eq!(
        verdict("It is at 12:55 [1]."),
        Verdict::Unsupported(vec!["12:55".into()])
    );
}
