use proptest::prelude::*;

use super::*;

/// [`NgramIndex::draft`] by looking everywhere.
fn looked_up(tokens: &[u32], count: usize) -> Option<Vec<u32>> {
    for n in (SHORTEST..=LONGEST).rev().filter(|n| *n < tokens.len()) {
        let last = &tokens[tokens.len() - n..];
        let before = (0..tokens.len() - n)
            .rev()
            .find(|start| &tokens[*start..start + n] == last);
        if let Some(start) = before {
            let mut text = tokens.to_vec();
            (0..count).for_each(|index| text.push(text[start + n + index]));
            return Some(text[tokens.len()..].to_vec());
        }
    }
    None
}

proptest! {
    #[test]
    fn the_index_finds_what_a_search_finds(
        alphabet in 1u32..8,
        noise in prop::collection::vec(any::<u32>(), 0..120),
        pieces in prop::collection::vec(1usize..30, 0..12),
        count in 1usize..12,
    ) {
        let tokens: Vec<u32> = noise.iter().map(|number| number % alphabet).collect();
        let (mut index, mut length) = (NgramIndex::default(), 0);
        for piece in pieces.into_iter().chain([tokens.len()]) {
            length = (length + piece).min(tokens.len());
            index.extend(&tokens[..length]);
            prop_assert_eq!(index.draft(&tokens[..length], count), looked_up(&tokens[..length], count));
        }
    }
}

#[test]
fn the_longest_match_wins_then_the_last() {
    let mut index = NgramIndex::default();
    let tokens = [1, 2, 3, 7, 9, 2, 3, 8, 5, 1, 2, 3];
    index.extend(&tokens);
    assert_eq!(
        index.draft(&tokens, 3).unwrap(),
        [7, 9, 2],
        "three tokens against the last two"
    );
    let tokens = [2, 3, 7, 5, 2, 3, 8, 6, 2, 3];
    let mut index = NgramIndex::default();
    index.extend(&tokens);
    assert_eq!(index.draft(&tokens, 2).unwrap(), [8, 6]);
    let tokens = [4, 6, 5, 6, 5];
    let mut index = NgramIndex::default();
    index.extend(&tokens);
    assert_eq!(
        index.draft(&tokens, 5).unwrap(),
        [6, 5, 6, 5, 6],
        "a draft goes on with itself"
    );
}

fn measured(step: u64, verified: [u64; 2]) -> Tuner {
    let mut tuner = Tuner::new(PromptLookup::Auto);
    tuner.record_step(Duration::from_millis(step));
    for (length, millis) in LENGTHS.into_iter().zip(verified) {
        // Kernels are compiled in the first.
        tuner.record_verified(length, Duration::from_secs(20));
        (1..TRIALS).for_each(|_| tuner.record_verified(length, Duration::from_millis(millis)));
    }
    tuner
}

#[test]
fn drafts_are_made_where_they_pay() {
    let repeated = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4];
    let drafted = |tuner: &Tuner| Drafts::new(true).next(&repeated, 100, tuner).map(|draft| draft.len());
    assert_eq!(
        drafted(&Tuner::new(PromptLookup::Auto)),
        None,
        "a step has to be measured first"
    );
    assert_eq!(drafted(&Tuner::new(PromptLookup::Off)), None);
    assert_eq!(drafted(&Tuner::new(PromptLookup::Always)), Some(3));
    assert_eq!(drafted(&measured(10, [12, 15])), Some(3));
    // A CPU without a fast product of several rows: 4 rows take as long as 4 steps.
    assert_eq!(drafted(&measured(10, [38, 75])), None);
    assert_eq!(Drafts::new(false).next(&repeated, 100, &measured(10, [12, 15])), None);
    // Two trials say nothing yet.
    let mut tuner = Tuner::new(PromptLookup::Auto);
    tuner.record_step(Duration::from_millis(10));
    (1..TRIALS).for_each(|_| tuner.record_verified(3, Duration::from_millis(40)));
    assert_eq!(drafted(&tuner), Some(3));
    tuner.record_verified(3, Duration::from_millis(40));
    assert_eq!(drafted(&tuner), None);
}

#[test]
fn drafts_grow_while_they_are_right_and_fit_what_may_come() {
    let (repeated, tuner) = ([1, 2, 3, 4, 1, 2, 3, 4], measured(10, [12, 15]));
    let mut drafts = Drafts::new(true);
    let length = |drafts: &mut Drafts, room| drafts.next(&repeated, room, &tuner).map(|draft| draft.len());
    assert_eq!((length(&mut drafts, 3), length(&mut drafts, 4)), (None, Some(3)));
    drafts.record(3, 3, 8, &tuner);
    assert_eq!(length(&mut drafts, 8), Some(7));
    assert_eq!(length(&mut drafts, 7), Some(3));
    drafts.record(3, 3, 8, &tuner);
    drafts.record(7, 4, 8, &tuner);
    assert_eq!(length(&mut drafts, 50), Some(7));
    drafts.record(7, 2, 8, &tuner);
    assert_eq!(length(&mut drafts, 50), Some(3));
    let usage = drafts.usage(40).unwrap();
    assert_eq!(
        (usage.draft_tokens, usage.accepted_draft_tokens, usage.decode_steps),
        (20, 12, 28)
    );
    // A longer pass that does not pay.
    let tuner = measured(10, [12, 90]);
    drafts.record(3, 3, 8, &tuner);
    assert_eq!(drafts.next(&repeated, 50, &tuner).map(|draft| draft.len()), Some(3));
    assert_eq!(Drafts::new(true).usage(7), None);
}

#[test]
fn wrong_drafts_are_followed_by_longer_and_longer_pauses() {
    let tuner = measured(10, [15, 20]);
    let mut drafts = Drafts::new(true);
    let mut tokens: Vec<u32> = [1, 2, 3, 4].repeat(3);
    let mut tried = Vec::new();
    while tokens.len() < 1000 {
        if let Some(draft) = drafts.next(&tokens, 100, &tuner) {
            tried.push(tokens.len());
            drafts.record(draft.len(), 0, tokens.len(), &tuner);
        }
        tokens.push(tokens[tokens.len() - 4]);
    }
    let pauses: Vec<usize> = tried.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses[..6], [8, 16, 32, 64, 128, 256]);
    // One that pays ends that.
    tokens.extend(vec![0; 256]);
    let draft = drafts.next(&tokens, 100, &tuner).unwrap();
    drafts.record(draft.len(), draft.len(), tokens.len(), &tuner);
    assert!(drafts.next(&tokens, 100, &tuner).is_some());
    drafts.miss(tokens.len(), &tuner);
    assert_eq!(drafts.next(&tokens, 100, &tuner), None);
    drafts.end();
    tokens.extend(vec![0; 300]);
    assert_eq!(drafts.next(&tokens, 100, &tuner), None);
}

#[test]
fn no_draft_has_a_token_of_an_image() {
    let tuner = Tuner::new(PromptLookup::Always);
    let repeats = [1, 2, 3, 9, 9, 4, 5, 6, 7, 8, 1, 2, 3];
    let drafts = |images: &[u32]| Drafts::new(true).without(images.iter().copied().collect());
    assert_eq!(drafts(&[]).next(&repeats, 100, &tuner), Some(vec![9, 9, 4]));
    assert_eq!(drafts(&[9]).next(&repeats, 100, &tuner), None);
    assert_eq!(drafts(&[8]).next(&repeats, 100, &tuner), Some(vec![9, 9, 4]));
}
