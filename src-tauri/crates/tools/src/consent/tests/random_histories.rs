//! Twenty thousand random histories of two processes, beside a list of what persons consented to: no call runs that the
//! list does not cover.

use api::{CallEffects, ConsentExtent};
use std::collections::HashSet;

use proptest::prelude::*;
use proptest::test_runner::RngAlgorithm;
use serde_json::{json, Value};

use super::super::*;
use crate::catalog::{Binding, Tool, ToolRef};

const TOOLS: usize = 3;
const CHATS: usize = 2;
const HOSTS: [&str; 2] = ["one.example", "two.example"];

/// Something that happens.
#[derive(Debug, Clone)]
enum Step {
    /// A live answer calls.
    Call {
        process: usize,
        chat: usize,
        tool: usize,
        arguments: u8,
        rule: u8,
    },
    /// A person approves one of the calls that wait, or quotes a hash that is not its own.
    Approve {
        process: usize,
        which: usize,
        extent: u8,
        wrong: u8,
        edited: bool,
    },
    /// The last approval comes again.
    Replay {
        process: usize,
    },
    Refuse {
        process: usize,
        which: usize,
    },
    /// A server changes what a tool is.
    Change {
        tool: usize,
    },
    Revoke {
        process: usize,
        tool: usize,
        /// One of the hosts, or all.
        host: usize,
    },
    NewTurn {
        process: usize,
        chat: usize,
    },
    /// A page of the web was read.
    Strangers {
        process: usize,
        chat: usize,
    },
    /// A process reads the sealed grants again.
    Read {
        process: usize,
    },
    /// Another program puts an older file in place of the sealed grants.
    Restore {
        version: usize,
    },
    /// Another program writes a grant.
    Forge {
        tool: usize,
    },
    Stop {
        process: usize,
        which: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (process, chat, tool) = (0..2usize, 0..CHATS, 0..TOOLS);
    let step = prop_oneof![
        6 => (process.clone(), chat.clone(), tool.clone(), 0..3u8, 0..12u8)
            .prop_map(|(process, chat, tool, arguments, rule)| Step::Call { process, chat, tool, arguments, rule }),
        5 => (process.clone(), 0..4usize, 0..3u8, 0..6u8, any::<bool>())
            .prop_map(|(process, which, extent, wrong, edited)| {
                Step::Approve { process, which, extent, wrong, edited }
            }),
        1 => process.clone().prop_map(|process| Step::Replay { process }),
        1 => (process.clone(), 0..4usize).prop_map(|(process, which)| Step::Refuse { process, which }),
        1 => tool.clone().prop_map(|tool| Step::Change { tool }),
        1 => (process.clone(), tool.clone(), 0..3usize)
            .prop_map(|(process, tool, host)| Step::Revoke { process, tool, host }),
        1 => (process.clone(), chat.clone()).prop_map(|(process, chat)| Step::NewTurn { process, chat }),
        1 => (process.clone(), chat).prop_map(|(process, chat)| Step::Strangers { process, chat }),
        2 => process.clone().prop_map(|process| Step::Read { process }),
        1 => (0..8usize).prop_map(|version| Step::Restore { version }),
        1 => tool.prop_map(|tool| Step::Forge { tool }),
        1 => (process, 0..4usize).prop_map(|(process, which)| Step::Stop { process, which }),
    ];
    prop::collection::vec(step, 1..60)
}

/// A consent of a person, as it is remembered beside.
struct Said {
    process: usize,
    chat: String,
    tool: ToolRef,
    binding: Binding,
    host: Option<String>,
    extent: ConsentExtent,
    at: usize,
    revoked: bool,
}

#[derive(Default)]
struct World {
    processes: [Consents; 2],
    turns: [[TurnCalls; CHATS]; 2],
    /// When words of strangers came in the turn.
    strangers: [[Option<usize>; CHATS]; 2],
    versions: [u32; TOOLS],
    key: u8,
    file: Vec<SealedGrant>,
    older: Vec<Vec<SealedGrant>>,
    said: Vec<Said>,
    ran: HashSet<CallKey>,
    last: Option<Approval>,
    now: usize,
}

impl World {
    /// The tool, and the binding of a call with these arguments: the second one reaches one of two hosts.
    fn call_of(&self, index: usize, arguments: u8) -> (ToolRef, Binding, Option<String>, CallEffects) {
        let (tool, binding, effects) = self.tool(index);
        let host = (index == 1).then(|| HOSTS[usize::from(arguments) % 2].to_owned());
        (tool, binding.for_host(host.as_deref()), host, effects)
    }

