//! Rules of consents one by one; [`random_histories`] compares them with what persons said.

mod random_histories;

use api::{CallEffects, ConsentExtent};
use serde_json::{json, Value};

use super::*;
use crate::catalog::{Binding, Tool, ToolRef};

fn call(id: &str, effects: CallEffects) -> LiveCall {
    let tool = Tool {
        name: "write".to_owned(),
        title: None,
        description: String::new(),
        parameters: json!({}),
        effects,
    };
    LiveCall {
        chat: "chat".to_owned(),
        key: CallKey {
            answer: "answer".to_owned(),
            call: id.to_owned(),
        },
        tool: ToolRef {
            server: "server".to_owned(),
            tool: "write".to_owned(),
        },
        binding: Binding::of(&json!({}), &tool),
        host: None,
        effects,
        arguments: json!({ "id": id }),
    }
}

fn approve(consents: &mut Consents, turn: &mut TurnCalls, call: &LiveCall, extent: ConsentExtent) -> Permit {
    let approval = Approval {
        key: call.key.clone(),
        hash: CallHash::of(call),
        extent,
        arguments: None,
    };
    consents.approve(approval, turn, 1).unwrap()
}

#[test]
fn words_of_strangers_end_earlier_consents_to_what_reaches_out() {
    let (mut consents, mut turn) = (Consents::default(), TurnCalls::default());
    let first = call("1", CallEffects::UNKNOWN);
    assert!(matches!(
        consents.request(first.clone(), Rules::default(), &mut turn),
        Verdict::Wait(_)
    ));
    let _ = approve(&mut consents, &mut turn, &first, ConsentExtent::Always);
    let runs = |consents: &mut Consents, turn: &mut TurnCalls, id: &str| {
        matches!(
            consents.request(call(id, CallEffects::UNKNOWN), Rules::default(), turn),
            Verdict::Run(_)
        )
    };
    assert!(runs(&mut consents, &mut turn, "2"));
    turn.note_untrusted_result();
    assert!(!runs(&mut consents, &mut turn, "3"));
    assert_eq!(
        consents.waiting().next().map(Pending::reason),
        Some(WaitReason::UntrustedResult)
    );
    // A consent now was given after the words had come.
    let _ = approve(
        &mut consents,
        &mut turn,
        &call("3", CallEffects::UNKNOWN),
        ConsentExtent::Chat,
    );
    assert!(runs(&mut consents, &mut turn, "4"));
    turn.note_untrusted_result();
    assert!(!runs(&mut consents, &mut turn, "5"));
    // The next question begins anew.
    assert!(runs(&mut consents, &mut TurnCalls::default(), "6"));
}

#[test]
fn a_turn_that_runs_in_a_circle_is_ended_and_a_long_one_is_asked_about() {
    let mut consents = Consents::default();
    let mut turn = TurnCalls::default();
    let first = call("first", CallEffects::UNKNOWN);
    let _ = consents.request(first.clone(), Rules::default(), &mut turn);
    let _ = approve(&mut consents, &mut turn, &first, ConsentExtent::Always);
    let verdicts: Vec<Verdict> = (0..60)
        .map(|id| consents.request(call(&id.to_string(), CallEffects::UNKNOWN), Rules::default(), &mut turn))
        .collect();
    let ran = verdicts
        .iter()
        .take_while(|verdict| matches!(verdict, Verdict::Run(_)))
        .count();
    assert_eq!(ran, 24);
    assert!(verdicts[24..].iter().all(|verdict| matches!(verdict, Verdict::Wait(_))));
    assert_eq!(
        consents.waiting().next().map(Pending::reason),
        Some(WaitReason::ManyCalls)
    );

    let mut turn = TurnCalls::default();
    let verdicts = ["a", "b", "c"].map(|id| {
        let same = LiveCall {
            arguments: json!({ "x": 1, "y": 2 }),
            ..call(id, CallEffects::UNKNOWN)
        };
        consents.request(same, Rules::default(), &mut turn)
    });
    assert!(matches!(
        verdicts,
        [Verdict::Run(_), Verdict::Run(_), Verdict::Refused(Denial::Repeated)]
    ));
}

#[test]
fn a_consent_for_a_host_covers_no_other_and_is_taken_back_alone() {
    let mut consents = Consents::default();
    let at = |id: &str, host: &str| {
        let call = call(id, CallEffects::UNKNOWN);
        LiveCall {
            binding: call.binding.for_host(Some(host)),
            host: Some(host.to_owned()),
            ..call
        }
    };
    let runs = |consents: &mut Consents, call: LiveCall| {
        let verdict = consents.request(call, Rules::default(), &mut TurnCalls::default());
        matches!(verdict, Verdict::Run(_))
    };
    for (id, host) in [("1", "example.org"), ("2", "example.com")] {
        assert!(!runs(&mut consents, at(id, host)));
        let permit = approve(
            &mut consents,
            &mut TurnCalls::default(),
            &at(id, host),
            ConsentExtent::Always,
        );
        assert_eq!(permit.call().host.as_deref(), Some(host));
    }
    assert!(runs(&mut consents, at("3", "example.org")) && runs(&mut consents, at("4", "example.com")));
    for (id, other) in [("5", "example.org:8443"), ("6", "www.example.org"), ("7", "")] {
        assert!(!runs(&mut consents, at(id, other)), "{other}");
    }
    assert!(!runs(&mut consents, call("8", CallEffects::UNKNOWN)));
    let tool = call("1", CallEffects::UNKNOWN).tool;
    consents.revoke(&tool, Some("example.org"));
    assert!(!runs(&mut consents, at("9", "example.org")) && runs(&mut consents, at("10", "example.com")));
    consents.revoke(&tool, None);
    assert!(!runs(&mut consents, at("11", "example.com")) && consents.always().is_empty());
}

#[test]
fn a_seal_is_broken_by_every_change() {
    let grant = Grant {
        tool: call("1", CallEffects::UNKNOWN).tool,
        binding: call("1", CallEffects::UNKNOWN).binding,
        host: Some("example.org".to_owned()),
        granted_at: 5,
    };
    let key = SealKey::new([7; 32]);
    let sealed = serde_json::to_value(SealedGrant::seal(&grant, &key)).unwrap();
    let open = |value: &Value, key: &SealKey| serde_json::from_value::<SealedGrant>(value.clone()).unwrap().open(key);
    assert_eq!(open(&sealed, &key), Some(grant));
    assert_eq!(open(&sealed, &SealKey::new([8; 32])), None);
    for (field, other) in [
        ("server", json!("other")),
        ("tool", json!("other")),
        ("granted_at", json!(6)),
        ("host", json!("example.com")),
        ("host", json!(null)),
        ("binding", json!("00".repeat(32))),
        ("binding", json!("none")),
        ("seal", json!("00".repeat(32))),
        ("seal", json!("")),
    ] {
        let mut changed = sealed.clone();
        changed[field] = other;
        assert_eq!(open(&changed, &key), None, "{field}");
    }
}
