use std::time::Duration;

use super::tuner::TRIALS;
use super::*;

fn tuner(mode: Drafting) -> Tuner {
    Tuner::new(mode, mode)
}

/// The looked up draft that comes next.
fn next(drafts: &mut Drafts, tokens: &[u32], room: usize, tuner: &Tuner) -> Option<Vec<u32>> {
    match drafts.next(tokens, room, tuner, false)? {
        NextDraft::LookedUp(draft) => Some(draft),
        NextDraft::ByModel(_) => panic!("there is no draft model"),
    }
}

fn measured(step: u64, verified: [u64; 2]) -> Tuner {
    let mut tuner = tuner(Drafting::Auto);
    tuner.record_step(Duration::from_millis(step));
    for (length, millis) in LENGTHS.into_iter().zip(verified) {
        // Kernels are compiled in the first.
        tuner.record_verified(Drafter::Lookup, length, Duration::from_secs(20));
        (1..TRIALS).for_each(|_| tuner.record_verified(Drafter::Lookup, length, Duration::from_millis(millis)));
    }
    tuner
}

#[test]
fn drafts_are_made_where_they_pay() {
    let repeated = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4];
    let drafted = |tuner: &Tuner| next(&mut Drafts::new(true), &repeated, 100, tuner).map(|draft| draft.len());
    assert_eq!(drafted(&tuner(Drafting::Auto)), None, "a step has to be measured first");
    assert_eq!(drafted(&tuner(Drafting::Off)), None);
    assert_eq!(drafted(&tuner(Drafting::Always)), Some(3));
    assert_eq!(drafted(&measured(10, [12, 15])), Some(3));
    // A CPU without a fast product of several rows: 4 rows take as long as 4 steps.
    assert_eq!(drafted(&measured(10, [38, 75])), None);
    assert_eq!(
        next(&mut Drafts::new(false), &repeated, 100, &measured(10, [12, 15])),
        None
    );
    // Two trials say nothing yet.
    let mut tuner = tuner(Drafting::Auto);
    tuner.record_step(Duration::from_millis(10));
    (1..TRIALS).for_each(|_| tuner.record_verified(Drafter::Lookup, 3, Duration::from_millis(40)));
    assert_eq!(drafted(&tuner), Some(3));
    tuner.record_verified(Drafter::Lookup, 3, Duration::from_millis(40));
    assert_eq!(drafted(&tuner), None);
}

#[test]
fn drafts_grow_while_they_are_right_and_fit_what_may_come() {
    let (repeated, tuner) = ([1, 2, 3, 4, 1, 2, 3, 4], measured(10, [12, 15]));
    let mut drafts = Drafts::new(true);
    let length = |drafts: &mut Drafts, room| next(drafts, &repeated, room, &tuner).map(|draft| draft.len());
    assert_eq!((length(&mut drafts, 3), length(&mut drafts, 4)), (None, Some(3)));
    drafts.record(Drafter::Lookup, 3, 3, 8, &tuner);
    assert_eq!(length(&mut drafts, 8), Some(7));
    assert_eq!(length(&mut drafts, 7), Some(3));
    drafts.record(Drafter::Lookup, 3, 3, 8, &tuner);
    drafts.record(Drafter::Lookup, 7, 4, 8, &tuner);
    assert_eq!(length(&mut drafts, 50), Some(7));
    drafts.record(Drafter::Lookup, 7, 2, 8, &tuner);
    assert_eq!(length(&mut drafts, 50), Some(3));
    let usage = drafts.usage(40).unwrap();
    assert_eq!(
        (usage.draft_tokens, usage.accepted_draft_tokens, usage.decode_steps),
        (20, 12, 28)
    );
    // A longer pass that does not pay.
    let tuner = measured(10, [12, 90]);
    drafts.record(Drafter::Lookup, 3, 3, 8, &tuner);
    assert_eq!(
        next(&mut drafts, &repeated, 50, &tuner).map(|draft| draft.len()),
        Some(3)
    );
    assert_eq!(Drafts::new(true).usage(7), None);
}

