//! Probe `mmap`: memory from the kernel and back.

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::mapping::{Mapping, page_size};
use crate::probe::{Class, Metric, Opened, Parameter, Placement, Probe, Row, timed};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "mmap",
    class: Class::Memory,
    words: "mmap of anonymous memory, one write to each of its pages, munmap",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: Some(Parameter {
        words: "bytes that are mapped",
        default: 64 << 10,
        least: 1,
        most: 1 << 40,
    }),
    count: None,
    needs: "",
    rows: &[
        Row::plain("mmap_4k").of_size(4 << 10),
        Row::plain("mmap_64k").of_size(64 << 10),
        Row::plain("mmap_1m").of_size(1 << 20),
        Row::plain("mmap_16m").of_size(16 << 20),
    ],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    let page = page_size()?;
    let bytes = to_usize(asked.size);
    Ok(Opened::latency(move |count| {
        timed(count, || {
            let mapping = Mapping::new(bytes)?;
            mapping.touch_each(page, 0..bytes);
            mapping.give_back()
        })
    }))
}