    fn tool(&self, index: usize) -> (ToolRef, Binding, CallEffects) {
        let effects = CallEffects {
            read_only: index == 0,
            destructive: index == 2,
            open_world: index == 1,
        };
        let tool = Tool {
            name: format!("tool{index}"),
            title: None,
            description: format!("It does {}.", self.versions[index]),
            parameters: json!({ "type": "object" }),
            effects,
        };
        let id = ToolRef {
            server: "server".to_owned(),
            tool: tool.name.clone(),
        };
        (id, Binding::of(&json!({ "command": "server" }), &tool), effects)
    }

    fn seal_key(&self) -> SealKey {
        SealKey::new([self.key; 32])
    }

    fn store(&mut self, process: usize) {
        let key = self.seal_key();
        let grants = self.processes[process].always();
        self.older.push(std::mem::take(&mut self.file));
        self.file = grants.iter().map(|grant| SealedGrant::seal(grant, &key)).collect();
    }

    fn read(&mut self, process: usize) {
        let key = self.seal_key();
        let grants: Vec<Grant> = self.file.iter().filter_map(|sealed| sealed.open(&key)).collect();
        self.processes[process].set_always(grants);
    }

    fn nth(&self, process: usize, which: usize) -> Option<Pending> {
        self.processes[process].waiting().nth(which).cloned()
    }

    /// A call may run: it is named once, and a consent covers it.
    fn check(&mut self, process: usize, permit: &Permit, approved: bool) {
        let call = permit.call();
        assert!(self.ran.insert(call.key.clone()), "{:?} ran twice", call.key);
        if approved {
            return;
        }
        let chat = call.chat.parse::<usize>().unwrap();
        let strangers = self.strangers[process][chat].filter(|_| call.effects.has_side_effects());
        let covered = self.said.iter().any(|said| {
            let reaches = match said.extent {
                ConsentExtent::Once => false,
                ConsentExtent::Chat => said.process == process && said.chat == call.chat,
                ConsentExtent::Always => true,
            };
            reaches
                && !said.revoked
                && (&said.tool, said.binding) == (&call.tool, call.binding)
                && strangers.is_none_or(|strangers| said.at > strangers)
        });
        assert!(covered, "nobody consented to {call:?}");
    }

