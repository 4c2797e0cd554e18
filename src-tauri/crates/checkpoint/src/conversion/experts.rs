//! Experts of published files as the stacks of mlx-lm's.

use std::collections::BTreeMap;

use super::rules::{Experts, Rules};
use super::target::{Change, Piece, Stored, Target};
use crate::error::{Error, Result};

/// Experts that come one by one, by the names of their stacks.
#[derive(Default)]
pub(super) struct Stacks(BTreeMap<String, BTreeMap<u64, Stored>>);

impl Stacks {
    /// The tensors that this one becomes, or `None` if it waits for the others of its stack; a tensor of no experts is
    /// given back.
    pub fn take(
        &mut self,
        rules: &Rules,
        name: &str,
        stored: Stored,
    ) -> Result<std::result::Result<Vec<Target>, Stored>> {
        let Some(experts) = rules.experts(name) else {
            return Ok(Err(stored));
        };
        if let Experts::One(stack, expert) = experts {
            self.0.entry(stack).or_default().insert(expert, stored);
            return Ok(Ok(Vec::new()));
        }
        let &[count, rows, columns] = &stored.shape[..] else {
            return Err(odd(name, &stored));
        };
        let one_of_each = |change: Change, from: u64, taken: u64| -> Vec<Piece> {
            let each = (0..count).map(|expert| stored.piece(expert * rows + from, taken, change));
            each.collect()
        };
        let target = |name: String, shape: [u64; 2], pieces| Target {
            name,
            shape: vec![count, shape[0], shape[1]],
            dtype: stored.dtype,
            pieces,
            quantization: None,
        };
        let targets = match experts {
            Experts::Down(down) if rules.turned => {
                vec![target(down, [columns, rows], one_of_each(Change::Turned, 0, rows))]
            }
            Experts::Down(down) => vec![target(down, [rows, columns], stored.whole(Change::None))],
            Experts::Joined(gate, up) if rules.turned && columns.is_multiple_of(2) => [(gate, false), (up, true)]
                .map(|(name, second)| {
                    target(
                        name,
                        [columns / 2, rows],
                        one_of_each(Change::TurnedHalf(second), 0, rows),
                    )
                })
                .into(),
            Experts::Joined(gate, up) if !rules.turned && rows.is_multiple_of(2) => [(gate, 0), (up, rows / 2)]
                .map(|(name, from)| target(name, [rows / 2, columns], one_of_each(Change::None, from, rows / 2)))
                .into(),
            Experts::Joined(..) | Experts::One(..) => return Err(odd(name, &stored)),
        };
        Ok(Ok(targets))
    }

    /// The stacks, of which none may lack an expert.
    pub fn finish(self) -> Result<Vec<Target>> {
        let stacks = self.0.into_iter().map(|(name, experts)| {
            let shape = experts
                .values()
                .next()
                .map(|first| first.shape.clone())
                .unwrap_or_default();
            let dtype = experts.values().next().map_or("F32", |first| first.dtype);
            let mut pieces = Vec::new();
            for (expected, (number, stored)) in experts.iter().enumerate() {
                if *number != expected as u64 {
                    return Err(Error::Incomplete(format!("expert {expected} of `{name}`")));
                }
                if stored.shape != shape || stored.dtype != dtype {
                    return Err(odd(&name, stored));
                }
                pieces.extend(stored.whole(Change::None));
            }
            let mut stacked = vec![experts.len() as u64];
            stacked.extend(shape);
            Ok(Target {
                name,
                shape: stacked,
                dtype,
                pieces,
                quantization: None,
            })
        });
        stacks.collect()
    }
}

fn odd(name: &str, stored: &Stored) -> Error {
    Error::Unsupported(format!("experts of the shape {:?} in `{name}`", stored.shape))
}
