//! Writes both conditions as two processes of a profile for <https://profiler.firefox.com>.

use std::io;

use fxprof_processed_profile::{
    CategoryColor, CategoryPairHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile,
    ReferenceTimestamp, SamplingInterval, Timestamp, WeightType,
};
use serde_json::Value;

use equipoise_reporting::problem::Problem;

use crate::pictures::{Condition, Conditions};
use crate::stacks::folded::Kind;

/// Writes the profile as JSON. Each stack is one sample, weighted with its mean time per run. The
/// samples follow each other in time.
pub fn write(conditions: &Conditions, writer: impl io::Write) -> Result<(), Problem> {
    let to_problem = |error: serde_json::Error| Problem::failure(format!("the profile: {error}"));
    let both_conditions = [&conditions.baseline, &conditions.candidate];
    let mut profile = Profile::new(
        "Equipoise",
        ReferenceTimestamp::from_millis_since_unix_epoch(0.0),
        SamplingInterval::from_millis(1),
    );
    // All names are known, so the profiler need not ask a symbol server.
    profile.set_symbolicated(true);
    let categories = Categories::in_profile(&mut profile);
    for (id, condition) in (1..).zip(both_conditions) {
        add_condition(&mut profile, &categories, id, condition);
    }
    let mut document = serde_json::to_value(&profile).map_err(to_problem)?;
    for (index, condition) in both_conditions.iter().enumerate() {
        set_weights(&mut document["threads"][index], condition);
    }
    serde_json::to_writer(writer, &document).map_err(to_problem)
}

/// Categories of frames, which have different colours.
struct Categories {
    program: CategoryPairHandle,
    inlined: CategoryPairHandle,
    python: CategoryPairHandle,
    kernel: CategoryPairHandle,
    unknown: CategoryPairHandle,
}

impl Categories {
    fn in_profile(profile: &mut Profile) -> Self {
        let mut add = |name, color| profile.add_category(name, color).into();
        Self {
            program: add("Program", CategoryColor::Blue),
            inlined: add("Inlined", CategoryColor::LightBlue),
            python: add("Python", CategoryColor::Yellow),
            kernel: add("Kernel", CategoryColor::Orange),
            unknown: add("Unknown", CategoryColor::Gray),
        }
    }

    fn of(&self, kind: Kind) -> CategoryPairHandle {
        match kind {
            Kind::User | Kind::Generated => self.program,
            Kind::Inlined => self.inlined,
            Kind::Python => self.python,
            Kind::Kernel => self.kernel,
            // Only stacks of allocations have frames of the kind `Size`.
            Kind::Size | Kind::Unknown => self.unknown,
        }
    }
}

fn add_condition(profile: &mut Profile, categories: &Categories, id: u32, condition: &Condition) {
    let start = Timestamp::from_millis_since_reference(0.0);
    let process = profile.add_process(&condition.name, id, start);
    let thread = profile.add_thread(process, id, start, true);
    profile.set_thread_name(thread, &condition.name);
    profile.set_thread_samples_weight_type(thread, WeightType::TracingMs);
    profile.add_initial_visible_thread(thread);
    let mut elapsed_s = 0.0;
    for stack in &condition.stacks {
        elapsed_s += stack.seconds;
        let frames: Vec<_> = stack
            .frames
            .iter()
            .map(|index| {
                let frame = &condition.frames[*index];
                FrameInfo {
                    frame: Frame::Label(profile.intern_string(&frame.name)),
                    category_pair: categories.of(frame.kind),
                    flags: FrameFlags::empty(),
                }
            })
            .collect();
        let stack_handle = profile.intern_stack_frames(thread, frames.into_iter());
        let time = Timestamp::from_millis_since_reference(1e3 * elapsed_s);
        profile.add_sample(thread, time, stack_handle, cpu_delta(stack.seconds), 1);
    }
    let end = Timestamp::from_millis_since_reference(1e3 * elapsed_s);
    profile.set_thread_end_time(thread, end);
    profile.set_process_end_time(process, end);
}

/// Sets the weights in the JSON document, because the crate writes only whole milliseconds.
fn set_weights(thread: &mut Value, condition: &Condition) {
    let weights = condition.stacks.iter().map(|stack| 1e3 * stack.seconds);
    thread["samples"]["weight"] = weights.collect();
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds of a run are neither negative nor 500 years"
)]
fn cpu_delta(seconds: f64) -> CpuDelta {
    CpuDelta::from_nanos((1e9 * seconds).round() as u64)
}
