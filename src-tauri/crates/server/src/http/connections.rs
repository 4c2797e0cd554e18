//! The open connections, and which of them go when there are too many.
//!
//! A connection takes a place only once a request with its whole headers was let in. Until then it stands in a small
//! pool, out of which the oldest goes: so nobody can keep others out by opening connections and sending nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The maximum numbers of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    /// Connections with a request, of all peers.
    pub(crate) all: usize,
    /// Connections without one: of this computer, and as many of others.
    pub(crate) new: usize,
    /// Connections of one address of another computer.
    pub(crate) of_peer: usize,
    /// Places that other computers never get.
    pub(crate) kept_for_loopback: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No request was let in yet.
    New,
    /// A request is being answered.
    Busy,
    /// Between two requests.
    Idle,
}

#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    stage: Stage,
    /// The turn at which it was opened, or became idle.
    since: u64,
    evicted: CancellationToken,
}

#[derive(Debug, Default)]
struct Pool {
    entries: BTreeMap<u64, Entry>,
    turn: u64,
}

impl Pool {
    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    fn count(&self, counts: impl Fn(&Entry) -> bool) -> usize {
        self.entries.values().filter(|entry| counts(entry)).count()
    }

    /// Closes the oldest of these; `false` if there is none.
    fn evict(&mut self, goes: impl Fn(&Entry) -> bool) -> bool {
        let these = self.entries.iter().filter(|(_, entry)| goes(entry));
        let oldest = these.min_by_key(|(_, entry)| entry.since).map(|(id, _)| *id);
        let entry = oldest.and_then(|id| self.entries.remove(&id));
        entry.map(|entry| entry.evicted.cancel()).is_some()
    }

    /// Makes room for one more connection with a request; `false` if all others are being answered.
    fn make_room(&mut self, peer: IpAddr, places: Places) -> bool {
        let local = peer.is_loopback();
        let has_place = |entry: &Entry| entry.stage != Stage::New;
        let for_others = places.all.saturating_sub(places.kept_for_loopback);
        if !local && self.count(|entry| has_place(entry) && entry.peer == peer) >= places.of_peer {
            return false;
        }
        loop {
            let all = self.count(has_place);
            let others = self.count(|entry| has_place(entry) && !entry.peer.is_loopback());
            if all < places.all && (local || others < for_others) {
                return true;
            }
            // Other computers never end a connection of this one.
            if !self.evict(|entry| entry.stage == Stage::Idle && (local || !entry.peer.is_loopback())) {
                return false;
            }
        }
    }
}

/// The open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    places: Places,
    pool: Mutex<Pool>,
}

impl Connections {
    pub(crate) fn new(places: Places) -> Arc<Self> {
        let pool = Mutex::default();
        Arc::new(Self { places, pool })
    }