    fn take(&mut self, step: Step) {
        self.now += 1;
        match step {
            Step::Call {
                process,
                chat,
                tool,
                arguments,
                rule,
            } => {
                let (tool, binding, host, effects) = self.call_of(tool, arguments);
                let call = LiveCall {
                    chat: chat.to_string(),
                    key: CallKey {
                        answer: format!("{process}-{chat}"),
                        call: self.now.to_string(),
                    },
                    tool,
                    binding,
                    host,
                    effects,
                    arguments: json!({ "n": arguments }),
                };
                let (tool, server) = match rule {
                    0 => (Some(Rule::Deny), None),
                    1 => (Some(Rule::Ask), None),
                    2 => (None, Some(Rule::Deny)),
                    3 => (None, Some(Rule::Ask)),
                    _ => (None, None),
                };
                let turn = &mut self.turns[process][chat];
                let verdict = self.processes[process].request(call, Rules { tool, server }, turn);
                match verdict {
                    Verdict::Run(permit) => {
                        assert!(!matches!(rule, 0..=2), "a rule was passed by");
                        self.check(process, &permit, false);
                    }
                    Verdict::Wait(_) => assert!(!matches!(rule, 0 | 2)),
                    Verdict::Refused(_) => {}
                }
            }
            Step::Approve {
                process,
                which,
                extent,
                wrong,
                edited,
            } => {
                let Some(pending) = self.nth(process, which) else {
                    return;
                };
                let mut call = pending.call().clone();
                match wrong {
                    0 => call.arguments = json!({ "n": 99 }),
                    1 => call.tool.tool.push('x'),
                    2 => call.chat.push('x'),
                    _ => {}
                }
                let approval = Approval {
                    key: pending.call().key.clone(),
                    hash: CallHash::of(&call),
                    extent: [ConsentExtent::Once, ConsentExtent::Chat, ConsentExtent::Always][usize::from(extent)],
                    arguments: edited.then(|| json!({ "n": "written" })),
                };
                self.approve(process, approval, wrong <= 2);
            }
            Step::Replay { process } => {
                if let Some(approval) = self.last.clone() {
                    let waits = self.processes[process]
                        .waiting()
                        .any(|pending| pending.call().key == approval.key);
                    assert!(!waits);
                    self.approve(process, approval, true);
                }
            }
            Step::Refuse { process, which } => {
                let Some(pending) = self.nth(process, which) else {
                    return;
                };
                let key = pending.call().key.clone();
                let refused = self.processes[process].refuse(&key, pending.hash(), "no".to_owned());
                assert_eq!(refused, Ok(Denial::Person("no".to_owned())));
                assert!(self.ran.insert(key));
            }
            Step::Change { tool } => self.versions[tool] += 1,
            Step::Revoke { process, tool, host } => {
                self.read(process);
                let (tool, ..) = self.tool(tool);
                let host = HOSTS.get(host).copied();
                self.processes[process].revoke(&tool, host);
                // A new key, so that no older file has a grant that counts. The other process reads before it decides.
                self.key = self.key.wrapping_add(1);
                self.store(process);
                self.read(1 - process);
                for said in self.said.iter_mut().filter(|said| said.tool == tool) {
                    let meant = host.is_none() || said.host.as_deref() == host;
                    said.revoked |= match said.extent {
                        ConsentExtent::Always => meant,
                        ConsentExtent::Once | ConsentExtent::Chat => said.process == process,
                    };
                }
            }
            Step::NewTurn { process, chat } => {
                self.turns[process][chat] = TurnCalls::default();
                self.strangers[process][chat] = None;
            }
            Step::Strangers { process, chat } => {
                self.turns[process][chat].note_untrusted_result();
                self.strangers[process][chat] = Some(self.now);
            }
            Step::Read { process } => self.read(process),
            Step::Restore { version } => {
                if let Some(older) = self.older.get(version).cloned() {
                    self.file = older;
                }
            }
            Step::Forge { tool } => {
                let (tool, binding, _) = self.tool(tool);
                let grant = Grant {
                    tool,
                    binding,
                    host: None,
                    granted_at: 0,
                };
                self.file.push(SealedGrant::seal(&grant, &SealKey::new([0xFF; 32])));
            }
            Step::Stop { process, which } => {
                let Some(pending) = self.nth(process, which) else {
                    return;
                };
                let answer = pending.call().key.answer.clone();
                for call in self.processes[process].withdraw(&answer) {
                    let answer = answer.clone();
                    assert!(self.ran.insert(CallKey { answer, call }));
                }
            }
        }
    }

    fn approve(&mut self, process: usize, approval: Approval, must_fail: bool) {
        let waiting = self.processes[process]
            .waiting()
            .find(|pending| pending.call().key == approval.key)
            .cloned();
        let chat = waiting
            .as_ref()
            .map_or(0, |pending| pending.call().chat.parse().unwrap());
        let (turn, at) = (&mut self.turns[process][chat], self.now as i64);
        let permit = match self.processes[process].approve(approval.clone(), turn, at) {
            Ok(permit) => permit,
            Err(_) => {
                assert!(must_fail, "a person's consent was refused: {approval:?}");
                return;
            }
        };
        assert!(!must_fail, "{approval:?} counted");
        let shown = waiting.unwrap();
        let expected: &Value = approval.arguments.as_ref().unwrap_or(&shown.call().arguments);
        assert_eq!(&permit.call().arguments, expected);
        assert_eq!(permit.call().tool, shown.call().tool);
        self.check(process, &permit, true);
        let call = shown.call();
        self.said.push(Said {
            process,
            chat: call.chat.clone(),
            tool: call.tool.clone(),
            binding: call.binding,
            host: call.host.clone(),
            extent: approval.extent,
            at: self.now,
            revoked: false,
        });
        if approval.extent == ConsentExtent::Always {
            self.store(process);
        }
        self.last = Some(approval);
    }
}

proptest! {
    // The default generator is written for secrets, and takes most of the time.
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        rng_algorithm: RngAlgorithm::XorShift,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_call_runs_without_a_consent_that_covers_it(steps in steps()) {
        let mut world = World::default();
        for step in steps {
            world.take(step);
        }
    }
}
