//! A model hub on loopback, for tests: the real one's shapes, and its faults on demand.
