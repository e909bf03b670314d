//! What many workers would come to: generations of jobs with measured costs, worked through event by event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use raddle_stdx::Prng;

/// Jobs of a generation, as campaigns have them.
const GENERATION: u64 = 64;
/// Generations that are worked through.
const GENERATIONS: u64 = 200;

/// Measured costs of a schedule, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    /// Instructions, for the table.
    pub(super) steps: u64,
    /// On a worker.
    pub(super) service: f64,
    /// On the director: planning, encoding, decoding, merging.
    pub(super) director: f64,
    /// The way to the workers and back, once for each generation.
    pub(super) generation: f64,
}

const WORKERS: [u64; 4] = [10, 100, 1_000, 10_000];

pub(super) fn table(costs: &[Costs]) {
    println!(
        "Simulated from these costs: schedules/s with generations of {GENERATION}, as campaigns have them, and what the director alone could plan and merge.\n"
    );
    println!(
        "| instructions of a schedule | 10 workers | 100 | 1,000 | 10,000 | limit of the director | as many campaigns at once for 1,000 workers | first bottleneck, from so many workers on |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for cost in costs {
        let rates = WORKERS.map(|workers| format!("{:.0}", rate(*cost, workers)));
        let director = 1.0 / cost.director.max(1e-9);
        let campaigns = 1_000.0 / cost.service / rate(*cost, 1_000).max(1e-9);
        println!(
            "| {} | {} | {director:.0} | {campaigns:.0} | {} |",
            cost.steps,
            rates.join(" | "),
            bottleneck(*cost)
        );
    }
    println!(
        "\nA bottleneck is what a generation waits for as long as for its schedules: the director, who plans and merges; the way there and back; or the generation itself, of which more than {GENERATION} workers get nothing. More workers want more campaigns at once on one hub; larger generations would be other campaigns."
    );
}

/// What takes as long as the schedules of a generation do, and with how many workers.
fn bottleneck(cost: Costs) -> String {
    let work = cost.service * as_f64(GENERATION);
    let parts = [
        ("the director", cost.director * as_f64(GENERATION)),
        ("the way there and back", cost.generation),
    ];
    let (name, time) = match parts {
        [one, other] if one.1 >= other.1 => one,
        [_, other] => other,
    };
    let workers = (work / time.max(1e-9)).ceil().max(1.0);
    if workers >= as_f64(GENERATION) {
        return format!("the generation, {GENERATION}");
    }
    format!("{name}, {workers:.0}")
}

/// Schedules per second.
fn rate(cost: Costs, workers: u64) -> f64 {
    let mut prng = Prng::new(25);
    let mut now = 0.0;
    for _ in 0..GENERATIONS {
        now += cost.generation + cost.director * as_f64(GENERATION);
        now += longest(cost.service, workers, &mut prng);
    }
    as_f64(GENERATIONS * GENERATION) / now
}

/// How long a generation takes whose jobs go to the worker that is free first.
fn longest(service: f64, workers: u64, prng: &mut Prng) -> f64 {
    // Nanoseconds, so that they can be ordered.
    let mut free: BinaryHeap<Reverse<u64>> =
        (0..workers.min(GENERATION)).map(|_| Reverse(0)).collect();
    let mut end = 0;
    for _ in 0..GENERATION {
        let Some(Reverse(at)) = free.pop() else { break };
        // Schedules of one program differ by about a factor of three.
        let factor = 0.5 + as_f64(prng.below(1000)) / 1000.0;
        let done = at + nanoseconds(service * factor);
        end = end.max(done);
        free.push(Reverse(done));
    }
    as_f64(end) / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "figures of a table")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time of some seconds"
)]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bottleneck_is_named() {
        let cost = Costs {
            steps: 1,
            service: 0.001,
            director: 0.0001,
            generation: 0.001,
        };
        assert_eq!(bottleneck(cost), "the director, 10");
        let far = Costs {
            generation: 0.016,
            ..cost
        };
        assert_eq!(bottleneck(far), "the way there and back, 4");
        let long = Costs {
            service: 1.0,
            ..cost
        };
        assert_eq!(bottleneck(long), "the generation, 64");
    }

    #[test]
    fn more_workers_than_jobs_are_of_no_use() {
        let cost = Costs {
            steps: 1,
            service: 0.001,
            director: 0.0,
            generation: 0.0,
        };
        let [ten, hundred, thousand, _] = WORKERS.map(|workers| rate(cost, workers));
        assert!((6_000.0..10_000.0).contains(&ten), "{ten}");
        assert!(hundred > ten * 3.0, "{hundred}");
        assert!((thousand - hundred).abs() < hundred / 100.0, "{thousand}");
    }
}