#[test]
fn wrong_drafts_are_followed_by_longer_and_longer_pauses() {
    let tuner = measured(10, [15, 20]);
    let mut drafts = Drafts::new(true);
    let mut tokens: Vec<u32> = [1, 2, 3, 4].repeat(3);
    let mut tried = Vec::new();
    while tokens.len() < 1000 {
        if let Some(draft) = next(&mut drafts, &tokens, 100, &tuner) {
            tried.push(tokens.len());
            drafts.record(Drafter::Lookup, draft.len(), 0, tokens.len(), &tuner);
        }
        tokens.push(tokens[tokens.len() - 4]);
    }
    let pauses: Vec<usize> = tried.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses[..6], [8, 16, 32, 64, 128, 256]);
    // One that pays ends that.
    tokens.extend(vec![0; 256]);
    let draft = next(&mut drafts, &tokens, 100, &tuner).unwrap();
    drafts.record(Drafter::Lookup, draft.len(), draft.len(), tokens.len(), &tuner);
    assert!(next(&mut drafts, &tokens, 100, &tuner).is_some());
    drafts.miss(tokens.len(), &tuner);
    assert_eq!(next(&mut drafts, &tokens, 100, &tuner), None);
    drafts.end();
    tokens.extend(vec![0; 300]);
    assert_eq!(next(&mut drafts, &tokens, 100, &tuner), None);
}

#[test]
fn no_draft_has_a_token_of_an_image() {
    let tuner = tuner(Drafting::Always);
    let repeats = [1, 2, 3, 9, 9, 4, 5, 6, 7, 8, 1, 2, 3];
    let drafts = |images: &[u32]| Drafts::new(true).without(images.iter().copied().collect());
    assert_eq!(next(&mut drafts(&[]), &repeats, 100, &tuner), Some(vec![9, 9, 4]));
    assert_eq!(next(&mut drafts(&[9]), &repeats, 100, &tuner), None);
    assert_eq!(next(&mut drafts(&[8]), &repeats, 100, &tuner), Some(vec![9, 9, 4]));
}

#[test]
fn a_draft_model_drafts_where_nothing_repeats_itself() {
    let (text, repeated) = ([1, 2, 3, 4, 5], [1, 2, 3, 4, 1, 2, 3]);
    let mut tuner = measured(10, [12, 15]);
    let mut drafts = Drafts::new(true);
    assert_eq!(
        drafts.next(&text, 100, &tuner, false),
        None,
        "it has not read the text yet"
    );
    assert_eq!(drafts.next(&text, 100, &tuner, true), Some(NextDraft::ByModel(3)));
    let looked_up = drafts.next(&repeated, 100, &tuner, true).unwrap();
    assert_eq!(
        (looked_up.drafter(), &looked_up),
        (Drafter::Lookup, &NextDraft::LookedUp(vec![4, 1, 2]))
    );
    // The success of each counts for itself.
    drafts.record(Drafter::Model, 3, 3, 8, &tuner);
    assert_eq!(drafts.next(&text, 100, &tuner, true), Some(NextDraft::ByModel(7)));
    drafts.record(Drafter::Model, 7, 0, 5, &tuner);
    assert_eq!(
        drafts.next(&text, 100, &tuner, true),
        None,
        "a wrong one is followed by a pause"
    );
    let mut drafts = Drafts::new(true);
    // Its own time counts, too: this one takes as long to say a token as the model itself.
    (0..TRIALS).for_each(|_| tuner.record_verified(Drafter::Model, 3, Duration::from_millis(41)));
    assert_eq!(drafts.next(&text, 100, &tuner, true), None);
    tuner.forget_draft_model();
    assert_eq!(drafts.next(&text, 100, &tuner, true), Some(NextDraft::ByModel(3)));
}