    /// Adds a connection that was just accepted. Older ones without a request go for it.
    pub(crate) fn open(self: &Arc<Self>, peer: IpAddr) -> Connection {
        let (peer, evicted) = (peer.to_canonical(), CancellationToken::new());
        let local = peer.is_loopback();
        let mut pool = self.lock();
        let of_peer = |entry: &Entry| entry.peer == peer;
        while !local && pool.count(of_peer) >= self.places.of_peer {
            if !pool.evict(|entry| of_peer(entry) && entry.stage != Stage::Busy) {
                break;
            }
        }
        let beside = |entry: &Entry| entry.stage == Stage::New && entry.peer.is_loopback() == local;
        while pool.count(beside) >= self.places.new && pool.evict(beside) {}
        let id = pool.next_turn();
        let entry = Entry {
            peer,
            stage: Stage::New,
            since: id,
            evicted: evicted.clone(),
        };
        pool.entries.insert(id, entry);
        drop(pool);
        Connection {
            all: self.clone(),
            id,
            evicted,
        }
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.lock().entries.len()
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        // Each change is a single one, so a poisoned pool is still right.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open connection. Dropping it gives its place away.
#[derive(Debug)]
pub(crate) struct Connection {
    all: Arc<Connections>,
    id: u64,
    /// Cancelled when it has to close.
    pub(crate) evicted: CancellationToken,
}

impl Connection {
    /// Begins a request, which is answered until the result is dropped; `None` if there is no place.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Busy> {
        let mut pool = self.all.lock();
        let entry = pool.entries.get(&self.id)?;
        let (peer, stage) = (entry.peer, entry.stage);
        if stage == Stage::New && !pool.make_room(peer, self.all.places) {
            return None;
        }
        pool.entries.get_mut(&self.id)?.stage = Stage::Busy;
        Some(Busy(self.clone()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.lock().entries.remove(&self.id);
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut pool = self.0.all.lock();
        let turn = pool.next_turn();
        if let Some(entry) = pool.entries.get_mut(&self.0.id) {
            (entry.stage, entry.since) = (Stage::Idle, turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn lan(host: u8) -> IpAddr {
        Ipv4Addr::new(192, 168, 1, host).into()
    }

    fn connections() -> Arc<Connections> {
        Connections::new(Places {
            all: 8,
            new: 3,
            of_peer: 4,
            kept_for_loopback: 2,
        })
    }

    fn open(all: &Arc<Connections>, peer: IpAddr) -> Arc<Connection> {
        Arc::new(all.open(peer))
    }

    #[test]
    fn the_oldest_without_a_request_goes_and_never_for_another_computer() {
        let all = connections();
        let own = open(&all, LOCAL);
        let others: Vec<_> = (0..5).map(|host| open(&all, lan(host))).collect();
        let evicted: Vec<bool> = others.iter().map(|other| other.evicted.is_cancelled()).collect();
        assert_eq!(evicted, [true, true, false, false, false]);
        assert!(!own.evicted.is_cancelled() && all.count() == 4);
        // One that was evicted is not let in any more.
        assert!(others[0].begin().is_none() && others[2].begin().is_some());
    }

    #[test]
    fn a_connection_with_a_request_stays_and_an_idle_one_makes_room() {
        let all = connections();
        let one = open(&all, LOCAL);
        let busy = one.begin().unwrap();
        let mut more = Vec::new();
        for _ in 0..7 {
            let next = open(&all, LOCAL);
            more.push((next.begin().unwrap(), next));
        }
        let waiting = open(&all, LOCAL);
        assert!(waiting.begin().is_none());
        for _ in 0..9 {
            open(&all, LOCAL);
        }
        assert!(!one.evicted.is_cancelled());
        drop(busy);
        let next = open(&all, LOCAL);
        assert!(next.begin().is_some());
        assert!(one.evicted.is_cancelled() && !more[0].1.evicted.is_cancelled());
    }

    #[test]
    fn a_connection_may_ask_again_and_again() {
        let all = connections();
        let one = open(&all, lan(1));
        for _ in 0..20 {
            assert!(one.begin().is_some());
        }
        assert_eq!(all.count(), 1);
        drop(one);
        assert_eq!(all.count(), 0);
    }

    #[test]
    fn a_computer_has_its_share_and_this_one_has_some_of_its_own() {
        let all = connections();
        let ask = |peer| {
            let connection = open(&all, peer);
            let busy = connection.begin();
            busy.map(|busy| (busy, connection))
        };
        let mapped = Ipv4Addr::new(192, 168, 1, 1).to_ipv6_mapped();
        let mut held: Vec<_> = (0..4).map(|_| ask(lan(1)).unwrap()).collect();
        assert!(ask(lan(1)).is_none() && ask(mapped.into()).is_none());
        held.extend((0..2).map(|_| ask(lan(2)).unwrap()));
        assert!(ask(lan(3)).is_none());
        held.extend((0..2).map(|_| ask(LOCAL).unwrap()));
        assert!(ask(LOCAL).is_none());
    }
}
