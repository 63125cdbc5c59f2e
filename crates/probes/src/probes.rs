//! The probes by name: a new one is its own file and its lines here.

mod null_call;
mod read_byte;
mod write_byte;

use crate::probe::Probe;

/// Every probe there is, in the order of the tables.
#[rustfmt::skip]
pub const PROBES: &[&Probe] = &[
    &null_call::PROBE,
    &read_byte::PROBE,
    &write_byte::PROBE,
];
